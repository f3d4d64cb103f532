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
constexpr std::int64_t kFewRows = 2;  // of a multiprocessor
constexpr std::int64_t kWideBits = 128;

constexpr std::array kThreads{4,   8,   16,  32,  64,  128, 160, 192, 224,
                              256, 320, 384, 448, 512, 640, 768, 896, 1024};
constexpr std::array kRows{1, 2, 4, 8, 16, 32};
constexpr std::array kTurns{1, 4};
constexpr std::array kNoOrYes{0, 1};
constexpr std::array kWeightLoads{0, 1, 2};  // of WeightLoads
constexpr std::array kResident{0, 4};
constexpr std::array kParts{1, 2, 4, 7, 8};

constexpr std::array<tune::KeySpec, 3> kRowKeys{{{"bits"}, {"h"}, {"access"}}};
constexpr std::array<tune::Knob, 1> kMergedKnobs{{{"merged", kNoOrYes}}};
constexpr std::array<tune::KeySpec, 5> kBlocksKeys{
    {{"bits"}, {"h"}, {"access"}, {"operands"}, {"rows", tune::Match::nearest}}};
constexpr std::array<tune::Knob, 6> kBlocksKnobs{{{"threads", kThreads},
                                                  {"rows", kRows},
                                                  {"turns", kTurns},
                                                  {"late", kWeightLoads},
                                                  {"resident", kResident},
                                                  {"parts", kParts}}};
constexpr std::array<tune::Reducible, 2> kReducible{{{"T", 67}, {"V", 1000}}};

std::int64_t accesses_of(const tune::Key& key) { return ceil_div(key[1], key[2]); }
std::int64_t access_bits(const tune::Key& key) { return key[0] * key[2]; }
int most_accesses(const tune::Key& key) { return max_accesses(key[3], access_bits(key)); }
/// By the row alone, whatever else a thread holds: its sum has another order then.
bool is_looped(const tune::Key& key) {
  constexpr std::int64_t kManyOperands = 5;
  return ceil_div(accesses_of(key), kMaxThreads) > max_accesses(kManyOperands, access_bits(key));
}

/// With few rows a thread waits for memory once and adds least on the way to the sum. With many,
/// two accesses a thread were best on an H200 where they come out even, else four: measured over
/// H = 2048, 4096, 7168, 8192 with 64 and 32768 rows. Narrow accesses are more, up to 16 bytes:
/// 16384 rows of 4097 bf16 took rms_norm 127 us with seven elements a thread, 184 us with five.
std::int64_t standard_threads(std::int64_t accesses, std::int64_t bits_of_access, bool few) {
  const std::int64_t power = power_of_two_from(accesses);
  if (accesses <= kWarp) return power;
  const std::int64_t narrow = std::max<std::int64_t>(kWideBits / bits_of_access, 1);
  const std::int64_t each = few ? 1 : narrow;
  const std::int64_t even = ceil_div(ceil_div(accesses, each), kWarp) * kWarp;
  const std::int64_t threads = few || narrow > 1 ? even : accesses == power ? power / 2 : power / 4;
  return std::clamp<std::int64_t>(threads, kWarp, kMaxThreads);
}

/// Blocks of one warp until every multiprocessor has one.
tune::Config standard_blocks(const DeviceProperties& device, const tune::Key& key) {
  constexpr int kThreadsOfManyRows = 128;
  const auto [bits, h, access, operands, rows, f, g, i] = key;
  const std::int64_t accesses = accesses_of(key);
  if (is_looped(key)) return {kMaxThreads, 1, 1, 0, 0, 1};
  const auto threads = static_cast<int>(
      standard_threads(accesses, access_bits(key), rows <= kFewRows * device.sm_count));
  if (threads > kWarp) return {threads, 1, 1, 0, 0, 1};
  const bool many = rows * threads > std::int64_t{device.sm_count} * kWarp;
  return {threads, (many ? kThreadsOfManyRows : kWarp) / threads, 1, 0, 0, 1};
}

/// Of some rows, up to about one wave, all are on the device at once where a block is small, and
/// nothing hides a wait for weights: four accesses a thread, and early loads. On an H200 1024 rows
/// of 4096 bf16 took rms_norm 5.9 us so and 6.8 us with two accesses, layer_norm 6.7 and 7.2 us.
tune::Config standard_number_blocks(const DeviceProperties& device, const tune::Key& key) {
  constexpr std::int64_t kSomeRows = 16;      // of a multiprocessor
  constexpr std::int64_t kWorthABlock = 128;  // threads
  const auto [bits, h, access, operands, rows, f, g, i] = key;
  tune::Config config = standard_blocks(device, key);
  const std::int64_t accesses = accesses_of(key);
  const bool narrow = access_bits(key) < kWideBits;
  const bool some = rows > kFewRows * device.sm_count && rows <= kSomeRows * device.sm_count;
  if (!some || narrow || accesses < 2 * kWorthABlock || is_looped(key)) return config;
  const std::int64_t threads = std::max(power_of_two_from(accesses) / 4, kWorthABlock);
  config[0] = static_cast<int>(std::min<std::int64_t>(threads, kMaxThreads));
  config[3] = operands > 1 ? static_cast<int>(WeightLoads::early) : 0;
  return config;
}

constexpr int kBlocksOfRow = 4;  // at most, each with an access a thread
bool leave_room_for_parts(const DeviceProperties& device, std::int64_t rows) {
  return 2 * rows * kBlocksOfRow <= device.sm_count;
}
/// Where whole warps leave nothing to the last block there are fewer.
tune::Config shared_row(const tune::Key& key) {
  const auto [bits, h, access, operands, rows, f, g, i] = key;
  const std::int64_t accesses = accesses_of(key);
  const std::int64_t threads = ceil_div(ceil_div(accesses, kBlocksOfRow), kWarp) * kWarp;
  const WeightLoads weights = operands > 1 ? WeightLoads::early : WeightLoads::free;
  return {static_cast<int>(threads), 1, 1,
          static_cast<int>(weights), 0, static_cast<int>(ceil_div(accesses, threads))};
}

/// With very few rows one multiprocessor would do all of a long one: instead four blocks each read
/// it, and write a quarter of it. On an H200 plain CUDA kernels took 2.01 us so for one row of 8192
/// bf16, and 2.26 us with one block of 256 or 512 threads; a row of 4096 gained nothing.
tune::Config standard_parts(const DeviceProperties& device, const tune::Key& key) {
  constexpr std::int64_t kWorthParts = 640;  // accesses
  const auto [bits, h, access, operands, rows, f, g, i] = key;
  const bool worth = leave_room_for_parts(device, rows) && accesses_of(key) >= kWorthParts;
  const tune::Config shared = shared_row(key);
  return worth && shared[0] <= kMaxThreads ? shared : standard_number_blocks(device, key);
}

/// Idle lanes issue as many instructions as others, which is what limits codes: as few of them as
/// whole warps of four, three or two accesses a thread leave.
int code_threads(std::int64_t accesses) {
  const auto threads_of = [&](std::int64_t each) {
    return ceil_div(ceil_div(accesses, each), kWarp) * kWarp;
  };
  const auto idle = [&](std::int64_t threads) {
    return ceil_div(accesses, threads) * threads - accesses;
  };
  std::int64_t best = std::min<std::int64_t>(threads_of(4), kMaxThreads);
  for (const std::int64_t each : {3, 2}) {
    const std::int64_t threads = threads_of(each);
    if (threads <= kMaxThreads && idle(threads) < idle(best)) best = threads;
  }
  return static_cast<int>(best);
}

/// With many rows codes of a block hide behind the loads of others: four accesses a thread, and
/// early weights, which wait together with the row. On an H200 rms_norm of 32768 x 4096 bf16 to
/// nvfp4 took 87.2 us so and 101.4 us with two accesses, late weights and bounded registers.
tune::Config standard_code_blocks(const DeviceProperties& device, const tune::Key& key) {
  constexpr std::int64_t kManyBlocks = 4;  // of a multiprocessor
  const auto [bits, h, access, operands, rows, f, g, i] = key;
  tune::Config config = standard_blocks(device, key);
  const std::int64_t accesses = accesses_of(key);
  const bool many = rows > device.sm_count * kManyBlocks;
  if (config[0] <= kWarp || is_looped(key) || !many) return config;
  config[0] = code_threads(accesses);
  if (operands > 1) config[3] = static_cast<int>(WeightLoads::early);
  return config;
}

/// Codes take more instructions than numbers: shorter rows are worth being shared, too.
tune::Config standard_code_parts(const DeviceProperties& device, const tune::Key& key) {
  const tune::Config shared = shared_row(key);
  const bool fits = leave_room_for_parts(device, key[4]) && shared[0] <= kMaxThreads;
  return fits ? shared : standard_code_blocks(device, key);
}

/// Where a search may find that blocks shall share rows.
bool may_have_parts(const tune::Key& key) {
  constexpr std::int64_t kSomeRows = 64, kLeastAccesses = 256;
  return key[4] <= kSomeRows && accesses_of(key) >= kLeastAccesses && !is_looped(key);
}

/// A warp's part of a row takes a power of two of its lanes.
bool valid_threads(const tune::Key& key, int threads) {
  if (threads < 1 || threads > kMaxThreads) return false;
  if (threads < kWarp ? (threads & (threads - 1)) != 0 : threads % kWarp != 0) return false;
  if (is_looped(key)) return threads == kMaxThreads;
  const std::int64_t accesses = accesses_of(key);
  return threads <= power_of_two_from(accesses) &&
         ceil_div(accesses, threads) <= most_accesses(key);
}

/// Rows share a block of whole warps, or take turns, where each has at most one warp; turns load
/// weights before the first.
bool valid_blocks(const DeviceProperties&, const tune::Key& key, const tune::Config& config) {
  const auto [bits, h, access, operands, rows, f, g, i] = key;
  const auto [threads, together, turns, late, resident, parts, j, k] = config;
  if (!valid_threads(key, threads)) return false;
  if (together < 1 || turns < 1 || turns > 1024 || late < 0 || late > 2) return false;
  const std::int64_t all = std::int64_t{together} * threads;
  if (all > kMaxThreads || all % kWarp != 0) return false;
  if (together * turns > 1 && threads > kWarp) return false;
  if (resident < 0 || resident * all > kMaxThreadsOfSm) return false;
  if (parts != 1) return false;
  if (is_looped(key)) return together == 1 && turns == 1 && late == 0;
  if (operands == 1 && late > 0) return false;  // there are no weights
  return turns == 1 || (late == 0 && turns <= rows);
}

/// Parts are whole accesses of the threads of a block with one row.
bool valid_parts(const DeviceProperties& device, const tune::Key& key, const tune::Config& config) {
  constexpr std::size_t kPartsKnob = 5;
  const int threads = config[0], parts = config[kPartsKnob];
  tune::Config whole = config;
  whole[kPartsKnob] = 1;
  if (parts < 1 || !valid_blocks(device, key, whole)) return false;
  return parts == 1 ||
         (threads > kWarp && !is_looped(key) && ceil_div(accesses_of(key), threads) % parts == 0);
}

tune::Config unmerged(const DeviceProperties&, const tune::Key&) { return {0}; }

/// The means of equal shares merge: of whole groups, or of a part that has no access left over. Not
/// of f32, where a share's mean has too few digits (RowNormConfig::corrected).
bool valid_merged(const DeviceProperties&, const tune::Key& key, const tune::Config& config) {
  const std::int64_t accesses = accesses_of(key);
  if (config[0] == 0) return true;
  if (config[0] != 1 || is_looped(key) || key[0] > 16) return false;
  return accesses % kWarp == 0 || (accesses < kWarp && accesses == power_of_two_from(accesses));
}

using Standard = decltype(tune::Space::standard);
constexpr tune::Space blocks_space(std::string_view name, Standard standard) {
  return {name, kBlocksKeys, kBlocksKnobs, standard, valid_blocks, kReducible};
}
/// Of few rows that several blocks may share: what the blocks read, none of them writes.
constexpr tune::Space parts_space(std::string_view name, Standard standard) {
  return {name, kBlocksKeys, kBlocksKnobs, standard, valid_parts, kReducible};
}

/// The spaces of an operator.
struct Spaces {
  std::string_view op;
  tune::Space blocks, code_blocks, parts, code_parts;
};
constexpr Spaces kRmsNorm{"rms_norm", blocks_space("rms_norm.blocks", standard_number_blocks),
                          blocks_space("rms_norm.code_blocks", standard_code_blocks),
                          parts_space("rms_norm.parts", standard_parts),
                          parts_space("rms_norm.code_parts", standard_code_parts)};
constexpr Spaces kFusedAdd{"fused_add_rms_norm",
                           blocks_space("fused_add_rms_norm.blocks", standard_number_blocks),
                           blocks_space("fused_add_rms_norm.code_blocks", standard_blocks),
                           parts_space("fused_add_rms_norm.parts", standard_parts),
                           parts_space("fused_add_rms_norm.code_parts", standard_code_parts)};
constexpr Spaces kLayerNorm{"layer_norm", blocks_space("layer_norm.blocks", standard_number_blocks),
                            blocks_space("layer_norm.code_blocks", standard_code_blocks),
                            parts_space("layer_norm.parts", standard_parts),
                            parts_space("layer_norm.code_parts", standard_code_parts)};
/// Rows that embedding gathers; it has no codes, and no parts.
constexpr Spaces kEmbedding{"embedding",
                            blocks_space("embedding.norm_blocks", standard_number_blocks),
                            kRmsNorm.code_blocks, kRmsNorm.parts, kRmsNorm.code_parts};
constexpr tune::Space kMerged{"layer_norm", kRowKeys,     kMergedKnobs,
                              unmerged,     valid_merged, kReducible};

const Spaces& spaces_of(std::string_view op) {
  for (const Spaces* spaces : {&kFusedAdd, &kLayerNorm, &kEmbedding}) {
    if (spaces->op == op) return *spaces;
  }
  return kRmsNorm;
}

}  // namespace

int max_accesses(std::int64_t operands, std::int64_t access_bits) {
  constexpr std::int64_t kRegisterBits = 32;
  const std::int64_t narrower = kWideBits / std::clamp(access_bits, kRegisterBits, kWideBits);
  return static_cast<int>((operands > 2 ? 4 : 8) * narrower);
}

RowBlocks choose_row_blocks(std::string_view op, RowOutput output, RowSharing sharing,
                            const DeviceProperties& device, const RowKey& key, std::int64_t rows) {
  const Spaces& spaces = spaces_of(op);
  const tune::Key of_blocks{key.bits, key.h, key.access, key.operands, rows};
  const bool parts = sharing == RowSharing::allowed && may_have_parts(of_blocks);
  const tune::Space& space = output == RowOutput::numbers
                                 ? (parts ? spaces.parts : spaces.blocks)
                                 : (parts ? spaces.code_parts : spaces.code_blocks);
  const tune::Config config = tune::choose(space, device, of_blocks);
  RowBlocks blocks{{}, static_cast<WeightLoads>(config[3]), config[4]};
  blocks.shape = {.h = key.h,
                  .vector_elems = static_cast<int>(key.access),
                  .threads_per_row = config[0],
                  .rows_per_block = config[1],
                  .turns = config[2],
                  .parts = config[5],
                  .looped = is_looped(of_blocks)};
  if (!blocks.shape.looped)
    blocks.shape.vectors = static_cast<int>(ceil_div(accesses_of(of_blocks), config[0]));
  return blocks;
}

bool choose_merged(const DeviceProperties& device, const RowKey& key) {
  return tune::choose(kMerged, device, {key.bits, key.h, key.access})[0] == 1;
}

}  // namespace tilewright::rows
