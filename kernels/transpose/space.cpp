// SPDX-License-Identifier: Apache-2.0
// What the plan of a transpose may choose.
#include "kernels/transpose/transpose.h"
#include "tilewright/tune.h"

#include <algorithm>
#include <array>

namespace tilewright {
namespace {

constexpr int kMaxThreads = 1024;
constexpr int kLeastAccessBytes = 8;  // narrower ones would not fill sectors of 32 bytes

constexpr std::array<tune::KeySpec, 4> kKeys{
    {{"bytes"}, {"access"}, {"m", tune::Match::nearest}, {"n", tune::Match::nearest}}};
constexpr std::array kMethods{0, 1};
constexpr std::array kThreads{64, 128, 256, 512};
constexpr std::array kAcross{2, 4, 8, 16, 32, 64};
constexpr std::array<tune::Knob, 3> kKnobs{
    {{"direct", kMethods}, {"threads", kThreads}, {"across", kAcross}}};
constexpr std::array<tune::Reducible, 3> kReducible{{{"M", 200}, {"N", 330}, {"B", 3}}};

tune::Config standard(const DeviceProperties&, const tune::Key& key) {
  const bool direct = key[0] * key[1] >= kLeastAccessBytes;
  return {direct ? 1 : 0, 256, direct ? 8 : 64};
}

bool valid(const DeviceProperties&, const tune::Key& key, const tune::Config& config) {
  const auto [direct, threads, across, d, e, f, g, h] = config;
  if (direct == 0) return threads == 256 && across == 64;
  const bool powers = across > 0 && (across & (across - 1)) == 0;
  return direct == 1 && powers && threads >= 32 && threads <= kMaxThreads && threads % 32 == 0 &&
         threads % across == 0 && key[0] * key[1] >= kLeastAccessBytes;
}

constexpr tune::Space kSpace{"transpose", kKeys, kKnobs, standard, valid, kReducible};

}  // namespace

TransposeConfig choose_transpose(const DeviceProperties& device, const View& src, int access) {
  const tune::Config config =
      tune::choose(kSpace, device, {bytes(src.type), access, src.shape[1], src.shape[2]});
  const TransposeMethod method = config[0] == 1 ? TransposeMethod::direct : TransposeMethod::shared;
  return {method, config[0] == 1 ? access : 1, config[1], config[2]};
}

}  // namespace tilewright
