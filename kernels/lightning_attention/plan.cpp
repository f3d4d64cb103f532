// SPDX-License-Identifier: Apache-2.0
// The host side of lightning_attention: checks, configuration, grid, parameters.
#include "kernels/kda/unit_mode.h"
#include "kernels/lightning_attention/lightning_attention.h"
#include "kernels/rows/row_shape.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace tilewright {
namespace {

class Checks {
 public:
  Checks(const LightningTensors& given, const LightningOptions& options, const rows::Caller& caller)
      : t_(given), options_(options), caller_(caller) {}

  LightningTensors run() {
    types();
    shapes();
    memory();
    if (!std::isfinite(options_.scale))
      fail("scale=" + std::to_string(options_.scale) + "; it must be finite");
    return t_;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { caller_.refuse(what); }

  void type_is(const View& view, const char* which, Type type) const {
    rows::check_type(view, which, type, caller_);
  }

  void types() const {
    type_is(t_.q, "q", bf16);
    type_is(t_.k, "k", bf16);
    type_is(t_.v, "v", bf16);
    type_is(t_.out, "out", bf16);
    type_is(t_.decay, "decay", f32);
    if (t_.state) type_is(*t_.state, "state", f32);
    if (t_.cu_seqlens) type_is(*t_.cu_seqlens, "cu_seqlens", s32);
    if (t_.indices && !rows::is_index_type(t_.indices->type))
      fail("indices has type " + std::string(name(t_.indices->type)) + "; it must be s32 or s64");
  }

  void shape_is(const View& view, const char* which, std::vector<std::int64_t> shape) const {
    bool equal = view.rank == static_cast<int>(shape.size()) &&
                 std::equal(shape.begin(), shape.end(), view.shape.begin(),
                            [](std::int64_t a, std::int64_t b) { return a < 0 || a == b; });
    if (equal) return;
    std::string text;
    for (std::int64_t extent : shape)
      text += (text.empty() ? "" : ",") + (extent < 0 ? "any" : std::to_string(extent));
    fail(std::string(which) + " is " + to_string(view) + "; it must be [" + text + "]");
  }

  void shapes() const {
    if (t_.q.rank != 4 || t_.v.rank != 4) {
      fail("q is " + to_string(t_.q) + " and v " + to_string(t_.v) +
           "; they must be [N,T,H,K] and [N,T,HV,V], or without T or N");
    }
    std::int64_t n = t_.q.shape[0], t = t_.q.shape[1], heads = t_.q.shape[2], k = t_.q.shape[3];
    std::int64_t v_heads = t_.v.shape[2], v = t_.v.shape[3];
    if (heads < 1 || v_heads < heads || v_heads % heads != 0) {
      fail("q is " + to_string(t_.q) + " and v " + to_string(t_.v) +
           (heads < 1 ? "; H must be at least 1" : "; HV must be a multiple of H"));
    }
    if ((k != 64 && k != 128) || v < 32 || v % 32 != 0) {
      fail("q is " + to_string(t_.q) + " and v " + to_string(t_.v) +
           "; K must be 64 or 128 and V a multiple of 32 for this kernel");
    }
    shape_is(t_.k, "k", {n, t, heads, k});
    shape_is(t_.v, "v", {n, t, v_heads, v});
    shape_is(t_.out, "out", {n, t, v_heads, v});
    shape_is(t_.decay, "decay", {heads});
    if (t_.cu_seqlens && (t_.cu_seqlens->rank != 1 || t_.cu_seqlens->shape[0] < 1 || n != 1)) {
      fail("cu_seqlens is " + to_string(*t_.cu_seqlens) + " and q " + to_string(t_.q) +
           "; they must be [N+1] and [1,tokens,H,K]");
    }
    std::int64_t requests = t_.cu_seqlens ? t_.cu_seqlens->shape[0] - 1 : n;
    if (t_.indices) shape_is(*t_.indices, "indices", {requests});
    if (t_.state) shape_is(*t_.state, "state", {-1, v_heads, v, k});
    if (t_.state && !t_.indices && t_.state->shape[0] < requests) {
      fail("state is " + to_string(*t_.state) +
           "; it must have at least N = " + std::to_string(requests) + " slots");
    }
    for (auto [view, which] : {std::pair{&t_.q, "q"}, {&t_.k, "k"}, {&t_.v, "v"}}) {
      if (view->stride[3] != 1)
        fail(std::string(which) + " is " + to_string(*view) + "; its last stride must be 1");
    }
    if (!is_row_major(t_.out)) fail("out is " + to_string(t_.out) + "; it must be contiguous");
    if (t_.state && !is_row_major(*t_.state))
      fail("state is " + to_string(*t_.state) + "; it must be contiguous");
  }

  void memory() const {
    auto apart_from_inputs = [&](const View& written, const char* which) {
      for (auto [view, name] :
           {std::pair{&t_.q, "q"}, {&t_.k, "k"}, {&t_.v, "v"}, {&t_.decay, "decay"}})
        rows::check_apart(*view, name, written, which, caller_);
      if (t_.cu_seqlens) rows::check_apart(*t_.cu_seqlens, "cu_seqlens", written, which, caller_);
      if (t_.indices) rows::check_apart(*t_.indices, "indices", written, which, caller_);
    };
    apart_from_inputs(t_.out, "out");
    if (!t_.state) return;
    apart_from_inputs(*t_.state, "state");
    rows::check_apart(*t_.state, "state", t_.out, "out", caller_);
  }

  LightningTensors t_;
  const LightningOptions& options_;
  const rows::Caller& caller_;
};

/// q, k, v and out with all modes.
LightningTensors with_all_modes(LightningTensors t) {
  for (View* view : {&t.q, &t.k, &t.v, &t.out}) {
    if (view->rank == 3) *view = kda::with_unit_mode(*view, t.cu_seqlens ? 0 : 1);
  }
  return t;
}

std::int64_t requests_of(const LightningTensors& t) {
  return t.cu_seqlens ? t.cu_seqlens->shape[0] - 1 : t.q.shape[0];
}

/// The delta rule's arguments of what has no correction: `b` is not read.
ChunkRequest chunk_request(const LightningPlan& plan) {
  const LightningTensors& t = plan.tensors;
  const LightningArguments<TensorArg>& a = plan.args;
  bool commits = t.state && plan.options.commit;
  ChunkRequest request{.tensors = {.q = t.q,
                                   .k = t.k,
                                   .v = t.v,
                                   .a = t.decay,
                                   .b = t.decay,
                                   .cu_seqlens = t.cu_seqlens,
                                   .state = t.state,
                                   .indices = t.indices,
                                   .out = t.out},
                       .args = {.q = a.q,
                                .k = a.k,
                                .v = a.v,
                                .a = a.decay,
                                .b = a.decay,
                                .cu_seqlens = a.cu_seqlens,
                                .state = a.state,
                                .indices = a.indices,
                                .out = a.out}};
  if (commits) {
    request.tensors.final_state = t.state;
    request.args.final_state = a.state;
  }
  request.options.scale = plan.options.scale;
  request.config = {.shape = {.k = plan.config.k, .corrects = false},
                    .q_heads = plan.config.q_heads,
                    .v_heads = plan.config.v_heads,
                    .v = plan.config.v,
                    .gate = DecayGate::fixed};
  return request;
}

}  // namespace

std::int64_t lightning_workspace_bytes(const LightningTensors& tensors) {
  LightningTensors t = with_all_modes(tensors);
  return chunk_workspace_bytes(t.q, t.v, t.cu_seqlens, {.corrects = false});
}

std::string to_string(const LightningConfig& c) {
  return "h=" + std::to_string(c.q_heads) + "/" + std::to_string(c.v_heads) +
         " k=" + std::to_string(c.k) + " v=" + std::to_string(c.v) +
         " w=" + std::to_string(c.warps) + " r=" + std::to_string(c.rows_per_lane) +
         (c.one_token ? " one" : "") + (c.commit ? " commit" : "");
}

LightningPlan plan_lightning_attention(const DeviceProperties& device,
                                       const LightningTensors& tensors,
                                       const LightningOptions& options, const Workspace& workspace,
                                       SourceLoc at) {
  rows::Caller caller{"lightning_attention", at};
  LightningPlan plan;
  plan.options = options;
  plan.tensors = Checks(with_all_modes(tensors), options, caller).run();
  const LightningTensors& t = plan.tensors;
  LightningConfig& c = plan.config;
  c.q_heads = static_cast<int>(t.q.shape[2]);
  c.v_heads = static_cast<int>(t.v.shape[2]);
  c.k = static_cast<int>(t.q.shape[3]);
  c.v = static_cast<int>(t.v.shape[3]);
  c.warps = c.v % 64 == 0 ? 4 : 2;
  c.one_token = !t.cu_seqlens && t.q.shape[1] == 1;
  c.commit = options.commit;
  std::int64_t heads = requests_of(t) * c.v_heads;
  if (heads < 256) c.rows_per_lane = 1;  // more warps for few heads
  constexpr DynamicModes kFirst{.extents = 1, .strides = 1};
  constexpr DynamicModes kFirstTwo{.extents = 3, .strides = 3};
  auto optional = [&](const std::optional<View>& view) {
    return view ? std::optional(tensor_arg(*view, kFirst)) : std::nullopt;
  };
  plan.args = {tensor_arg(t.q, kFirstTwo), tensor_arg(t.k, kFirstTwo),  tensor_arg(t.v, kFirstTwo),
               tensor_arg(t.decay),        optional(t.cu_seqlens),      optional(t.state),
               optional(t.indices),        tensor_arg(t.out, kFirstTwo)};
  bool nothing = size(t.out) == 0 && !t.cu_seqlens;
  plan.launch.grid.x = nothing ? 0 : rows::row_blocks(heads * (c.v / c.block_rows()), 1, caller);
  plan.launch.block.x = c.warps * 32;
  if (plan.launch.grid.x > 0 && workspace.size_bytes > 0)
    plan.chunks = plan_chunks(device, chunk_request(plan), workspace, caller);
  return plan;
}

std::string LightningPlan::key() const {
  std::string text = "lightning_attention/1 " + to_string(config);
  for (const TensorArg* arg : {&args.q, &args.k, &args.v, &args.decay, &args.out})
    text += " | " + to_string(*arg);
  for (const std::optional<TensorArg>* arg : {&args.cu_seqlens, &args.state, &args.indices})
    text += " | " + rows::key_text(*arg);
  return text;
}

Parameters LightningPlan::parameters() const {
  Parameters parameters;
  auto add = [&](const std::optional<TensorArg>& arg, const std::optional<View>& view) {
    if (arg) pack(parameters, *arg, *view);
  };
  add(args.q, tensors.q);
  add(args.k, tensors.k);
  add(args.v, tensors.v);
  add(args.decay, tensors.decay);
  add(args.cu_seqlens, tensors.cu_seqlens);
  add(args.state, tensors.state);
  add(args.indices, tensors.indices);
  add(args.out, tensors.out);
  parameters.add(options.scale);
  return parameters;
}

void launch_lightning_attention(const Stream& stream, const LightningPlan& plan, SourceLoc at) {
  if (plan.chunks) return launch_chunks(stream, *plan.chunks, at);
  if (plan.launch.grid.x == 0) return;
  rows::prepare(stream.device(), plan, at).launch(stream, at);
}

void lightning_attention(const Stream& stream, const LightningTensors& tensors,
                         const LightningOptions& options, const Workspace& workspace,
                         SourceLoc at) {
  const DeviceProperties& device = stream.device().properties();
  launch_lightning_attention(stream,
                             plan_lightning_attention(device, tensors, options, workspace, at), at);
}

}  // namespace tilewright
