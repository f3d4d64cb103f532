// SPDX-License-Identifier: Apache-2.0
// What the plans of qk_norm, qk_norm_rope and rope may choose.
#include "kernels/qk_norm_rope/qk_norm_rope.h"
#include "kernels/rows/row_shape.h"
#include "tilewright/tune.h"

#include <algorithm>
#include <array>

namespace tilewright {
namespace {

constexpr int kWarp = 32;
constexpr int kMaxThreadsOfSm = 2048;
constexpr int kMaxHeadsOfThread = 8;  // loads of all of them are in flight at once

constexpr std::array kLanes{4, 8, 16, 32};
constexpr std::array kThreads{64, 128, 256};
constexpr std::array kHeads{1, 2, 4};
constexpr std::array kResident{0, 8, 16};

/// Writing a cache takes registers, and codes take more: 0 there is none, 1 numbers, 2 codes.
constexpr std::array<tune::KeySpec, 8> kKeys{{{"bits"},
                                              {"d"},
                                              {"rotary"},
                                              {"access"},
                                              {"q_heads"},
                                              {"k_heads"},
                                              {"cache"},
                                              {"tokens", tune::Match::nearest}}};
constexpr std::array<tune::Knob, 4> kKnobs{
    {{"lanes", kLanes}, {"threads", kThreads}, {"heads", kHeads}, {"resident", kResident}}};
constexpr std::array<tune::Reducible, 2> kReducible{{{"T", 67}, {"P", 500}}};

/// Two accesses a thread are best (measured on an H200 for norms of rows).
tune::Config standard(const DeviceProperties&, const tune::Key& key) {
  const std::int64_t accesses = rows::ceil_div(key[1], key[3]);
  const std::int64_t lanes = rows::power_of_two_from(rows::ceil_div(accesses, 2));
  return {static_cast<int>(std::min<std::int64_t>(lanes, kWarp)), 128, 1, 0};
}

/// Heads of a thread are all of q or all of k, so that they share their weights.
bool valid(const DeviceProperties&, const tune::Key& key, const tune::Config& config) {
  const auto [bits, d, rotary, access, q_heads, k_heads, cache, tokens] = key;
  const auto [lanes, threads, heads, resident, e, f, g, h] = config;
  const bool power = lanes >= 1 && lanes <= kWarp && (lanes & (lanes - 1)) == 0;
  if (!power || lanes > rows::power_of_two_from(rows::ceil_div(d, access))) return false;
  const bool whole = threads >= kWarp && threads <= 1024 && threads % kWarp == 0;
  if (!whole || heads < 1 || heads > kMaxHeadsOfThread || resident < 0) return false;
  if (q_heads % heads != 0 || k_heads % heads != 0) return false;
  return resident <= kMaxThreadsOfSm / threads;
}

constexpr tune::Space space(std::string_view name) {
  return {name, kKeys, kKnobs, standard, valid, kReducible};
}
constexpr tune::Space kNorm = space("qk_norm.blocks");
constexpr tune::Space kNormRope = space("qk_norm_rope.blocks");
constexpr tune::Space kRope = space("rope.blocks");

const tune::Space& space_of(std::string_view op) {
  return op == "qk_norm" ? kNorm : op == "rope" ? kRope : kNormRope;
}

/// Whether the device has room for all threads at once with the registers of early loads: then
/// there are no other blocks to hide a thread's waits behind. Rotations wait for positions anyway:
/// heads of one token that waited with them took 1.84 us on an H200, and 1.49 us without.
bool loads_early(const DeviceProperties& device, const QkConfig& config, std::int64_t tokens) {
  if (config.style != RopeStyle::none) return false;
  constexpr std::int64_t kThreadsOfSm = 1024;  // of 64 registers
  const std::int64_t threads = tokens * (config.heads_of_token() / config.heads) * config.lanes;
  return threads <= device.sm_count * kThreadsOfSm;
}

}  // namespace

void choose_threads(std::string_view op, const DeviceProperties& device, const View& q, bool codes,
                    QkConfig& config) {
  const int cache = config.v_heads == 0 ? 0 : codes ? 2 : 1;
  const tune::Config chosen =
      tune::choose(space_of(op), device,
                   {bits(q.type), config.d, config.rotary, config.vector_elems, config.q_heads,
                    config.k_heads, cache, q.shape[0]});
  config.lanes = chosen[0];
  config.threads = chosen[1];
  config.heads = chosen[2];
  config.resident = chosen[3];
  config.early = loads_early(device, config, q.shape[0]);
}

}  // namespace tilewright
