// SPDX-License-Identifier: Apache-2.0
// The host side of the delta rule token by token: checks, configuration, grid, parameters.
#include "kernels/kda_decode/kda_decode.h"
#include "kernels/rows/row_shape.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace tilewright {
namespace {

class Checks {
 public:
  Checks(const KdaDecodeTensors& given, const KdaDecodeOptions& options, const rows::Caller& caller)
      : t_(given), options_(options), caller_(caller) {}

  KdaDecodeTensors run() {
    types();
    batch_first();
    shapes();
    strides();
    memory();
    numbers();
    return t_;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { caller_.refuse(what); }

  void type_is(const View& view, const char* which, Type type) const {
    rows::check_type(view, which, type, caller_);
  }

  bool decay_given() const { return !t_.A_log && !options_.gate.lower_bound; }
  const char* a_name() const { return options_.scalar_gate ? "alpha" : "a"; }
  const char* b_name() const { return options_.scalar_gate ? "beta" : "b"; }

  void types() const {
    type_is(t_.q, "q", bf16);
    type_is(t_.k, "k", bf16);
    type_is(t_.v, "v", bf16);
    type_is(t_.out, "out", bf16);
    type_is(t_.b, b_name(), options_.scalar_gate ? f32 : bf16);
    if (options_.scalar_gate) type_is(t_.a, a_name(), f32);
    if (!options_.scalar_gate && (t_.a.type != f32 || !decay_given()))
      type_is(t_.a, a_name(), bf16);
    if (t_.state) type_is(*t_.state, "state", f32);
    if (t_.final_state) type_is(*t_.final_state, "final_state", f32);
    if (t_.cu_seqlens) type_is(*t_.cu_seqlens, "cu_seqlens", s32);
    if (t_.A_log) type_is(*t_.A_log, "A_log", f32);
    if (t_.dt_bias) type_is(*t_.dt_bias, "dt_bias", f32);
    if (t_.snapshots) type_is(*t_.snapshots, "snapshots", f32);
    if (t_.indices && !rows::is_index_type(t_.indices->type))
      fail("indices has type " + std::string(name(t_.indices->type)) + "; it must be s32 or s64");
  }

  /// [1, N, ...] with N indices is one token of each of N requests.
  void batch_first() {
    bool packed = !t_.cu_seqlens && t_.q.rank == 4 && t_.q.shape[0] == 1 && t_.q.shape[1] > 1 &&
                  t_.indices && t_.indices->rank == 1 && t_.indices->shape[0] == t_.q.shape[1];
    if (!packed) return;
    auto swap_modes = [](View& view) {
      std::swap(view.shape[0], view.shape[1]);
      std::swap(view.stride[0], view.stride[1]);
    };
    for (View* view : {&t_.q, &t_.k, &t_.v, &t_.a, &t_.b, &t_.out})
      swap_modes(*view);
    if (t_.snapshots) swap_modes(*t_.snapshots);
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

  void flatten(View& view, const char* which, std::vector<std::int64_t> shape) const {
    std::int64_t elems = element_count(shape);
    if (size(view) != elems || !is_row_major(view)) {
      fail(std::string(which) + " is " + to_string(view) + "; it must have " +
           std::to_string(elems) + " contiguous elements");
    }
    view = make_view(view.address, view.type, shape);
  }

  void shapes() {
    if (t_.q.rank != 4) fail("q is " + to_string(t_.q) + "; it must be [N,T,H,K]");
    if (t_.v.rank != 4) fail("v is " + to_string(t_.v) + "; it must be [N,T,HV,V]");
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
    if (options_.scalar_gate) shape_is(t_.a, a_name(), {n, t, v_heads});
    if (!options_.scalar_gate) shape_is(t_.a, a_name(), {n, t, v_heads, k});
    shape_is(t_.b, b_name(), {n, t, v_heads});
    shape_is(t_.out, "out", {n, t, v_heads, v});
    if (t_.A_log) flatten(*t_.A_log, "A_log", {v_heads});
    if (t_.dt_bias) flatten(*t_.dt_bias, "dt_bias", {v_heads, k});
    if (t_.cu_seqlens && (t_.cu_seqlens->rank != 1 || t_.cu_seqlens->shape[0] < 1 || n != 1)) {
      fail("cu_seqlens is " + to_string(*t_.cu_seqlens) + " and q " + to_string(t_.q) +
           "; they must be [N+1] and [1,tokens,H,K]");
    }
    std::int64_t requests = t_.cu_seqlens ? t_.cu_seqlens->shape[0] - 1 : n;
    if (t_.indices) shape_is(*t_.indices, "indices", {requests});
    auto state_is = [&](const View& state, const char* which) {
      bool vk = options_.state_layout == StateLayout::vk;
      shape_is(state, which, {-1, v_heads, vk ? v : k, vk ? k : v});
      if (!t_.indices && state.shape[0] < requests) {
        fail(std::string(which) + " is " + to_string(state) +
             "; it must have at least N = " + std::to_string(requests) + " slots");
      }
    };
    if (t_.state) state_is(*t_.state, "state");
    if (t_.final_state) state_is(*t_.final_state, "final_state");
    if (t_.snapshots) shape_is(*t_.snapshots, "snapshots", {n, t, v_heads, v, k});
  }

  void strides() const {
    for (auto [view, which] : {std::pair{&t_.q, "q"}, {&t_.k, "k"}, {&t_.v, "v"}, {&t_.a, "a"}}) {
      if (view->rank == 4 && view->stride[3] != 1)
        fail(std::string(which) + " is " + to_string(*view) + "; its last stride must be 1");
    }
    auto contiguous = [&](const View& view, const char* which) {
      if (!is_row_major(view))
        fail(std::string(which) + " is " + to_string(view) + "; it must be contiguous");
    };
    if (t_.state) contiguous(*t_.state, "state");
    if (t_.final_state) contiguous(*t_.final_state, "final_state");
    contiguous(t_.out, "out");
    if (t_.snapshots) contiguous(*t_.snapshots, "snapshots");
  }

  void memory() const {
    auto apart_from_inputs = [&](const View& written, const char* which) {
      auto apart = [&](const View& other, const char* name) {
        rows::check_apart(other, name, written, which, caller_);
      };
      apart(t_.q, "q");
      apart(t_.k, "k");
      apart(t_.v, "v");
      apart(t_.a, a_name());
      apart(t_.b, b_name());
      if (t_.A_log) apart(*t_.A_log, "A_log");
      if (t_.dt_bias) apart(*t_.dt_bias, "dt_bias");
      if (t_.cu_seqlens) apart(*t_.cu_seqlens, "cu_seqlens");
      if (t_.indices) apart(*t_.indices, "indices");
      bool in_place = t_.state && t_.final_state && *t_.state == *t_.final_state;
      if (t_.state && !(in_place && &written == &*t_.final_state)) apart(*t_.state, "state");
    };
    apart_from_inputs(t_.out, "out");
    if (t_.final_state) {
      apart_from_inputs(*t_.final_state, "final_state");
      rows::check_apart(*t_.final_state, "final_state", t_.out, "out", caller_);
    }
    if (!t_.snapshots) return;
    apart_from_inputs(*t_.snapshots, "snapshots");
    if (t_.final_state)
      rows::check_apart(*t_.final_state, "final_state", *t_.snapshots, "snapshots", caller_);
    rows::check_apart(t_.out, "out", *t_.snapshots, "snapshots", caller_);
  }

  void numbers() const {
    auto finite = [&](float value, const char* which) {
      if (!std::isfinite(value))
        fail(std::string(which) + "=" + std::to_string(value) + "; it must be finite");
    };
    if (options_.scale) finite(*options_.scale, "scale");
    if (options_.gate.lower_bound) finite(*options_.gate.lower_bound, "lower_bound");
    finite(options_.gate.softplus_threshold, "softplus_threshold");
    if (!(options_.gate.softplus_beta > 0) || !std::isfinite(options_.gate.softplus_beta)) {
      fail("softplus_beta=" + std::to_string(options_.gate.softplus_beta) +
           "; it must be finite and greater than 0");
    }
    if (!options_.scalar_gate && decay_given() && t_.dt_bias)
      fail("dt_bias without A_log or lower_bound: a is the log decay itself; leave dt_bias out");
  }

  KdaDecodeTensors t_;
  const KdaDecodeOptions& options_;
  const rows::Caller& caller_;
};

/// Few heads: fewer rows a lane, so that every multiprocessor has warps.
int rows_per_lane(std::int64_t requests_and_heads) { return requests_and_heads >= 256 ? 4 : 1; }

std::int64_t requests_of(const KdaDecodeTensors& t) {
  return t.cu_seqlens ? t.cu_seqlens->shape[0] - 1 : t.q.shape[0];
}

KdaDecodeConfig config_of(const KdaDecodeTensors& t, const KdaDecodeOptions& options) {
  KdaDecodeConfig config;
  config.one_token = !t.cu_seqlens && t.q.shape[1] == 1;
  config.q_heads = static_cast<int>(t.q.shape[2]);
  config.v_heads = static_cast<int>(t.v.shape[2]);
  config.k = static_cast<int>(t.q.shape[3]);
  config.v = static_cast<int>(t.v.shape[3]);
  config.rows_per_lane = rows_per_lane(requests_of(t) * t.v.shape[2]);
  config.warps = config.v % 64 == 0 ? 4 : 2;
  config.gate = options.scalar_gate        ? DecayGate::factor
                : options.gate.lower_bound ? DecayGate::safe
                : t.A_log                  ? DecayGate::softplus
                                           : DecayGate::given;
  config.layout = options.state_layout;
  config.neg_eigval = options.neg_eigval;
  return config;
}

KdaDecodeArguments<TensorArg> args_of(const KdaDecodeTensors& t) {
  constexpr DynamicModes kFirst{.extents = 1, .strides = 1};
  constexpr DynamicModes kFirstTwo{.extents = 3, .strides = 3};
  auto optional = [](const std::optional<View>& view, DynamicModes dynamic) {
    return view ? std::optional(tensor_arg(*view, dynamic)) : std::nullopt;
  };
  return {.q = tensor_arg(t.q, kFirstTwo),
          .k = tensor_arg(t.k, kFirstTwo),
          .v = tensor_arg(t.v, kFirstTwo),
          .a = tensor_arg(t.a, kFirstTwo),
          .b = tensor_arg(t.b, kFirstTwo),
          .A_log = optional(t.A_log, {}),
          .dt_bias = optional(t.dt_bias, {}),
          .cu_seqlens = optional(t.cu_seqlens, kFirst),
          .state = optional(t.state, kFirst),
          .indices = optional(t.indices, kFirst),
          .out = tensor_arg(t.out, kFirstTwo),
          .final_state = optional(t.final_state, kFirst),
          .snapshots = optional(t.snapshots, kFirstTwo)};
}

}  // namespace

std::string to_string(const KdaDecodeConfig& c) {
  constexpr const char* kGates[] = {" safe", " softplus", " given", " fixed", " factor"};
  return std::string(c.one_token ? "one " : "") + "h=" + std::to_string(c.q_heads) + "/" +
         std::to_string(c.v_heads) + " k=" + std::to_string(c.k) + " v=" + std::to_string(c.v) +
         " w=" + std::to_string(c.warps) + " r=" + std::to_string(c.rows_per_lane) +
         kGates[static_cast<int>(c.gate)] + (c.layout == StateLayout::kv ? " kv" : "") +
         (c.neg_eigval ? " neg_eigval" : "");
}

KdaDecodePlan plan_kda_decode(std::string_view op, const KdaDecodeTensors& tensors,
                              const KdaDecodeOptions& options, SourceLoc at) {
  rows::Caller caller{op, at};
  KdaDecodePlan plan;
  plan.op = op;
  plan.options = options;
  plan.tensors = Checks(tensors, options, caller).run();
  plan.launch.grid.x = 0;
  const KdaDecodeTensors& t = plan.tensors;
  const bool moves = t.final_state && (!t.state || t.state->address != t.final_state->address);
  const bool nothing = size(t.out) == 0 && !t.cu_seqlens && !moves;
  if (nothing || requests_of(plan.tensors) == 0) return plan;  // launches nothing
  plan.config = config_of(plan.tensors, options);
  plan.args = args_of(plan.tensors);
  const KdaDecodeConfig& c = plan.config;
  std::int64_t heads = requests_of(plan.tensors) * c.v_heads;
  plan.launch.grid.x = rows::row_blocks(heads * (c.v / c.block_rows()), 1, caller);
  plan.launch.block.x = c.warps * 32;
  return plan;
}

std::string KdaDecodePlan::key() const {
  std::string text = op + "/1 " + to_string(config);
  for (const TensorArg* arg : {&args.q, &args.k, &args.v, &args.a, &args.b, &args.out})
    text += " | " + to_string(*arg);
  for (const std::optional<TensorArg>* arg :
       {&args.A_log, &args.dt_bias, &args.cu_seqlens, &args.state, &args.indices, &args.final_state,
        &args.snapshots})
    text += " | " + rows::key_text(*arg);
  return text;
}

Parameters KdaDecodePlan::parameters() const {
  Parameters parameters;
  auto add = [&](const std::optional<TensorArg>& arg, const std::optional<View>& view) {
    if (arg) pack(parameters, *arg, *view);
  };
  add(args.q, tensors.q);
  add(args.k, tensors.k);
  add(args.v, tensors.v);
  add(args.a, tensors.a);
  add(args.b, tensors.b);
  add(args.A_log, tensors.A_log);
  add(args.dt_bias, tensors.dt_bias);
  add(args.cu_seqlens, tensors.cu_seqlens);
  add(args.state, tensors.state);
  add(args.indices, tensors.indices);
  add(args.out, tensors.out);
  add(args.final_state, tensors.final_state);
  add(args.snapshots, tensors.snapshots);
  parameters.add(options.scale.value_or(1.0f / std::sqrt(static_cast<float>(config.k))));
  parameters.add(options.gate.lower_bound.value_or(0.0f));
  parameters.add(options.gate.softplus_beta);
  parameters.add(options.gate.softplus_threshold);
  return parameters;
}

void launch_kda_decode(const Stream& stream, const KdaDecodePlan& plan, SourceLoc at) {
  if (plan.launch.grid.x == 0) return;
  rows::prepare(stream.device(), plan, at).launch(stream, at);
}

void kda_decode(const Stream& stream, const KdaDecodeTensors& tensors,
                const KdaDecodeOptions& options, SourceLoc at) {
  launch_kda_decode(stream, plan_kda_decode("kda_decode", tensors, options, at), at);
}

}  // namespace tilewright
