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

std::int64_t sequences_of(const View& q, const std::optional<View>& cu_seqlens) {
  return cu_seqlens ? cu_seqlens->shape[0] - 1 : q.shape[0];
}

/// The largest chunk of 64, 32 or 16 tokens that is not above `most`; 0: none.
int chunk_tokens(int most) {
  int tokens = 64;
  while (tokens > most)
    tokens /= 2;
  return tokens >= kFewestChunkTokens ? tokens : 0;
}

std::int64_t places_of(const View& q, const std::optional<View>& cu_seqlens, int chunk) {
  std::int64_t tokens = q.shape[1], sequences = sequences_of(q, cu_seqlens);
  if (cu_seqlens) return tokens / chunk + sequences;
  return rows::ceil_div(tokens, chunk) * sequences;
}

/// Pairs of channels and 16 bytes of v can be read at once.
bool is_aligned(const KdaDecodeTensors& t, DecayGate gate) {
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
  bool of_channels = gate != DecayGate::factor && gate != DecayGate::fixed;
  bool gates = !of_channels || (pairs(t.a) && (!t.dt_bias || pairs(*t.dt_bias)));
  bool states = true;
  for (const std::optional<View>* state : {&t.state, &t.final_state})
    states = states && (!*state || pairs(**state));
  return pairs(t.q) && pairs(t.k) && gates && states && divides(t.v, 16) && divides(t.out, 16);
}

/// Chunks need decays of at most 1: products of growing ones may leave f16. Where softplus is its
/// argument already below 0, it may be negative.
bool is_chunkable(const ChunkRequest& request) {
  const KdaDecodeTensors& t = request.tensors;
  const std::optional<float>& bound = request.options.gate.lower_bound;
  const bool grows = (bound && *bound > 0) || request.options.gate.softplus_threshold < 0;
  return t.q.shape[1] >= kFewestChunkTokens && !grows && !t.snapshots &&
         is_aligned(t, request.config.gate);
}

/// The chunk's length of a request, and the kernels' form.
ChunkConfig chosen_config(const ChunkRequest& request, const PrefillChoice& choice, int tokens) {
  ChunkConfig config = request.config;
  config.shape.tokens = tokens;
  config.scan_warps = choice.scan_warps;
  config.stages = choice.stages;
  config.cluster = choice.cluster;
  config.helpers = choice.helpers;
  return config;
}

View record_view(const ChunkRequest& request, const ChunkConfig& config, const Workspace& workspace,
                 const rows::Caller& caller) {
  const KdaDecodeTensors& t = request.tensors;
  std::int64_t needed = chunk_workspace_bytes(t.q, t.v, t.cu_seqlens, config.shape);
  if (workspace.size_bytes < needed || workspace.address % 256 != 0) {
    caller.refuse("workspace has " + std::to_string(workspace.size_bytes) +
                  " bytes; chunks of these sequences need " + std::to_string(needed) +
                  ", aligned to 256");
  }
  std::int64_t records = places_of(t.q, t.cu_seqlens, config.shape.tokens) * config.v_heads;
  return make_view(workspace.address, config.shape.operand(),
                   std::array<std::int64_t, 2>{records, config.shape.record_elems()});
}

}  // namespace

std::string to_string(const ChunkConfig& c) {
  constexpr const char* kGates[] = {" safe", " softplus", " given", " fixed", " factor"};
  return "c=" + std::to_string(c.shape.tokens) + " h=" + std::to_string(c.q_heads) + "/" +
         std::to_string(c.v_heads) + " k=" + std::to_string(c.shape.k) +
         " v=" + std::to_string(c.v) + " w=" + std::to_string(c.scan_warps) +
         " s=" + std::to_string(c.stages) + " x=" + std::to_string(c.cluster) +
         " r=" + std::to_string(c.helpers) + kGates[static_cast<int>(c.gate)] +
         (c.layout == StateLayout::kv ? " kv" : "") + (c.neg_eigval ? " neg_eigval" : "");
}

std::int64_t chunk_workspace_bytes(const View& q, const View& v,
                                   const std::optional<View>& cu_seqlens, ChunkShape shape) {
  bool ranks = q.rank == 4 && v.rank == 4 && (!cu_seqlens || cu_seqlens->rank == 1);
  shape.tokens = chunk_tokens(shape.tokens);
  if (!ranks || shape.tokens == 0 || q.shape[1] < kFewestChunkTokens) return 0;
  shape.k = static_cast<int>(q.shape[3]);
  return places_of(q, cu_seqlens, shape.tokens) * v.shape[2] * shape.record_bytes();
}

std::optional<ChunkPlans> plan_chunks(const DeviceProperties& device, const ChunkRequest& request,
                                      const Workspace& workspace, const rows::Caller& caller) {
  int tokens = chunk_tokens(request.config.shape.tokens);
  if (tokens == 0 || !is_chunkable(request)) return std::nullopt;
  const KdaDecodeTensors& t = request.tensors;
  std::int64_t sequences = sequences_of(t.q, t.cu_seqlens);
  std::int64_t length = t.q.shape[1];
  if (t.cu_seqlens) length = std::max<std::int64_t>(1, length / sequences);
  PrefillChoice choice =
      choose_prefill(device, {length, sequences, t.v.shape[2], t.q.shape[3], t.v.shape[3], tokens});
  if (!choice.chunked) return std::nullopt;
  ChunkConfig config = chosen_config(request, choice, tokens);
  View records = record_view(request, config, workspace, caller);
  constexpr DynamicModes kFirst{.extents = 1};
  TensorArg arg = tensor_arg(records, kFirst);
  std::string op(caller.op);
  ChunkPlans plans{{op, config, request.options, t, records, request.args, arg, {}},
                   {op, config, request.options, t, records, request.args, arg, {}}};
  LaunchConfig& prepare = plans.prepare.launch;
  prepare.grid.x = rows::row_blocks(records.shape[0], 1, caller);
  prepare.block.x = config.prepare_threads();
  prepare.dynamic_smem_bytes = config.prepare_smem_bytes();
  LaunchConfig& scan = plans.scan.launch;
  scan.grid.x =
      rows::row_blocks(sequences * config.v_heads * (config.v / config.scan_columns()), 1, caller);
  scan.block.x = config.scan_threads();
  scan.cluster.x = config.cluster;
  scan.dynamic_smem_bytes = config.scan_smem_bytes();
  return plans;
}

void launch_chunks(const Stream& stream, const ChunkPlans& plans, SourceLoc at) {
  rows::prepare(stream.device(), plans.prepare, at).launch(stream, at);
  rows::prepare(stream.device(), plans.scan, at).launch(stream, at);
}

int chunked_tokens(std::int64_t tokens, int most) {
  return tokens < kFewestChunkTokens ? 0 : chunk_tokens(most);
}

std::int64_t kda_prefill_workspace_bytes(const KdaDecodeTensors& t,
                                         const KdaPrefillOptions& options) {
  return chunk_workspace_bytes(t.q, t.v, t.cu_seqlens, {.tokens = options.chunk});
}

KdaPrefillPlan plan_kda_prefill(const DeviceProperties& device, std::string_view op,
                                const KdaDecodeTensors& tensors, const KdaPrefillOptions& options,
                                const Workspace& workspace, SourceLoc at) {
  KdaPrefillPlan plan;
  plan.by_token = plan_kda_decode(op, tensors, options.rule, at);
  if (plan.by_token.launch.grid.x == 0) return plan;
  const KdaDecodeConfig& c = plan.by_token.config;
  ChunkRequest request{plan.by_token.tensors,
                       plan.by_token.args,
                       options.rule,
                       {.shape = {options.chunk, c.k},
                        .q_heads = c.q_heads,
                        .v_heads = c.v_heads,
                        .v = c.v,
                        .gate = c.gate,
                        .layout = c.layout,
                        .neg_eigval = c.neg_eigval}};
  plan.chunks = plan_chunks(device, request, workspace, rows::Caller{op, at});
  return plan;
}

std::string ChunkPreparePlan::key() const {
  std::string text = op + ".prepare/1 " + to_string(config);
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
  std::string text = op + ".scan/1 " + to_string(config);
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
  if (plan.chunks) {
    traced.push_back(plan.chunks->prepare.trace(target));
    traced.push_back(plan.chunks->scan.trace(target));
  } else if (plan.by_token.launch.grid.x > 0) {
    traced.push_back(plan.by_token.trace(target));
  }
  return traced;
}

Tolerance chunk_tolerance(std::string_view) { return {.rmse = 5e-3}; }

void launch_kda_prefill(const Stream& stream, const KdaPrefillPlan& plan, SourceLoc at) {
  if (plan.chunks) return launch_chunks(stream, *plan.chunks, at);
  launch_kda_decode(stream, plan.by_token, at);
}

void kda_prefill(const Stream& stream, const KdaDecodeTensors& tensors,
                 const KdaPrefillOptions& options, const Workspace& workspace, SourceLoc at) {
  const DeviceProperties& device = stream.device().properties();
  launch_kda_prefill(stream,
                     plan_kda_prefill(device, "kda_prefill", tensors, options, workspace, at), at);
}

void gated_delta_rule(const Stream& stream, const KdaDecodeTensors& tensors,
                      const KdaPrefillOptions& options, const Workspace& workspace, SourceLoc at) {
  const DeviceProperties& device = stream.device().properties();
  KdaPrefillOptions of_heads = options;
  of_heads.rule.scalar_gate = true;
  launch_kda_prefill(
      stream, plan_kda_prefill(device, "gated_delta_rule", tensors, of_heads, workspace, at), at);
}

}  // namespace tilewright
