// SPDX-License-Identifier: Apache-2.0
// The host side of kda_prefill: which form, its two launches and their workspace.
#include "kernels/kda_prefill/kda_prefill.h"
#include "kernels/kda_prefill/space.h"
#include "kernels/rows/row_shape.h"

#include <algorithm>
#include <cmath>

namespace tilewright {
namespace {

constexpr int kFewestChunkTokens = kBlockRows;

std::int64_t sequences_of(const KdaDecodeTensors& t) {
  return t.cu_seqlens ? t.cu_seqlens->shape[0] - 1 : t.q.shape[0];
}

/// The largest chunk of 64, 32 or 16 tokens that is not above `chunk`; 0: none.
int chunk_tokens(int chunk) {
  int tokens = 64;
  while (tokens > chunk)
    tokens /= 2;
  return tokens >= kFewestChunkTokens ? tokens : 0;
}

std::int64_t places_of(const KdaDecodeTensors& t, int chunk) {
  std::int64_t tokens = t.q.shape[1], sequences = sequences_of(t);
  if (t.cu_seqlens) return tokens / chunk + sequences;
  return rows::ceil_div(tokens, chunk) * sequences;
}

/// Pairs of channels and 16 bytes of v can be read at once.
bool is_aligned(const KdaDecodeTensors& t, const KdaDecodeOptions& options) {
  auto divides = [](const View& view, std::int64_t bytes) {
    std::int64_t elems = bytes / tilewright::bytes(view.type);
    bool all = view.address % static_cast<std::uint64_t>(bytes) == 0;
    for (int mode = 0; mode + 1 < view.rank; ++mode)
      all = all && view.stride[static_cast<std::size_t>(mode)] % elems == 0;
    return all;
  };
  auto pairs = [&](const View& view) {
    return divides(view, std::int64_t{2} * tilewright::bytes(view.type));
  };
  bool gate = options.scalar_gate || pairs(t.a);
  bool bias = !t.dt_bias || pairs(*t.dt_bias);
  bool states = true;
  for (const std::optional<View>* state : {&t.state, &t.final_state})
    states = states && (!*state || pairs(**state));
  return pairs(t.q) && pairs(t.k) && gate && bias && states && divides(t.v, 16) &&
         divides(t.out, 16);
}

/// Chunks need decays of at most 1: products of growing ones may leave f16.
bool is_chunkable(const KdaDecodeTensors& t, const KdaPrefillOptions& options) {
  const std::optional<float>& bound = options.rule.gate.lower_bound;
  bool grows = bound && *bound > 0;
  return chunk_tokens(options.chunk) > 0 && t.q.rank == 4 && t.v.rank == 4 &&
         t.q.shape[1] >= kFewestChunkTokens && !grows && !t.snapshots &&
         is_aligned(t, options.rule);
}

ChunkConfig config_of(const KdaDecodePlan& checked, const PrefillChoice& choice, int chunk) {
  const KdaDecodeConfig& c = checked.config;
  return {.shape = {chunk, c.k},
          .q_heads = c.q_heads,
          .v_heads = c.v_heads,
          .v = c.v,
          .gate = c.gate,
          .layout = c.layout,
          .neg_eigval = c.neg_eigval,
          .scan_warps = choice.scan_warps,
          .stages = choice.stages,
          .cluster = choice.cluster};
}

View record_view(const KdaDecodeTensors& t, const ChunkConfig& config,
                 const KdaPrefillOptions& options, const Workspace& workspace,
                 const rows::Caller& caller) {
  std::int64_t needed = kda_prefill_workspace_bytes(t, options);
  if (workspace.size_bytes < needed || workspace.address % 256 != 0) {
    caller.refuse("workspace has " + std::to_string(workspace.size_bytes) +
                  " bytes; chunks of these sequences need " + std::to_string(needed) +
                  ", aligned to 256");
  }
  std::int64_t records = places_of(t, config.shape.tokens) * config.v_heads;
  return make_view(workspace.address, f16,
                   std::array<std::int64_t, 2>{records, config.shape.record_elems()});
}

}  // namespace

std::string to_string(const ChunkConfig& c) {
  constexpr const char* kGates[] = {" safe", " softplus", " given", " factor"};
  return "c=" + std::to_string(c.shape.tokens) + " h=" + std::to_string(c.q_heads) + "/" +
         std::to_string(c.v_heads) + " k=" + std::to_string(c.shape.k) +
         " v=" + std::to_string(c.v) + " w=" + std::to_string(c.scan_warps) +
         " s=" + std::to_string(c.stages) + " x=" + std::to_string(c.cluster) +
         kGates[static_cast<int>(c.gate)] + (c.layout == StateLayout::kv ? " kv" : "") +
         (c.neg_eigval ? " neg_eigval" : "");
}

std::int64_t kda_prefill_workspace_bytes(const KdaDecodeTensors& t,
                                         const KdaPrefillOptions& options) {
  bool ranks = t.q.rank == 4 && t.v.rank == 4 && (!t.cu_seqlens || t.cu_seqlens->rank == 1);
  if (!ranks || chunk_tokens(options.chunk) == 0) return 0;
  if (t.q.shape[1] < kFewestChunkTokens) return 0;
  ChunkShape shape{chunk_tokens(options.chunk), static_cast<int>(t.q.shape[3])};
  return places_of(t, shape.tokens) * t.v.shape[2] * shape.record_bytes();
}

KdaPrefillPlan plan_kda_prefill(const DeviceProperties& device, std::string_view op,
                                const KdaDecodeTensors& tensors, const KdaPrefillOptions& options,
                                const Workspace& workspace, SourceLoc at) {
  rows::Caller caller{op, at};
  KdaPrefillPlan plan;
  plan.by_token = plan_kda_decode(op, tensors, options.rule, at);
  const KdaDecodeTensors& t = plan.by_token.tensors;
  bool nothing = plan.by_token.launch.grid.x == 0;
  if (nothing || !is_chunkable(t, options)) return plan;
  PrefillChoice choice =
      choose_prefill(device, {t.q.shape[1], sequences_of(t), t.v.shape[2], t.q.shape[3],
                              t.v.shape[3], chunk_tokens(options.chunk)});
  if (!choice.chunked) return plan;
  ChunkConfig config = config_of(plan.by_token, choice, chunk_tokens(options.chunk));
  View records = record_view(t, config, options, workspace, caller);
  constexpr DynamicModes kFirst{.extents = 1};
  TensorArg records_arg = tensor_arg(records, kFirst);
  const KdaDecodeArguments<TensorArg>& args = plan.by_token.args;
  plan.prepare = {config, options.rule, t, records, args, records_arg, {}};
  plan.prepare->launch.grid.x = rows::row_blocks(records.shape[0], 1, caller);
  plan.prepare->launch.block.x = config.prepare_threads();
  plan.prepare->launch.dynamic_smem_bytes = config.prepare_smem_bytes();
  plan.scan = {config, options.rule, t, records, args, records_arg, {}};
  std::int64_t slices = sequences_of(t) * config.v_heads * (config.v / config.scan_columns());
  plan.scan->launch.grid.x = rows::row_blocks(slices, 1, caller);
  plan.scan->launch.block.x = (config.scan_warps + 1) * 32;
  plan.scan->launch.cluster.x = config.cluster;
  plan.scan->launch.dynamic_smem_bytes = config.scan_smem_bytes();
  return plan;
}

std::string ChunkPreparePlan::key() const {
  std::string text = "kda_prefill.prepare/1 " + to_string(config);
  for (const TensorArg* arg : {&args.q, &args.k, &args.a, &args.b, &records_arg})
    text += " | " + to_string(*arg);
  for (const std::optional<TensorArg>* arg : {&args.A_log, &args.dt_bias, &args.cu_seqlens})
    text += " | " + rows::key_text(*arg);
  return text;
}

Parameters ChunkPreparePlan::parameters() const {
  Parameters parameters;
  auto add = [&](const std::optional<TensorArg>& arg, const std::optional<View>& view) {
    if (arg) pack(parameters, *arg, *view);
  };
  add(args.q, tensors.q);
  add(args.k, tensors.k);
  add(args.a, tensors.a);
  add(args.b, tensors.b);
  add(args.A_log, tensors.A_log);
  add(args.dt_bias, tensors.dt_bias);
  add(args.cu_seqlens, tensors.cu_seqlens);
  add(records_arg, records);
  parameters.add(options.gate.lower_bound.value_or(0.0f));
  parameters.add(options.gate.softplus_beta);
  parameters.add(options.gate.softplus_threshold);
  return parameters;
}

std::string ChunkScanPlan::key() const {
  std::string text = "kda_prefill.scan/1 " + to_string(config);
  for (const TensorArg* arg : {&args.v, &args.out, &records_arg})
    text += " | " + to_string(*arg);
  for (const std::optional<TensorArg>* arg :
       {&args.cu_seqlens, &args.state, &args.indices, &args.final_state})
    text += " | " + rows::key_text(*arg);
  return text;
}

Parameters ChunkScanPlan::parameters() const {
  Parameters parameters;
  auto add = [&](const std::optional<TensorArg>& arg, const std::optional<View>& view) {
    if (arg) pack(parameters, *arg, *view);
  };
  add(args.v, tensors.v);
  add(args.cu_seqlens, tensors.cu_seqlens);
  add(args.state, tensors.state);
  add(args.indices, tensors.indices);
  add(args.out, tensors.out);
  add(args.final_state, tensors.final_state);
  add(records_arg, records);
  parameters.add(options.scale.value_or(1.0f / std::sqrt(static_cast<float>(config.shape.k))));
  return parameters;
}

std::vector<Traced> traced_kernels(const KdaPrefillPlan& plan, ptx::Target target) {
  std::vector<Traced> traced;
  if (plan.scan) {
    traced.push_back(plan.prepare->trace(target));
    traced.push_back(plan.scan->trace(target));
  } else if (plan.by_token.launch.grid.x > 0) {
    traced.push_back(plan.by_token.trace(target));
  }
  return traced;
}

Tolerance chunk_tolerance(std::string_view output) {
  return {.rmse = output == "out" ? 2e-3 : 8e-4};
}

void launch_kda_prefill(const Stream& stream, const KdaPrefillPlan& plan, SourceLoc at) {
  if (!plan.scan) return launch_kda_decode(stream, plan.by_token, at);
  rows::prepare(stream.device(), *plan.prepare, at).launch(stream, at);
  rows::prepare(stream.device(), *plan.scan, at).launch(stream, at);
}

}  // namespace tilewright
