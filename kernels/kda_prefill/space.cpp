// SPDX-License-Identifier: Apache-2.0
// The space of kda_prefill: token by token or in chunks, and the second kernel's blocks.
#include "kernels/kda_prefill/space.h"

#include "kernels/kda_prefill/kda_prefill.h"
#include "tilewright/tune.h"

#include <array>

namespace tilewright {
namespace {

constexpr std::array<tune::KeySpec, 6> kKeys{{{"tokens", tune::Match::nearest},
                                              {"sequences", tune::Match::nearest},
                                              {"v_heads", tune::Match::nearest},
                                              {"k"},
                                              {"v"},
                                              {"chunk"}}};
constexpr std::array kForms{0, 1};  // token by token, in chunks
constexpr std::array kWarps{2, 4, 8};
constexpr std::array kStages{2, 3};
constexpr std::array kClusters{1, 2, 4};
constexpr std::array<tune::Knob, 5> kKnobs{{{"chunked", kForms},
                                            {"scan_warps", kWarps},
                                            {"stages", kStages},
                                            {"cluster", kClusters},
                                            {"helpers", kForms}}};
constexpr std::array<tune::Reducible, 1> kReducible{{{"T", 300}}};

std::int64_t columns_of(int warps) { return std::int64_t{warps} * kBlockRows; }

/// Chunks, unless sequences have fewer tokens than pay for one. Few heads: blocks of two states and
/// two helpers, for the shortest chain of chunks; more than one of these for a multiprocessor: more
/// states a block, which read a record less often. Blocks of a cluster wait for one another with
/// each record, and lose more than they save.
tune::Config standard(const DeviceProperties& device, const tune::Key& key) {
  const auto [tokens, sequences, v_heads, k, v, chunk, a, b] = key;
  constexpr int kSmCount = 132;  // of an H200, for traces without a device
  const int sm_count = device.sm_count > 0 ? device.sm_count : kSmCount;
  const std::int64_t columns = sequences * v_heads * v;
  int warps = 2;
  while (warps < 8 && v % columns_of(2 * warps) == 0 && columns / columns_of(warps) > sm_count)
    warps *= 2;
  constexpr std::int64_t kFewestTokens = 11;  // whose chunk takes less than one by one on an H200
  if (tokens < kFewestTokens) return {0, 2, 2, 1, 0};
  return {1, warps, 2, 1, warps == 2 ? 1 : 0};
}

bool valid(const DeviceProperties& device, const tune::Key& key, const tune::Config& config) {
  const auto [chunked, warps, stages, cluster, helpers, e, f, g] = config;
  if (chunked == 0) return warps == 2 && stages == 2 && cluster == 1 && helpers == 0;
  ChunkConfig chunk{.shape = {static_cast<int>(key[5]), static_cast<int>(key[3])},
                    .scan_warps = warps,
                    .stages = stages,
                    .helpers = helpers};
  const int limit = device.smem_per_block_bytes > 0 ? device.smem_per_block_bytes : 232'448;
  constexpr int kOwnBytes = 1024;  // mbarriers
  const bool covers = key[4] % columns_of(warps) == 0 && key[4] / columns_of(warps) % cluster == 0;
  const bool helps = helpers == 0 || (helpers == 1 && warps <= 4);
  return chunked == 1 && covers && helps && chunk.scan_smem_bytes() + kOwnBytes <= limit;
}

constexpr tune::Space kSpace{"kda_prefill", kKeys, kKnobs, standard, valid, kReducible};

}  // namespace

PrefillChoice choose_prefill(const DeviceProperties& device, const PrefillSizes& s) {
  const tune::Config config =
      tune::choose(kSpace, device, {s.tokens, s.sequences, s.v_heads, s.k, s.v, s.chunk});
  return {config[0] != 0, config[1], config[2], config[3], config[4]};
}

}  // namespace tilewright
