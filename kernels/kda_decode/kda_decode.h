// SPDX-License-Identifier: Apache-2.0
// The gated delta rule token by token, from activated q, k and v: kda_decode, kda_prefill and
// gated_delta_rule.
#pragma once

#include "kernels/kda/gate.h"
#include "kernels/rows/rows.h"
#include "tilewright/operator.h"
#include "tilewright/trace.h"

#include <optional>
#include <string>

namespace tilewright {

/// N requests of T tokens, or of as many as cu_seqlens says; HV is a multiple of H. Slots of one
/// launch are different.
template <class T>
struct KdaDecodeArguments {
  T q;                            ///< [N, T, H, K] bf16
  T k;                            ///< [N, T, H, K] bf16
  T v;                            ///< [N, T, HV, V] bf16
  T a;                            ///< [N, T, HV, K] bf16 or f32; [N, T, HV] f32: DecayGate::factor
  T b;                            ///< [N, T, HV] bf16; f32: DecayGate::factor
  std::optional<T> A_log = {};    ///< [HV] f32. NOLINT(readability-identifier-naming): its name
  std::optional<T> dt_bias = {};  ///< [HV, K] f32
  /// [N + 1] s32: the first token of each request; q and the others are then [1, tokens, ...].
  std::optional<T> cu_seqlens = {};
  std::optional<T> state = {};    ///< [slots, HV, V, K] f32, or [slots, HV, K, V]; absent: zeros
  std::optional<T> indices = {};  ///< [N] s32 or s64: slots; negative: inactive. Absent: 0 .. N - 1
  T out;                          ///< [N, T, HV, V] bf16
  std::optional<T> final_state = {};  ///< as state, and may be the same
  std::optional<T> snapshots = {};    ///< [N, T, HV, V, K] f32: the state after each token
};
using KdaDecodeTensors = KdaDecodeArguments<View>;

enum class StateLayout : std::uint8_t {
  vk,
  kv
};  ///< which index is next to itself in memory: k, v

/// Where the decay comes from.
enum class DecayGate : std::uint8_t {
  safe,      ///< L sigmoid(A u)
  softplus,  ///< -A softplus(u)
  given,     ///< `a` is the log decay: neither A_log nor a lower bound
  fixed,     ///< `a` [H] holds s: e^-s, with no correction and no `b` (lightning_attention)
  factor     ///< `a` is the decay factor of a whole head, `b` the strength of its correction
};

struct KdaDecodeOptions {
  std::optional<float> scale = {};  ///< of q; absent: 1 / sqrt(K)
  kda::GateOptions gate = {};
  StateLayout state_layout = StateLayout::vk;
  bool neg_eigval = false;   ///< the strength of a correction is 2 sigmoid(b)
  bool scalar_gate = false;  ///< DecayGate::factor
};

struct KdaDecodeConfig {
  bool one_token = true;
  int q_heads = 1, v_heads = 1;
  int k = 128, v = 128;
  int warps = 4;
  int rows_per_lane = 4;
  DecayGate gate = DecayGate::softplus;
  StateLayout layout = StateLayout::vk;
  bool neg_eigval = false;
  friend bool operator==(const KdaDecodeConfig&, const KdaDecodeConfig&) = default;

  int block_rows() const { return warps * rows_per_lane * 4; }
};
std::string to_string(const KdaDecodeConfig& config);

struct KdaDecodePlan {
  std::string op;
  KdaDecodeConfig config;
  KdaDecodeOptions options;
  KdaDecodeTensors tensors;
  KdaDecodeArguments<TensorArg> args;
  LaunchConfig launch;

  std::string key() const;
  Traced trace(ptx::Target target) const;
  Parameters parameters() const;
};

/// Checks the arguments and chooses the configuration. `op` begins messages and names the kernel.
/// One token of each of N requests may also be given as [1, N, ...] with N indices.
KdaDecodePlan plan_kda_decode(std::string_view op, const KdaDecodeTensors& tensors,
                              const KdaDecodeOptions& options = {},
                              SourceLoc at = SourceLoc::here());
/// Runs on the stream. Allocates nothing on the device and does not wait.
void launch_kda_decode(const Stream& stream, const KdaDecodePlan& plan,
                       SourceLoc at = SourceLoc::here());

/// plan_kda_decode() and launch_kda_decode() in one.
void kda_decode(const Stream& stream, const KdaDecodeTensors& tensors,
                const KdaDecodeOptions& options = {}, SourceLoc at = SourceLoc::here());

const Operator& kda_decode_operator();
const Operator& gated_delta_rule_operator();

}  // namespace tilewright
