// SPDX-License-Identifier: Apache-2.0
// Spaces of the norms over rows, and the rules without a record.
#include "kernels/rows/row_norm_space.h"

#include "kernels/rows/row_shape.h"
#include "kernels/rows/rows.h"

#include <algorithm>
#include <array>

namespace tilewright::rows {
namespace {

constexpr int kWarp = 32;
constexpr int kMaxThreads = 1024;
constexpr int kMaxThreadsOfSm = 2048;

constexpr std::array kThreads{4,   8,   16,  32,  64,  96,  128, 160, 192, 224,
                              256, 320, 384, 448, 512, 640, 768, 896, 1024};
constexpr std::array kRows{1, 2, 4, 8, 16, 32};
constexpr std::array kTurns{1, 2, 4, 8, 16};
constexpr std::array kNoOrYes{0, 1};
constexpr std::array kNo{0};
constexpr std::array kWeightLoads{0, 1, 2};  // of WeightLoads

constexpr std::array<tune::KeySpec, 4> kOrderKeys{{{"bits"}, {"h"}, {"access"}, {"operands"}}};
constexpr std::array<tune::Knob, 2> kOrderKnobs{{{"threads", kThreads}, {"merged", kNo}}};
constexpr std::array<tune::Knob, 2> kCentredKnobs{{{"threads", kThreads}, {"merged", kNoOrYes}}};
constexpr std::array<tune::KeySpec, 5> kBlocksKeys{
    {{"bits"}, {"operands"}, {"threads"}, {"accesses"}, {"rows", tune::Match::nearest}}};
constexpr std::array kResident{0, 1, 2, 4, 8};
constexpr std::array<tune::Knob, 4> kBlocksKnobs{
    {{"rows", kRows}, {"turns", kTurns}, {"late", kWeightLoads}, {"resident", kResident}}};
constexpr std::array<tune::Reducible, 1> kReducible{{{"T", 67}}};

/// Measured on an H200 over H = 2048, 4096, 7168, 8192 with 1, 64 and 32768 rows: two accesses a
/// thread are best where they come out even, else four.
tune::Config standard_order(const DeviceProperties&, const tune::Key& key) {
  const std::int64_t vectors = ceil_div(key[1], key[2]);
  const std::int64_t power = power_of_two_from(vectors);
  if (vectors <= kWarp) return {static_cast<int>(power), 0};
  const std::int64_t threads = vectors == power ? power / 2 : power / 4;
  return {static_cast<int>(std::clamp<std::int64_t>(threads, kWarp, kMaxThreads)), 0};
}

/// A warp's part of a row takes a power of two of its lanes; the means of equal shares merge.
bool valid_order(const DeviceProperties&, const tune::Key& key, const tune::Config& config) {
  const auto [bits, h, access, operands, e, f, g, i] = key;
  const int threads = config[0];
  if (threads < 1 || threads > kMaxThreads || config[1] < 0 || config[1] > 1) return false;
  if (threads < kWarp ? (threads & (threads - 1)) != 0 : threads % kWarp != 0) return false;
  const std::int64_t vectors = ceil_div(h, access);
  if (threads > std::max<std::int64_t>(power_of_two_from(vectors), 1)) return false;
  const std::int64_t each = ceil_div(vectors, threads);
  const bool held = each <= max_accesses(operands);
  if (config[1] == 1 && !(held && h == each * access * threads)) return false;
  return held || threads == kMaxThreads;
}

/// Blocks of one warp until every multiprocessor has one.
tune::Config standard_blocks(const DeviceProperties& device, const tune::Key& key) {
  constexpr int kThreadsOfManyRows = 128;
  const auto [bits, operands, threads, accesses, rows, f, g, i] = key;
  if (threads > kWarp || accesses == 0) return {1, 1, 0, 0};
  const bool many = rows * threads > std::int64_t{device.sm_count} * kWarp;
  const std::int64_t together = many ? kThreadsOfManyRows : kWarp;
  return {static_cast<int>(together / threads), 1, 0, 0};
}

/// Codes take more arithmetic than numbers, and it hides behind that of other blocks: many rows get
/// registers for 1536 threads of a multiprocessor, 1280 with three accesses. On an H200 layer_norm
/// of 32768 x 4096 bf16 to mxfp8 took 122.9 us without the bound and 113.2 us with it.
tune::Config standard_code_blocks(const DeviceProperties& device, const tune::Key& key) {
  constexpr std::int64_t kMostAccesses = 3;
  constexpr std::int64_t kManyBlocks = 8;  // of a multiprocessor
  const auto [bits, operands, threads, accesses, rows, f, g, i] = key;
  tune::Config config = standard_blocks(device, key);
  const bool many = rows > device.sm_count * kManyBlocks;
  if (threads <= kWarp || accesses == 0 || accesses > kMostAccesses || !many) return config;
  config[2] = operands > 2 ? 1 : 0;
  config[3] = static_cast<int>((accesses < kMostAccesses ? 1536 : 1280) / threads);
  return config;
}

/// Rows share a block of whole warps where each has at most one; turns load weights before the
/// first.
bool valid_blocks(const DeviceProperties&, const tune::Key& key, const tune::Config& config) {
  const auto [bits, operands, threads, accesses, rows, f, g, i] = key;
  const auto [together, turns, late, resident, c, d, j, k] = config;
  if (together < 1 || turns < 1 || turns > 1024 || late < 0 || late > 2) return false;
  const std::int64_t all = together * threads;
  if (all > kMaxThreads || all % kWarp != 0 || (together > 1 && threads > kWarp)) return false;
  if (resident < 0 || resident * all > kMaxThreadsOfSm) return false;
  if (accesses == 0) return together == 1 && turns == 1 && late == 0;
  if (operands == 1 && late > 0) return false;  // there are no weights
  return turns == 1 || (late == 0 && turns <= rows);
}

constexpr tune::Space order_space(std::string_view name, std::span<const tune::Knob> knobs) {
  return {name, kOrderKeys, knobs, standard_order, valid_order, kReducible};
}
using Standard = decltype(tune::Space::standard);
constexpr tune::Space blocks_space(std::string_view name, Standard standard = standard_blocks) {
  return {name, kBlocksKeys, kBlocksKnobs, standard, valid_blocks, kReducible};
}

/// The spaces of an operator.
struct Spaces {
  tune::Space order, blocks, code_blocks;
};
constexpr Spaces kRmsNorm{order_space("rms_norm", kOrderKnobs), blocks_space("rms_norm.blocks"),
                          blocks_space("rms_norm.code_blocks", standard_code_blocks)};
constexpr Spaces kFusedAdd{order_space("fused_add_rms_norm", kOrderKnobs),
                           blocks_space("fused_add_rms_norm.blocks"),
                           blocks_space("fused_add_rms_norm.code_blocks")};
constexpr Spaces kLayerNorm{order_space("layer_norm", kCentredKnobs),
                            blocks_space("layer_norm.blocks"),
                            blocks_space("layer_norm.code_blocks", standard_code_blocks)};

const Spaces& spaces_of(std::string_view op) {
  for (const Spaces* spaces : {&kFusedAdd, &kLayerNorm}) {
    if (spaces->order.name == op) return *spaces;
  }
  return kRmsNorm;
}

}  // namespace

int max_accesses(std::int64_t operands) { return operands > 2 ? 4 : 8; }

RowOrder choose_row_order(std::string_view op, const DeviceProperties& device,
                          const RowOrderKey& key) {
  const tune::Config config =
      tune::choose(spaces_of(op).order, device, {key.bits, key.h, key.access, key.operands});
  return {config[0], config[1]};
}

RowBlocks choose_row_blocks(std::string_view op, RowOutput output, const DeviceProperties& device,
                            const RowBlocksKey& key) {
  const Spaces& spaces = spaces_of(op);
  const tune::Config config =
      tune::choose(output == RowOutput::codes ? spaces.code_blocks : spaces.blocks, device,
                   {key.bits, key.operands, key.threads, key.accesses, key.rows});
  return {config[0], config[1], static_cast<WeightLoads>(config[2]), config[3]};
}

}  // namespace tilewright::rows
