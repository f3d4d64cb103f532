// SPDX-License-Identifier: Apache-2.0
// The gated delta rule on whole sequences, chunk by chunk on tensor cores.
#pragma once

#include "kernels/kda_decode/kda_decode.h"
#include "kernels/kda_prefill/chunk_record.h"

#include <optional>
#include <string>
#include <vector>

namespace tilewright {

/// What both kernels of the chunked form are specialised for.
struct ChunkConfig {
  ChunkShape shape;
  int q_heads = 1, v_heads = 1, v = 128;
  DecayGate gate = DecayGate::softplus;
  StateLayout layout = StateLayout::vk;
  bool neg_eigval = false;
  int scan_warps = 4;  ///< of a block of the second kernel: 16 columns of v each
  int stages = 2;
  int cluster = 1;  ///< blocks with other columns of one head, which share a record's copies
  int helpers = 0;  ///< 1: another warp makes the outputs of each state
  friend bool operator==(const ChunkConfig&, const ChunkConfig&) = default;

  int scan_columns() const { return scan_warps * kBlockRows; }
  int prepare_threads() const { return shape.k / 2 * shape.blocks(); }
  // Eight warps with a state each have registers enough only if the others give theirs away, by
  // whole warpgroups.
  int producer_warps() const { return scan_warps == 8 ? 4 : 1; }
  int carrier_registers() const { return scan_warps == 8 ? 232 : 0; }
  int producer_registers() const { return scan_warps == 8 ? 40 : 0; }
  bool readers() const { return helpers != 0; }
  int scan_threads() const { return (scan_warps * (readers() ? 2 : 1) + producer_warps()) * 32; }
  // Offsets in the second kernel's shared memory, after the stages.
  std::int64_t out_at() const;
  std::int64_t handover_at() const;
  std::int64_t prepare_smem_bytes() const;
  std::int64_t scan_smem_bytes() const;
};
std::string to_string(const ChunkConfig& config);

/// The first kernel: the record of every chunk and head, from q, k and the gates.
struct ChunkPreparePlan {
  std::string op;  ///< names the kernel
  ChunkConfig config;
  KdaDecodeOptions options;
  KdaDecodeTensors tensors;
  View records;  ///< [places x HV, elements] operands
  KdaDecodeArguments<TensorArg> args;
  TensorArg records_arg;
  LaunchConfig launch;

  std::string key() const;
  Traced trace(ptx::Target target) const;
  Parameters parameters() const;
};

/// The second kernel: states and outputs, from the records and v, chunk after chunk.
struct ChunkScanPlan {
  std::string op;
  ChunkConfig config;
  KdaDecodeOptions options;
  KdaDecodeTensors tensors;
  View records;
  KdaDecodeArguments<TensorArg> args;
  TensorArg records_arg;
  LaunchConfig launch;

  std::string key() const;
  Traced trace(ptx::Target target) const;
  Parameters parameters() const;
};

struct ChunkPlans {
  ChunkPreparePlan prepare;
  ChunkScanPlan scan;
};

/// What to take in chunks: tensors that have been checked, and how.
struct ChunkRequest {
  KdaDecodeTensors tensors;
  KdaDecodeArguments<TensorArg> args;
  KdaDecodeOptions options = {};
  ChunkConfig config = {};  ///< shape.tokens: the most tokens of a chunk
};
/// Bytes of workspace that chunks of these sequences may need: contents do not matter.
std::int64_t chunk_workspace_bytes(const View& q, const View& v,
                                   const std::optional<View>& cu_seqlens, ChunkShape shape);
/// The two launches; nothing where token by token is better, or tensors are not aligned for chunks.
/// Throws Error(user) if the workspace is too small.
std::optional<ChunkPlans> plan_chunks(const DeviceProperties& device, const ChunkRequest& request,
                                      const Workspace& workspace, const rows::Caller& caller);
void launch_chunks(const Stream& stream, const ChunkPlans& plans, SourceLoc at = SourceLoc::here());

/// Either form: token by token, or in chunks.
struct KdaPrefillPlan {
  KdaDecodePlan by_token;  ///< also holds the checked tensors
  std::optional<ChunkPlans> chunks = {};
};
struct KdaPrefillOptions {
  KdaDecodeOptions rule = {};
  int chunk = 64;  ///< the most tokens to take at once: 64, 32, 16, or less for token by token
};

/// Tokens of the chunks that as many tokens may be taken in, at most `most` at once; 0: one by one.
int chunked_tokens(std::int64_t tokens, int most);

std::int64_t kda_prefill_workspace_bytes(const KdaDecodeTensors& tensors,
                                         const KdaPrefillOptions& options = {});

/// Chunks have operands of ChunkShape::operand() and sums of f32; states stay f32. `op` begins
/// messages.
KdaPrefillPlan plan_kda_prefill(const DeviceProperties& device, std::string_view op,
                                const KdaDecodeTensors& tensors,
                                const KdaPrefillOptions& options = {},
                                const Workspace& workspace = {}, SourceLoc at = SourceLoc::here());
/// Runs on the stream. Allocates nothing on the device and does not wait.
void launch_kda_prefill(const Stream& stream, const KdaPrefillPlan& plan,
                        SourceLoc at = SourceLoc::here());

/// plan_kda_prefill() and launch_kda_prefill() in one, the second with options.rule.scalar_gate.
void kda_prefill(const Stream& stream, const KdaDecodeTensors& tensors,
                 const KdaPrefillOptions& options = {}, const Workspace& workspace = {},
                 SourceLoc at = SourceLoc::here());
void gated_delta_rule(const Stream& stream, const KdaDecodeTensors& tensors,
                      const KdaPrefillOptions& options = {}, const Workspace& workspace = {},
                      SourceLoc at = SourceLoc::here());

/// The kernels that the plan would launch, in order.
std::vector<Traced> traced_kernels(const KdaPrefillPlan& plan, ptx::Target target);

/// The contract's, K 4. Operands of chunks have 11 bits, and a state meets about six roundings of
/// them: 5e-4 where keys differ, and ten times that where hundreds of tokens with almost the same
/// key correct each other without a decay. The rounding of `out` to bf16 is at most 4e-3 besides.
Tolerance chunk_tolerance(std::string_view output);

const Operator& kda_prefill_operator();

}  // namespace tilewright
