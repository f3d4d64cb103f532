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

/// Blocks of two warps until all multiprocessors have one; then wider ones, which read a record
/// less often.
tune::Config standard(const DeviceProperties& device, const tune::Key& key) {
  constexpr std::int64_t kFewestTokens = 64;  // of a sequence in chunks
  const auto [tokens, sequences, v_heads, k, v, chunk, a, b] = key;
  const int chunked = tokens >= kFewestTokens ? 1 : 0;
  const std::int64_t heads = sequences * v_heads;
  int warps = 8;
  while (warps > 2 &&
         (v % columns_of(warps) != 0 || heads * v / columns_of(warps) < device.sm_count))
    warps /= 2;
  const std::int64_t slices = v / columns_of(warps);
  const int cluster = slices % 4 == 0 ? 4 : slices % 2 == 0 ? 2 : 1;
  return {chunked, warps, 2, chunked == 0 ? 1 : cluster, 0};
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
