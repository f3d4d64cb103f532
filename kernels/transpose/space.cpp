// SPDX-License-Identifier: Apache-2.0
// What the plan of a transpose may choose.
#include "kernels/transpose/transpose.h"
#include "tilewright/tune.h"

#include <algorithm>
#include <array>

namespace tilewright {
namespace {

constexpr int kMaxThreads = 1024;
constexpr int kLeastAccessBytes = 8;            // of squares: narrower ones would not fill sectors
constexpr int kMaxReads = 80;                   // of a thread, all in registers at once
constexpr int kSmemPerBlockBytes = 227 * 1024;  // sm_90: CUDA Programming Guide

constexpr std::array<tune::KeySpec, 4> kKeys{
    {{"bytes"}, {"access"}, {"m", tune::Match::nearest}, {"n", tune::Match::nearest}}};
constexpr std::array kMethods{0, 1};
constexpr std::array kThreads{64, 128, 256, 512};
constexpr std::array kAcross{4, 8, 16, 32, 64};
constexpr std::array kDown{0, 16, 32};
constexpr std::array kGroup{0, 1, 8};
constexpr std::array<tune::Knob, 5> kKnobs{{{"direct", kMethods},
                                            {"threads", kThreads},
                                            {"across", kAcross},
                                            {"down", kDown},
                                            {"group", kGroup}}};
constexpr std::array<tune::Reducible, 3> kReducible{{{"M", 600}, {"N", 330}, {"B", 3}}};

constexpr bool is_power(int number) { return number > 0 && (number & (number - 1)) == 0; }

/// Of elements of as many bytes, wherever rows begin.
TransposeConfig shared_config(std::int64_t elem_bytes, const tune::Config& config) {
  return {.method = TransposeMethod::shared,
          .elem_bytes = static_cast<int>(elem_bytes),
          .threads = config[1],
          .across = config[2],
          .down = config[3],
          .group = config[4]};
}

/// Squares where their rows are wide accesses of small elements. Tiles in shared memory are as high
/// as src, or as leaves each multiprocessor one.
tune::Config standard(const DeviceProperties& device, const tune::Key& key) {
  const auto [size, access, m, n, e, f, g, h] = key;
  if (access * size >= kLeastAccessBytes && (size <= 2 || size == 8)) return {1, 256, 8, 0, 1};
  tune::Config config{0, 256, 32, 32, 1};
  for (int& down = config[3]; down > 2; down /= 2) {
    const TransposeConfig tile = shared_config(size, config);
    const std::int64_t tiles = rows::ceil_div(m, tile.tile_m()) * rows::ceil_div(n, tile.tile_n());
    const bool too_high = tile.tile_m() / 2 >= m + tile.rows_before();
    if (!too_high && (down <= 16 || tiles >= device.sm_count)) break;
  }
  return config;
}

bool valid_shared(const TransposeConfig& c) {
  if (!is_power(c.across) || !is_power(c.down) || c.across < 32 || c.down < 2) return false;
  if (c.threads % c.across != 0 || c.threads % c.down != 0) return false;
  const int rows_at_once = c.threads / c.across;
  return rows_at_once % c.word_elems() == 0 && c.smem_rows() / rows_at_once <= kMaxReads &&
         c.smem_bytes() <= kSmemPerBlockBytes;
}

bool valid(const DeviceProperties&, const tune::Key& key, const tune::Config& config) {
  const auto [direct, threads, across, down, group, f, g, h] = config;
  if (threads < 32 || threads > kMaxThreads || threads % 32 != 0) return false;
  if (group != 0 && !is_power(group)) return false;
  if (direct == 0) return valid_shared(shared_config(key[0], config));
  return direct == 1 && is_power(across) && threads % across == 0 && down == 0 &&
         key[0] * key[1] >= kLeastAccessBytes;
}

constexpr tune::Space kSpace{"transpose", kKeys, kKnobs, standard, valid, kReducible};

}  // namespace

TransposeConfig choose_transpose(const DeviceProperties& device, const View& src, const View& dst) {
  const int access = rows::common_vector(src.type, std::array{src, dst});
  const tune::Config chosen =
      tune::choose(kSpace, device, {bytes(src.type), access, src.shape[1], src.shape[2]});
  TransposeConfig config = shared_config(bytes(src.type), chosen);
  if (chosen[0] == 1) {
    config.method = TransposeMethod::direct;
    config.access = access;
    return config;
  }
  const auto divides = [](int elems, const View& view) {
    return rows::common_vector(view.type, std::array{view}) % elems == 0;
  };
  config.whole_words = divides(config.word_elems(), src);
  config.whole_accesses = divides(config.access_elems(), dst);
  return config;
}

}  // namespace tilewright
