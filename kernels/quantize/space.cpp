// SPDX-License-Identifier: Apache-2.0
// What the plans of quantize and dequantize may choose.
#include "kernels/quantize/quantize.h"
#include "tilewright/tune.h"

#include <array>

namespace tilewright {
namespace {

constexpr int kWarp = 32;
constexpr int kMaxThreads = 1024;

constexpr std::array<tune::KeySpec, 5> kKeys{
    {{"bits"}, {"access"}, {"group"}, {"given"}, {"rows", tune::Match::nearest}}};
constexpr std::array kThreads{1,   2,   4,   8,   16,  32,  64,  96,  128, 192,
                              224, 256, 320, 384, 448, 512, 768, 896, 1024};
constexpr std::array kGroups{1, 2, 4, 8, 16, 32, 64};
constexpr std::array kTurns{1, 2, 4};
constexpr std::array<tune::Knob, 3> kKnobs{
    {{"threads", kThreads}, {"groups", kGroups}, {"turns", kTurns}}};
constexpr std::array<tune::Reducible, 1> kReducible{{{"T", 67}}};

/// Two accesses a thread, in blocks of 128 threads where a group takes a warp or less.
tune::Config standard(const DeviceProperties&, const tune::Key& key) {
  const std::int64_t accesses = rows::ceil_div(key[2], key[1]);
  std::int64_t threads = 1;
  while (threads < kMaxThreads && threads * 2 < accesses)
    threads *= 2;
  const auto all = static_cast<int>(threads);
  return {all, all <= kWarp ? 128 / all : 1, 1};
}

/// A warp's part of a group takes a power of two of its lanes; blocks are whole warps.
bool valid(const DeviceProperties&, const tune::Key& key, const tune::Config& config) {
  const auto [threads, groups, turns, d, e, f, g, h] = config;
  if (threads < 1 || threads > kMaxThreads || groups < 1 || groups > kMaxThreads) return false;
  if (turns < 1 || turns > kMaxQuantizeAccesses) return false;
  if (threads < kWarp ? (threads & (threads - 1)) != 0 : threads % kWarp != 0) return false;
  if (groups * turns > 1 && threads > kWarp) return false;
  const int all = threads * groups;
  const std::int64_t each = rows::ceil_div(rows::ceil_div(key[2], key[1]), threads);
  const bool held = each * turns <= kMaxQuantizeAccesses;
  return all % kWarp == 0 && all <= kMaxThreads && (held || threads == kMaxThreads);
}

constexpr tune::Space kSpace{"quantize", kKeys, kKnobs, standard, valid, kReducible};

constexpr std::array<tune::KeySpec, 3> kBlock2dKeys{
    {{"bits"}, {"access"}, {"elements", tune::Match::nearest}}};
constexpr std::array kBlock2dThreads{256, 512, 1024};
constexpr std::array kResident{0, 2, 3, 4};
constexpr std::array<tune::Knob, 2> kBlock2dKnobs{
    {{"threads", kBlock2dThreads}, {"resident", kResident}}};
tune::Config standard_block2d(const DeviceProperties&, const tune::Key&) { return {512, 0}; }
bool valid_block2d(const DeviceProperties&, const tune::Key&, const tune::Config& config) {
  const auto [threads, resident, c, d, e, f, g, h] = config;
  const bool known = threads == 256 || threads == 512 || threads == 1024;
  return known && resident >= 0 && resident * threads <= 2048;
}
constexpr tune::Space kBlock2dSpace{"quantize.block2d", kBlock2dKeys,  kBlock2dKnobs,
                                    standard_block2d,   valid_block2d, kReducible};

constexpr std::array<tune::KeySpec, 4> kTileKeys{
    {{"bits"}, {"code_bits"}, {"access"}, {"elements", tune::Match::nearest}}};
constexpr std::array kTileThreads{64, 128, 256, 512};
constexpr std::array kTileAccesses{1, 2, 4, 8};
constexpr std::array<tune::Knob, 2> kTileKnobs{
    {{"threads", kTileThreads}, {"accesses", kTileAccesses}}};

/// What is once a thread weighs more beside few bytes, where there are threads enough.
tune::Config standard_tile(const DeviceProperties& device, const tune::Key& key) {
  constexpr std::int64_t kManyThreads = 512;  // of a multiprocessor
  const auto [bits, code_bits, access, elements, e, f, g, h] = key;
  int accesses = code_bits == 4 ? 4 : 1;
  while (accesses > 1 && elements / (access * accesses) < kManyThreads * device.sm_count)
    accesses /= 2;
  return {128, accesses};
}
bool valid_tile(const DeviceProperties&, const tune::Key&, const tune::Config& config) {
  const auto [threads, accesses, c, d, e, f, g, h] = config;
  const bool power = threads >= kWarp && threads <= kMaxThreads && (threads & (threads - 1)) == 0;
  return power && accesses >= 1 && accesses <= kMaxQuantizeAccesses;
}

constexpr tune::Space kTileSpace{"dequantize",  kTileKeys,  kTileKnobs,
                                 standard_tile, valid_tile, kReducible};

}  // namespace

void choose_threads(QuantizeConfig& config, const DeviceProperties& device, const View& x) {
  const bool given = config.coding.format == QuantFormat::fp8_tensor;
  const tune::Config chosen = tune::choose(
      kSpace, device, {bits(x.type), config.vector_elems, config.group, given ? 1 : 0, x.shape[0]});
  config.threads_per_group = chosen[0];
  config.groups_per_block = chosen[1];
  config.turns = chosen[2];
  config.accesses = static_cast<int>(
      rows::ceil_div(rows::ceil_div(config.group, config.vector_elems), chosen[0]));
}

void choose_block2d_threads(QuantizeConfig& config, const DeviceProperties& device, const View& x) {
  const tune::Config chosen =
      tune::choose(kBlock2dSpace, device, {bits(x.type), config.vector_elems, size(x)});
  config.threads_per_group = chosen[0];
  config.resident = chosen[1];
}

rows::RowTile choose_dequantize_tile(const DeviceProperties& device, const View& y, Type code,
                                     int vector_elems) {
  const tune::Config chosen =
      tune::choose(kTileSpace, device, {bits(y.type), bits(code), vector_elems, size(y)});
  return rows::make_row_tile(y, vector_elems, chosen[0], chosen[1]);
}

}  // namespace tilewright
