// SPDX-License-Identifier: Apache-2.0
// How kda_conv_verify is cut into blocks, by the number of requests and heads.
#include "kernels/kda_conv_verify/kda_conv_verify.h"

#include <algorithm>

namespace tilewright {
namespace {

constexpr int kMaxCluster = 8;  // that every device of sm_90 runs
constexpr int kMaxTokensInShared = 8;

/// The largest power of two that divides `count`, up to `most`.
int dividing_power(int count, int most) {
  int power = 1;
  while (power * 2 <= most && count % (power * 2) == 0)
    power *= 2;
  return power;
}

/// The largest tile that divides V, and lanes' rows that divide the tile.
void fit_rows(KdaTiling& tiling, int v) {
  tiling.tile_rows = std::min(tiling.tile_rows, v);
  while (v % tiling.tile_rows != 0)
    tiling.tile_rows -= 32;
  while (tiling.tile_rows % tiling.pass_rows() != 0)
    tiling.rows_per_lane /= 2;
}

KdaTiling small_batch_tiling() {
  return {.variant = KdaVariant::small_batch,
          .warps = 2,
          .tile_rows = 16,
          .rows_per_lane = 4,
          .cluster = kMaxCluster,
          .blocks_per_sm = 1};
}

/// The fewer heads there are, the more blocks share one, and the more a block loads at once.
/// Crossovers measured on an H200 at 4, 6 and 8 tokens.
KdaTiling large_batch_tiling(std::int64_t work) {
  KdaTiling tiling{.cluster = kMaxCluster};
  if (work <= 16) {
    tiling.tile_rows = work <= 8 ? 16 : 32;
    tiling.rows_per_lane = 1;
    tiling.blocks_per_sm = 1;
    tiling.eager = true;
  } else if (work <= 128) {
    tiling.tile_rows = 64;
    tiling.rows_per_lane = 2;
  } else if (work >= 2048) {
    tiling.blocks_per_sm = 1;  // fewer streams of writes at a time
  }
  return tiling;
}

}  // namespace

int KdaTiling::pass_rows() const {
  int row_warps = variant == KdaVariant::small_batch ? 1 : warps;
  return std::min(tile_rows, row_warps * 4 * rows_per_lane);
}

std::string to_string(const KdaTiling& t) {
  return std::string(t.variant == KdaVariant::small_batch ? "small" : "large") +
         " w=" + std::to_string(t.warps) + " rows=" + std::to_string(t.tile_rows) +
         " r=" + std::to_string(t.rows_per_lane) + " c=" + std::to_string(t.cluster) +
         " b=" + std::to_string(t.blocks_per_sm) + (t.eager ? " eager" : "") +
         (t.streaming ? " streaming" : "") + (t.in_step ? " in_step" : "");
}

KdaTiling choose_kda_tiling(KdaVariant variant, std::int64_t rows,
                            const KdaConvVerifyConfig& config) {
  // small_batch has won nowhere yet.
  KdaTiling tiling = variant == KdaVariant::small_batch ? small_batch_tiling()
                                                        : large_batch_tiling(rows * config.v_heads);
  fit_rows(tiling, config.v);
  if (config.tokens > kMaxTokensInShared) tiling.tile_rows = tiling.pass_rows();
  int tiles = config.group() * config.v / tiling.tile_rows;
  tiling.cluster = dividing_power(tiles, tiling.cluster);
  return tiling;
}

}  // namespace tilewright
