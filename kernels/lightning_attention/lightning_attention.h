// SPDX-License-Identifier: Apache-2.0
// lightning_attention: linear attention with a fixed decay a head.
#pragma once

#include "kernels/kda_prefill/kda_prefill.h"
#include "kernels/rows/rows.h"
#include "tilewright/operator.h"
#include "tilewright/trace.h"

#include <optional>
#include <string>

namespace tilewright {

/// N requests of T tokens, or of as many as cu_seqlens says; HV is a multiple of H.
template <class T>
struct LightningArguments {
  T q;                               ///< [N, T, H, K] bf16
  T k;                               ///< [N, T, H, K] bf16
  T v;                               ///< [N, T, HV, V] bf16
  T decay;                           ///< [H] f32: s; a state shrinks by e^-s a token
  std::optional<T> cu_seqlens = {};  ///< [N + 1] s32; q and the others are then [1, tokens, ...]
  std::optional<T> state = {};       ///< [slots, HV, V, K] f32; absent: zeros
  std::optional<T> indices = {};     ///< [N] s32 or s64: slots; negative: inactive
  T out;                             ///< [N, T, HV, V] bf16
};
using LightningTensors = LightningArguments<View>;

struct LightningOptions {
  float scale = 1.0f;
  bool commit = true;  ///< write the state back
};

struct LightningConfig {
  int q_heads = 1, v_heads = 1;
  int k = 128, v = 128;
  int warps = 4;
  int rows_per_lane = 4;
  bool one_token = true;
  bool commit = true;
  friend bool operator==(const LightningConfig&, const LightningConfig&) = default;
  int block_rows() const { return warps * rows_per_lane * 4; }
};
std::string to_string(const LightningConfig& config);

struct LightningPlan {
  LightningConfig config;
  LightningOptions options;
  LightningTensors tensors;
  LightningArguments<TensorArg> args;
  LaunchConfig launch;                    ///< token by token
  std::optional<ChunkPlans> chunks = {};  ///< instead of that

  std::string key() const;
  Traced trace(ptx::Target target) const;
  Parameters parameters() const;
};
/// Bytes of workspace that chunks of these sequences may need: contents do not matter.
std::int64_t lightning_workspace_bytes(const LightningTensors& tensors);

/// q, k, v and out may lack T (one token each) or, with cu_seqlens, N. Without a workspace tokens
/// are taken one by one, else long sequences in chunks, with operands of bf16.
LightningPlan plan_lightning_attention(const DeviceProperties& device,
                                       const LightningTensors& tensors,
                                       const LightningOptions& options = {},
                                       const Workspace& workspace = {},
                                       SourceLoc at = SourceLoc::here());
void launch_lightning_attention(const Stream& stream, const LightningPlan& plan,
                                SourceLoc at = SourceLoc::here());

/// Runs on the stream. Allocates nothing on the device and does not wait.
void lightning_attention(const Stream& stream, const LightningTensors& tensors,
                         const LightningOptions& options = {}, const Workspace& workspace = {},
                         SourceLoc at = SourceLoc::here());

const Operator& lightning_attention_operator();

}  // namespace tilewright
