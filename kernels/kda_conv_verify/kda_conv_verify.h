// SPDX-License-Identifier: Apache-2.0
// kda_conv_verify: convolution, gates and the gated delta rule over draft tokens in one launch.
#pragma once

#include "kernels/kda/gate.h"
#include "kernels/rows/rows.h"
#include "tilewright/operator.h"
#include "tilewright/trace.h"

#include <optional>
#include <string>

namespace tilewright {

/// N rows of T tokens, H query and key heads, HV value heads, D = 2 H K + HV V channels. Index
/// tensors are s32 or s64 and may be strided. Within a launch no two active rows share a line of
/// conv_state or of a pool that is written. Convolution tensors are f32 or bf16.
template <class T>
struct KdaConvVerifyArguments {
  T mixed_qkv;                      ///< [N T, D] bf16; rows may be apart
  T conv_weight;                    ///< [D, 4]: tap 3 multiplies the newest input
  std::optional<T> conv_bias = {};  ///< [D]
  T conv_state;          ///< [lines, D, 3], taps or channels next to each other; oldest first
  T conv_state_indices;  ///< [N]: the line of a row; negative: the row is inactive
  T intermediate_state_indices;  ///< [N]: the row's line of the snapshots; negative: none
  T a;                           ///< [N, T, HV, K] bf16
  T b;                           ///< [N, T, HV] bf16
  T A_log;                       ///< [HV] f32. NOLINT(readability-identifier-naming): its name
  T dt_bias;                     ///< [HV, K] f32
  T ssm_states;                  ///< [slots, HV, V, K] f32; only read
  T cache_indices;               ///< [N]: the row's slot; negative: the row is inactive
  T out;                         ///< [N, T, HV, V] bf16
  std::optional<T> intermediate_states_buffer = {};  ///< [rows, >= T, HV, V, K] f32
  std::optional<T> intermediate_conv_window = {};    ///< [lines, >= T, D, 3] of conv_state's type
  // What each token adds to the state, from which kda_commit makes the state after any of them.
  std::optional<T> d_records = {};      ///< [N, T, HV, V] f32: d
  std::optional<T> k_records = {};      ///< [N, T, HV, K] f32: k of length 1
  std::optional<T> decay_records = {};  ///< [N, T, HV, K] f32: e^g
};
using KdaConvVerifyTensors = KdaConvVerifyArguments<View>;

enum class SnapshotIndexMode : std::uint8_t {
  by_row,   ///< states of row n go to row n of the buffer
  by_index  ///< to the line that intermediate_state_indices names
};
enum class ConvStateMode : std::uint8_t {
  roll,  ///< conv_state becomes the last three inputs
  keep   ///< conv_state is only read
};
enum class KdaVariant : std::uint8_t { automatic, small_batch, large_batch };

struct KdaConvVerifyOptions {
  std::optional<float> scale = {};  ///< of q; absent: 1 / sqrt(K)
  kda::GateOptions gate = {};
  bool use_qk_l2norm = true;
  SnapshotIndexMode snapshot_index_mode = SnapshotIndexMode::by_row;
  ConvStateMode conv_state_mode = ConvStateMode::roll;
  KdaVariant variant = KdaVariant::automatic;
};

/// What a dependent launch brings into the L2 cache while it waits for its predecessor.
enum class KdaFetch : std::uint8_t {
  none,
  inputs,  ///< what needs no index
  states,  ///< also the rows of the pools that the indices name by then
  ahead    ///< states, and its own dependent may begin to do so at once
};

/// How a launch is cut into blocks.
struct KdaTiling {
  KdaVariant variant = KdaVariant::large_batch;
  int warps = 8;           ///< of a block: a multiple of 8, one more to roll conv_state, or 2
  int tile_rows = 128;     ///< rows of a value head's state that a block handles at a time
  int rows_per_lane = 4;   ///< of them in a lane's registers
  int cluster = 1;         ///< blocks that share a query head, and so its convolution state
  int blocks_per_sm = 2;   ///< that registers must allow
  bool eager = false;      ///< loads everything before it computes: for few blocks
  bool streaming = false;  ///< snapshots leave the L2 cache first
  bool in_step = false;    ///< the block's warps pass a barrier after each token
  KdaFetch fetch = KdaFetch::none;
  /// Eager, and by the indices before the launch in front has ended: again if these change.
  bool guesses_state = false;
  friend bool operator==(const KdaTiling&, const KdaTiling&) = default;

  /// Rows of the tile that the block's warps have at once.
  int pass_rows() const;
};
std::string to_string(const KdaTiling& tiling);

/// The specialisation besides the facts of the arguments.
struct KdaConvVerifyConfig {
  KdaTiling tiling;
  int tokens = 1;
  int q_heads = 1, v_heads = 1;
  int k = 128, v = 128;
  bool safe_gate = false;
  bool l2norm = true;
  bool by_index = false;
  bool roll = true;
  friend bool operator==(const KdaConvVerifyConfig&, const KdaConvVerifyConfig&) = default;

  int group() const { return v_heads / q_heads; }
  /// Tiles that the blocks of a cluster share, and those of one block.
  int tiles() const { return group() * v / tiling.tile_rows; }
  int tiles_per_block() const { return tiles() / tiling.cluster; }
  int q_channel() const { return 0; }
  int k_channel() const { return q_heads * k; }
  int v_channel() const { return 2 * q_heads * k; }
};
std::string to_string(const KdaConvVerifyConfig& config);

struct KdaConvVerifyPlan {
  KdaConvVerifyConfig config;
  KdaConvVerifyOptions options;
  KdaConvVerifyTensors tensors;  ///< of the ranks that KdaConvVerifyArguments names
  KdaConvVerifyArguments<TensorArg> args;
  LaunchConfig launch;

  std::string key() const;
  Traced trace(ptx::Target target) const;
  Parameters parameters() const;
};

/// The tiling of `auto` or of a named variant for `rows` N.
KdaTiling choose_kda_tiling(const DeviceProperties& device, KdaVariant variant, std::int64_t rows,
                            bool snapshots, const KdaConvVerifyConfig& config);

/// Checks the arguments and chooses the configuration. `tiling` overrides the choice.
KdaConvVerifyPlan plan_kda_conv_verify(const DeviceProperties& device,
                                       const KdaConvVerifyTensors& tensors,
                                       const KdaConvVerifyOptions& options = {},
                                       const std::optional<KdaTiling>& tiling = {},
                                       SourceLoc at = SourceLoc::here());

/// Runs on the stream. Allocates nothing on the device and does not wait. No rows or no tokens:
/// launches nothing.
void kda_conv_verify(const Stream& stream, const KdaConvVerifyTensors& tensors,
                     const KdaConvVerifyOptions& options = {}, SourceLoc at = SourceLoc::here());

const Operator& kda_conv_verify_operator();
const Operator& kda_verify_compact_operator();

}  // namespace tilewright
