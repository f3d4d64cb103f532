// SPDX-License-Identifier: Apache-2.0
// What the plans of quantize and dequantize may choose.
#include "kernels/quantize/quantize.h"
#include "kernels/rows/row_tile_space.h"
#include "tilewright/tune.h"

#include <array>

namespace tilewright {
namespace {

constexpr int kWarp = 32;
constexpr int kMaxThreads = 1024;

constexpr std::array<tune::KeySpec, 5> kKeys{
    {{"bits"}, {"access"}, {"group"}, {"given"}, {"rows", tune::Match::nearest}}};
constexpr std::array kThreads{2,   4,   8,   16,  32,  64,  96,  128, 192,
                              224, 256, 320, 384, 448, 512, 768, 896, 1024};
constexpr std::array kGroups{1, 2, 4, 8, 16, 32, 64};
constexpr std::array<tune::Knob, 2> kKnobs{{{"threads", kThreads}, {"groups", kGroups}}};
constexpr std::array<tune::Reducible, 1> kReducible{{{"T", 67}}};

/// Two accesses a thread where a group takes more than a warp, in blocks of 128 threads otherwise.
tune::Config standard(const DeviceProperties&, const tune::Key& key) {
  const std::int64_t accesses = rows::ceil_div(key[2], key[1]);
  std::int64_t threads = 1;
  while (threads < accesses && threads < kWarp)
    threads *= 2;
  while (threads < kMaxThreads && threads * 2 < accesses)
    threads *= 2;
  const auto all = static_cast<int>(threads);
  return {all, all <= kWarp ? 128 / all : 1};
}

/// A warp's part of a group takes a power of two of its lanes; blocks are whole warps.
bool valid(const DeviceProperties&, const tune::Key& key, const tune::Config& config) {
  const auto [threads, groups, c, d, e, f, g, h] = config;
  if (threads < 1 || threads > kMaxThreads || groups < 1 || groups > kMaxThreads) return false;
  if (threads < kWarp ? (threads & (threads - 1)) != 0 : threads % kWarp != 0) return false;
  if (groups > 1 && threads > kWarp) return false;
  const int all = threads * groups;
  const std::int64_t each = rows::ceil_div(rows::ceil_div(key[2], key[1]), threads);
  return all % kWarp == 0 && all <= kMaxThreads && each <= kMaxQuantizeAccesses;
}

constexpr tune::Space kSpace{"quantize", kKeys, kKnobs, standard, valid, kReducible};

}  // namespace

void choose_threads(QuantizeConfig& config, const DeviceProperties& device, const View& x) {
  const bool given = config.coding.format == QuantFormat::fp8_tensor;
  const tune::Config chosen = tune::choose(
      kSpace, device, {bits(x.type), config.vector_elems, config.group, given ? 1 : 0, x.shape[0]});
  config.threads_per_group = chosen[0];
  config.groups_per_block = chosen[1];
  config.accesses = static_cast<int>(
      rows::ceil_div(rows::ceil_div(config.group, config.vector_elems), chosen[0]));
}

rows::RowTile choose_dequantize_tile(const DeviceProperties& device, const View& y,
                                     int vector_elems) {
  static const tune::Space space = rows::row_tile_space("dequantize", rows::TileAccesses::several);
  return rows::choose_row_tile(space, device, y, vector_elems);
}

}  // namespace tilewright
