// SPDX-License-Identifier: Apache-2.0
// The spaces of a dispatch: its launches, then how its blocks share rows.
#include "kernels/moe_dispatch/space.h"

#include "kernels/moe_dispatch/limits.h"
#include "tilewright/tune.h"

#include <algorithm>
#include <array>

namespace tilewright {
namespace {

constexpr int kMaxThreads = 1024;
constexpr std::int64_t kMaxCounterBytes = 131'072;  // of a block's shared memory

constexpr int number(DispatchVariant variant) { return static_cast<int>(variant); }

/// Threads up to `most` whose warps' counters fit.
int threads_with_counters(std::int64_t experts, int most) {
  int threads = most;
  while (threads > 32 && threads / 32 * experts * 4 > kMaxCounterBytes)
    threads /= 2;
  return threads;
}

int standard_threads(std::int64_t choices, std::int64_t experts, DispatchVariant variant) {
  const bool one_launch =
      variant == DispatchVariant::replicated || variant == DispatchVariant::decode;
  constexpr std::int64_t kStepsOfFewWarps = 8;
  const bool few = choices <= 256 * (one_launch ? kStepsOfFewWarps : 1);
  return threads_with_counters(experts, few ? 256 : kMaxThreads);
}

// Keys of both spaces begin with the tokens.
constexpr std::array<tune::KeySpec, 4> kKeys{{{"tokens", tune::Match::nearest},
                                              {"k"},
                                              {"experts", tune::Match::nearest},
                                              {"row_bytes", tune::Match::nearest}}};
constexpr std::array kVariants{number(DispatchVariant::replicated), number(DispatchVariant::decode),
                               number(DispatchVariant::decode_dependent),
                               number(DispatchVariant::prefill),
                               number(DispatchVariant::prefill_dependent)};
constexpr std::array kThreads{256, 512, 1024};
constexpr std::array kBlocks{1, 16, 32, 64};
constexpr std::array<tune::Knob, 3> kKnobs{
    {{"variant", kVariants}, {"threads", kThreads}, {"blocks", kBlocks}}};
constexpr std::array<tune::Reducible, 2> kReducible{{{"T", 300}, {"H", 1024}}};

constexpr bool is_team(int variant) { return variant >= number(DispatchVariant::prefill); }
constexpr int most_blocks(DispatchVariant variant) {
  return is_team(number(variant)) ? static_cast<int>(kMaxRouteBlocks) : 1;
}

/// Few choices are routed by every block; many by several blocks, which a copy then follows.
tune::Config standard(const DeviceProperties&, const tune::Key& key) {
  constexpr std::int64_t kMostForEveryBlock = 1024;
  const std::int64_t choices = key[0] * key[1];
  const DispatchVariant variant = choices <= kMostForEveryBlock
                                      ? DispatchVariant::replicated
                                      : DispatchVariant::prefill_dependent;
  return {number(variant), standard_threads(choices, key[2], variant), most_blocks(variant)};
}

bool is_power_of_warps(int threads) {
  return threads >= 32 && threads <= kMaxThreads && (threads & (threads - 1)) == 0;
}

bool valid(const DeviceProperties&, const tune::Key& key, const tune::Config& config) {
  const auto [variant, threads, blocks, d, e, f, g, h] = config;
  const bool known = variant >= kVariants.front() && variant <= kVariants.back() &&
                     (is_team(variant) ? blocks > 1 && blocks <= kMaxRouteBlocks : blocks == 1);
  const bool fits =
      variant != number(DispatchVariant::replicated) || key[0] * key[1] <= kMaxReplicatedChoices;
  return known && fits && is_power_of_warps(threads) &&
         threads_with_counters(key[2], threads) == threads;
}

constexpr tune::Space kSpace{"moe_dispatch", kKeys, kKnobs, standard, valid, kReducible};

// A launch that routes too has its threads from kSpace: they are a key there, and 0 as a knob.
constexpr std::array<tune::KeySpec, 5> kCopyKeys{{{"tokens", tune::Match::nearest},
                                                  {"k", tune::Match::nearest},
                                                  {"vectors", tune::Match::nearest},
                                                  {"vector_bytes"},
                                                  {"threads"}}};
constexpr std::array kCopyThreads{0, 32, 64, 128, 256};
constexpr std::array kAccesses{1, 2, 3, 4, 7, 8};
constexpr std::array kStages{0, 3, 4, 6};
constexpr std::array kStreaming{0, 1};
constexpr std::array<tune::Knob, 4> kCopyKnobs{{{"threads", kCopyThreads},
                                                {"accesses", kAccesses},
                                                {"stages", kStages},
                                                {"streaming", kStreaming}}};

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// A launch that copies alone has as few units as registers allow; others the fewest accesses with
/// which no multiprocessor has more than one unit.
tune::Config standard_copy(const DeviceProperties& device, const tune::Key& key) {
  const std::int64_t tokens = key[0], vectors = key[2], given = key[4];
  if (given == 0) {
    constexpr std::int64_t kThreadsOfCopy = 128, kMost = 8;
    const std::int64_t accesses = ceil_div(vectors, kThreadsOfCopy);
    return {kThreadsOfCopy, static_cast<int>(ceil_div(accesses, ceil_div(accesses, kMost))), 0, 0};
  }
  std::int64_t accesses = 1;
  const std::int64_t most = std::min<std::int64_t>(4, ceil_div(vectors, given));
  while (accesses < most && tokens * ceil_div(vectors, given * accesses) > device.sm_count)
    ++accesses;
  return {0, static_cast<int>(accesses), 0, 0};
}

/// Rows in shared memory are a warp's work, and whole vectors of 16 bytes.
bool valid_stages(const tune::Key& key, const tune::Config& config) {
  const auto [threads, accesses, stages, d, e, f, g, h] = config;
  return key[4] == 0 && threads == 32 && accesses == 1 && stages > 1 && stages <= 16 &&
         key[3] == kBulkGrain && stages * key[2] * kBulkGrain <= kMaxStageBytes;
}

bool valid_copy(const DeviceProperties&, const tune::Key& key, const tune::Config& config) {
  const auto [threads, accesses, stages, streaming, e, f, g, h] = config;
  if (streaming != 0 && streaming != 1) return false;
  if (stages != 0) return valid_stages(key, config);
  const std::int64_t given = key[4];
  const bool whole = given == 0 ? is_power_of_warps(threads) : threads == 0;
  const std::int64_t used = given == 0 ? threads : given;
  return whole && accesses >= 1 && accesses <= 8 &&
         (accesses == 1 || (accesses - 1) * used < key[2]);
}

constexpr tune::Space kCopySpace{"moe_dispatch.copy", kCopyKeys,  kCopyKnobs,
                                 standard_copy,       valid_copy, kReducible};

// What blocks that wait for the slots fetch into the L2 cache meanwhile.
constexpr std::array<tune::KeySpec, 3> kAheadKeys{
    {{"tokens", tune::Match::nearest}, {"unit_bytes", tune::Match::nearest}, {"stages"}}};
constexpr std::array kAhead{0, 1, 2, 4, 8};
constexpr std::array<tune::Knob, 1> kAheadKnobs{{{"units", kAhead}}};

tune::Config standard_ahead(const DeviceProperties&, const tune::Key&) { return {0}; }
bool valid_ahead(const DeviceProperties&, const tune::Key& key, const tune::Config& config) {
  return config[0] == 0 || (config[0] > 0 && config[0] <= 16 && key[1] % kBulkGrain == 0);
}
constexpr tune::Space kAheadSpace{"moe_dispatch.ahead", kAheadKeys,  kAheadKnobs,
                                  standard_ahead,       valid_ahead, kReducible};

}  // namespace

DispatchChoice choose_dispatch(const DeviceProperties& device, const DispatchSizes& sizes,
                               DispatchVariant asked) {
  const tune::Config config = tune::choose(
      kSpace, device,
      {std::max<std::int64_t>(sizes.tokens, 1), sizes.k, sizes.experts, sizes.row_bytes});
  const auto variant = static_cast<DispatchVariant>(config[0]);
  if (asked == DispatchVariant::automatic || asked == variant)
    return {variant, config[1], config[2]};
  return {asked, standard_threads(sizes.tokens * sizes.k, sizes.experts, asked),
          most_blocks(asked)};
}

void choose_copy(const DeviceProperties& device, std::int64_t tokens, int element_bytes,
                 DispatchStage stage, CopyConfig& config) {
  const std::int64_t given = stage == DispatchStage::copy ? 0 : config.threads;
  const std::int64_t vectors = ceil_div(config.columns, config.vector_elems);
  const std::int64_t some = std::max<std::int64_t>(tokens, 1);
  const tune::Config chosen = tune::choose(
      kCopySpace, device,
      {some, config.k, vectors, std::int64_t{config.vector_elems} * element_bytes, given});
  if (given == 0) config.threads = chosen[0];
  config.accesses = chosen[1];
  config.stages = chosen[2];
  config.streaming = chosen[3] == 1;
  if (given != 0) return;
  const int unit_bytes = config.unit_columns() * element_bytes;
  config.ahead = tune::choose(kAheadSpace, device, {some, unit_bytes, config.stages})[0];
}

}  // namespace tilewright
