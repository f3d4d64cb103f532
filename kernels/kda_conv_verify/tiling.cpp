// SPDX-License-Identifier: Apache-2.0
// How kda_conv_verify is cut into blocks, by the number of requests and heads.
#include "kernels/kda_conv_verify/kda_conv_verify.h"
#include "tilewright/tune.h"

#include <algorithm>
#include <array>

namespace tilewright {
namespace {

constexpr int number(KdaVariant variant) { return static_cast<int>(variant); }
constexpr int number(KdaFetch fetch) { return static_cast<int>(fetch); }

constexpr int kMaxCluster = 8;  // that every device of sm_90 runs
constexpr int kMaxTokensInShared = 8;

/// The largest power of two that divides `count`, up to `most`.
int dividing_power(int count, int most) {
  int power = 1;
  while (power * 2 <= most && count % (power * 2) == 0)
    power *= 2;
  return power;
}

/// The largest tile that divides V, and lanes' rows that divide the tile; a tile of one pass where
/// shared memory does not hold all tokens.
void fit_rows(KdaTiling& tiling, int v, std::int64_t tokens) {
  tiling.tile_rows = std::min(tiling.tile_rows, v);
  while (v % tiling.tile_rows != 0)
    tiling.tile_rows -= 32;
  while (tiling.tile_rows % tiling.pass_rows() != 0)
    tiling.rows_per_lane /= 2;
  if (tokens > kMaxTokensInShared) tiling.tile_rows = tiling.pass_rows();
}

constexpr std::array<tune::KeySpec, 6> kKeys{{{"tokens", tune::Match::nearest},
                                              {"group"},
                                              {"v"},
                                              {"snapshots"},
                                              {"heads", tune::Match::nearest},
                                              {"variant"}}};
constexpr std::array kVariants{number(KdaVariant::small_batch), number(KdaVariant::large_batch)};
constexpr std::array kWarps{2, 8, 9, 16, 17};
constexpr std::array kRows{16, 32, 64, 128};
constexpr std::array kLaneRows{1, 2, 4};
constexpr std::array kResident{1, 2};
constexpr std::array kEager{0, 1, 2};  // 2: guesses the state, too
constexpr std::array<std::string_view, 4> kFetchText{"", " fetch", " fetch_states", " fetch_ahead"};
constexpr std::array kFetch{number(KdaFetch::none), number(KdaFetch::inputs),
                            number(KdaFetch::states), number(KdaFetch::ahead)};
constexpr std::array<tune::Knob, 7> kKnobs{{{"variant", kVariants},
                                            {"warps", kWarps},
                                            {"rows", kRows},
                                            {"lane_rows", kLaneRows},
                                            {"resident", kResident},
                                            {"eager", kEager},
                                            {"fetch", kFetch}}};
constexpr std::array<std::string_view, 3> kOfRows{"NT", "L", "S"};
constexpr std::array<tune::Reducible, 1> kReducible{{{"N", 2, kOfRows}}};

/// The fewer heads there are, the more blocks share one, and the more a block loads at once.
tune::Config standard(const DeviceProperties&, const tune::Key& key) {
  const auto [tokens, group, v, snapshots, heads, variant, g, h] = key;
  KdaTiling tiling;
  if (variant == number(KdaVariant::small_batch)) {
    tiling = {.variant = KdaVariant::small_batch, .warps = 2, .tile_rows = 16, .blocks_per_sm = 1};
  } else if (heads <= 16) {
    tiling = {
        .tile_rows = heads <= 8 ? 16 : 32, .rows_per_lane = 1, .blocks_per_sm = 1, .eager = true};
  } else if (heads <= 128) {
    tiling = {.tile_rows = 64, .rows_per_lane = 2};
  } else if (heads >= 2048) {
    tiling.blocks_per_sm = 1;  // fewer streams of writes at a time
  }
  fit_rows(tiling, static_cast<int>(v), tokens);
  return {number(tiling.variant),
          tiling.warps,
          tiling.tile_rows,
          tiling.rows_per_lane,
          tiling.blocks_per_sm,
          tiling.eager ? 1 : 0,
          0};
}

KdaTiling tiling_of(const tune::Config& config) {
  const auto [variant, warps, rows, lane_rows, resident, eager, fetch, h] = config;
  return {.variant = static_cast<KdaVariant>(variant),
          .warps = warps,
          .tile_rows = rows,
          .rows_per_lane = lane_rows,
          .blocks_per_sm = resident,
          .eager = eager != 0,
          .fetch = static_cast<KdaFetch>(fetch),
          .guesses_state = eager == 2};
}

/// The block's warps, lanes' rows and tile fit each other: the block has its tile in registers,
/// with as few rows a lane as its warps allow.
bool fits(const KdaTiling& tiling, std::int64_t v) {
  if (tiling.tile_rows < 8 || v % tiling.tile_rows != 0) return false;
  if (tiling.variant == KdaVariant::small_batch) {
    return tiling.warps == 2 && tiling.tile_rows == tiling.pass_rows() && !tiling.eager &&
           tiling.fetch == KdaFetch::none && tiling.blocks_per_sm == 1;
  }
  if (tiling.warps < 8 || tiling.tile_rows != tiling.pass_rows()) return false;
  const bool many = tiling.warps > 9;  // of few registers each
  if (many && (tiling.blocks_per_sm > 1 || (tiling.tile_rows < 64 && !tiling.eager))) return false;
  // 128 registers hold the loads of a warp's tokens, and a row of the state.
  const bool tight = tiling.warps == 16 || tiling.blocks_per_sm > 1;
  if (tiling.eager && tight && tiling.rows_per_lane > 1) return false;
  if (tiling.eager && (tiling.warps == 17 || (tiling.warps == 9 && tight))) return false;
  const bool has_guess = tiling.fetch == KdaFetch::states || tiling.fetch == KdaFetch::ahead;
  if (tiling.guesses_state && (tight || !has_guess)) return false;
  // A dependent launch has to find room for its blocks.
  const bool leaves_room = tiling.warps == 8 && tiling.blocks_per_sm == 2;
  if (!tiling.eager && tiling.fetch != KdaFetch::none &&
      (!leaves_room || tiling.fetch == KdaFetch::inputs)) {
    return false;
  }
  const int rows_of_lanes = tiling.warps / 8 * 32 * tiling.rows_per_lane;
  return tiling.tile_rows == rows_of_lanes || tiling.rows_per_lane == 1 ||
         (tiling.tile_rows == v && !many);
}

bool valid(const DeviceProperties&, const tune::Key& key, const tune::Config& config) {
  const auto [tokens, group, v, snapshots, heads, variant, g, h] = key;
  for (std::size_t i = 0; i < kKnobs.size(); ++i) {
    const std::span<const int> values = kKnobs[i].values;
    const bool known = std::find(values.begin(), values.end(), config[i]) != values.end();
    if (!known && values.data() != kRows.data()) return false;  // V may ask for other tiles
  }
  const KdaTiling tiling = tiling_of(config);
  return (variant == 0 || variant == config[0]) && fits(tiling, v);
}

constexpr tune::Space kSpace{"kda_conv_verify", kKeys, kKnobs, standard, valid, kReducible};

}  // namespace

int KdaTiling::pass_rows() const {
  int row_warps = variant == KdaVariant::small_batch ? 1 : warps / 8 * 8;
  return std::min(tile_rows, row_warps * 4 * rows_per_lane);
}

std::string to_string(const KdaTiling& t) {
  return std::string(t.variant == KdaVariant::small_batch ? "small" : "large") +
         " w=" + std::to_string(t.warps) + " rows=" + std::to_string(t.tile_rows) +
         " r=" + std::to_string(t.rows_per_lane) + " c=" + std::to_string(t.cluster) +
         " b=" + std::to_string(t.blocks_per_sm) +
         (t.guesses_state ? " eager_state"
          : t.eager       ? " eager"
                          : "") +
         (t.streaming ? " streaming" : "") + (t.in_step ? " in_step" : "") +
         std::string(kFetchText[static_cast<std::size_t>(t.fetch)]);
}

KdaTiling choose_kda_tiling(const DeviceProperties& device, KdaVariant variant, std::int64_t rows,
                            bool snapshots, const KdaConvVerifyConfig& config) {
  KdaTiling tiling =
      tiling_of(tune::choose(kSpace, device,
                             {config.tokens, config.group(), config.v, snapshots ? 1 : 0,
                              rows * config.v_heads, number(variant)}));
  int tiles = config.group() * config.v / tiling.tile_rows;
  tiling.cluster = dividing_power(tiles, kMaxCluster);
  return tiling;
}

}  // namespace tilewright
