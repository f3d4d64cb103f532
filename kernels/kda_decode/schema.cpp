// SPDX-License-Identifier: Apache-2.0
// kda_decode as the command line and bindings see it.
#include "kernels/kda_decode/reference.h"
#include "kernels/rows/row_schema.h"

#include <array>

namespace tilewright {
namespace {

constexpr std::array kBf16{bf16};
constexpr std::array kGateTypes{bf16, f32};
constexpr std::array kIndices{s32, s64};

constexpr std::array<TensorSpec, 11> kTensors{{
    {.name = "q", .role = Role::input, .shape = "N,T,H,K", .types = kBf16},
    {.name = "k", .role = Role::input, .shape = "N,T,H,K", .types = kBf16},
    {.name = "v", .role = Role::input, .shape = "N,T,HV,V", .types = kBf16},
    {.name = "a",
     .role = Role::input,
     .shape = "N,T,HV,K",
     .types = kGateTypes,
     .doc = "input of the decay gate; the log decay if there is neither A_log nor lower_bound"},
    {.name = "b",
     .role = Role::input,
     .shape = "N,T,HV",
     .types = kBf16,
     .doc = "beta before the sigmoid"},
    {.name = "A_log",
     .role = Role::input,
     .presence = Presence::optional,
     .shape = "*",
     .types = kF32,
     .doc = "HV elements: log of the rate of the decay; absent: 0"},
    {.name = "dt_bias",
     .role = Role::input,
     .presence = Presence::optional,
     .shape = "*",
     .types = kF32,
     .doc = "[HV,K] or [HV K]: added to a"},
    {.name = "state",
     .role = Role::inout,
     .shape = "S,HV,_,_",
     .types = kF32,
     .doc = "[S,HV,V,K], or [S,HV,K,V] as state_layout says"},
    {.name = "indices",
     .role = Role::input,
     .presence = Presence::optional,
     .shape = "_",
     .types = kIndices,
     .doc = "[N]: the slot of a request; negative: it is inactive; absent: 0 to N - 1"},
    {.name = "out", .role = Role::output, .shape = "N,T,HV,V", .types = kBf16},
    {.name = "snapshots",
     .role = Role::output,
     .presence = Presence::optional,
     .shape = "N,T,HV,V,K",
     .types = kF32,
     .doc = "the state after each token"},
}};

constexpr std::array<std::string_view, 1> kNone{"none"};
constexpr std::array<std::string_view, 1> kAutoScale{"1/sqrt(K)"};
constexpr std::array<std::string_view, 2> kLayouts{"vk", "kv"};
constexpr std::array<OptionSpec, 7> kOptions{{
    {.name = "scale",
     .type = OptionType::real,
     .default_text = "1/sqrt(K)",
     .words = kAutoScale,
     .doc = "factor of q"},
    {.name = "lower_bound",
     .type = OptionType::real,
     .default_text = "none",
     .words = kNone,
     .doc = "L of the safe gate L sigmoid(A u); none: the gate is -A softplus(u)"},
    {.name = "softplus_beta", .type = OptionType::real, .default_text = "1", .least = 0},
    {.name = "softplus_threshold",
     .type = OptionType::real,
     .default_text = "20",
     .doc = "softplus(u) is u where softplus_beta u is greater"},
    {.name = "state_layout",
     .type = OptionType::choice,
     .default_text = "vk",
     .words = kLayouts,
     .doc = "order of the state's last two modes"},
    {.name = "update_state",
     .type = OptionType::boolean,
     .default_text = "true",
     .doc = "write the state back"},
    {.name = "neg_eigval",
     .type = OptionType::boolean,
     .default_text = "false",
     .doc = "beta is 2 sigmoid(b)"},
}};

constexpr std::array<std::string_view, 3> kProblems{
    "N=1,T=1,H=32,K=128,HV=32,V=128,S=1,A_log=f32,dt_bias=f32,lower_bound=-5",
    "N=32,T=1,H=32,K=128,HV=32,V=128,S=32,A_log=f32,dt_bias=f32,lower_bound=-5",
    "N=128,T=1,H=32,K=128,HV=32,V=128,S=128,A_log=f32,dt_bias=f32,lower_bound=-5"};

KdaDecodeOptions options_of(const Arguments& arguments) {
  KdaDecodeOptions options;
  auto real = [&](const char* name) -> std::optional<float> {
    std::optional<double> value = arguments.real_or_word(name);
    return value ? std::optional(static_cast<float>(*value)) : std::nullopt;
  };
  options.scale = real("scale");
  options.gate.lower_bound = real("lower_bound");
  options.gate.softplus_beta = static_cast<float>(arguments.real("softplus_beta"));
  options.gate.softplus_threshold = static_cast<float>(arguments.real("softplus_threshold"));
  if (arguments.text("state_layout") == "kv") options.state_layout = StateLayout::kv;
  options.update_state = arguments.boolean("update_state");
  options.neg_eigval = arguments.boolean("neg_eigval");
  return options;
}

KdaDecodeTensors tensors_of(const Arguments& arguments) {
  return {.q = arguments.tensor("q"),
          .k = arguments.tensor("k"),
          .v = arguments.tensor("v"),
          .a = arguments.tensor("a"),
          .b = arguments.tensor("b"),
          .A_log = optional_view(arguments, "A_log"),
          .dt_bias = optional_view(arguments, "dt_bias"),
          .state = arguments.tensor("state"),
          .indices = optional_view(arguments, "indices"),
          .out = arguments.tensor("out"),
          .snapshots = optional_view(arguments, "snapshots")};
}

std::vector<OutputSpec> outputs(const Arguments& arguments) {
  arguments.check(Arguments::Outputs::optional);
  std::vector<std::int64_t> shape = shape_of(arguments.tensor("v"));
  std::vector<std::int64_t> states = shape;
  states.push_back(arguments.size("K"));
  return {{"out", bf16, shape}, {"snapshots", f32, states}};
}

void launch(const Device&, const Stream& stream, const Arguments& arguments) {
  kda_decode(stream, tensors_of(arguments), options_of(arguments));
}

void reference(const Arguments& arguments, HostTensors& tensors) {
  kda_decode_reference(options_of(arguments), arguments, tensors);
}

/// Only f32 arithmetic is between a state and its reference; out is rounded to bf16 besides.
Tolerance tolerance(const Arguments&, std::string_view output) {
  if (output != "out") return {.rmse = 1e-6};
  return {.relative = rows::half_ulp(bf16), .of_row_max = 0x1p-18};
}

/// Contract, K 3: the states of N requests in and out, everything else once.
std::int64_t bytes(const Arguments& arguments) {
  KdaDecodeTensors t = tensors_of(arguments);
  std::int64_t slots = std::max<std::int64_t>(t.state.shape[0], 1);
  std::int64_t requests = t.indices ? t.indices->shape[0] : t.q.shape[0];
  std::int64_t states = size_bytes(t.state) / slots * requests;
  std::int64_t total = states * (arguments.boolean("update_state") ? 2 : 1);
  for (const View* view : {&t.q, &t.k, &t.v, &t.a, &t.b, &t.out})
    total += size_bytes(*view);
  for (const std::optional<View>* view : {&t.A_log, &t.dt_bias, &t.indices, &t.snapshots})
    total += *view ? size_bytes(**view) : 0;
  return total;
}

std::vector<Traced> trace(const Arguments& arguments, ptx::Target target) {
  std::vector<Traced> traced;
  KdaDecodePlan plan = plan_kda_decode(tensors_of(arguments), options_of(arguments));
  if (plan.launch.grid.x > 0) traced.push_back(plan.trace(target));
  return traced;
}

/// The shapes that the schema leaves open; request n has slot n.
void fill(const Problem& problem, std::vector<Array>& inputs) {
  std::int64_t heads = problem.size("HV"), k = problem.size("K");
  for (Array& input : inputs) {
    std::vector<std::int64_t> shape;
    if (input.name == "A_log") shape = {heads};
    if (input.name == "dt_bias") shape = {heads, k};
    if (input.name == "state") shape = {problem.size("S"), heads, problem.size("V"), k};
    if (input.name == "indices") shape = {problem.size("N")};
    if (shape.empty()) continue;
    input = make_array(input.name, input.type, shape);
    if (input.name != "indices") continue;
    std::vector<double> slots;
    for (std::int64_t n = 0; n < shape[0]; ++n)
      slots.push_back(static_cast<double>(n));
    input = make_array(input.name, input.type, shape, slots);
  }
}

constexpr Operator kOperator{
    .schema = {.name = "kda_decode",
               .version = 1,
               .formula =
                   "S = S diag(e^g); S += beta (v - S k) k^T; out = S q for T tokens in turn",
               .doc = "Kimi Delta Attention on one or few tokens of many requests, with the state "
                      "in place.",
               .tensors = kTensors,
               .options = kOptions},
    .outputs = outputs,
    .launch = launch,
    .reference = reference,
    .tolerance = tolerance,
    .nan_rule = NanRule::skip,
    .bytes = bytes,
    .trace = trace,
    .fill = fill,
    .bench_problems = kProblems};

}  // namespace

const Operator& kda_decode_operator() { return kOperator; }

}  // namespace tilewright
