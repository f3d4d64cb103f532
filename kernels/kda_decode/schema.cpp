// SPDX-License-Identifier: Apache-2.0
// kda_decode and kda_prefill as the command line and bindings see them.
#include "kernels/kda_decode/reference.h"
#include "kernels/rows/row_schema.h"

#include <algorithm>
#include <array>
#include <utility>

namespace tilewright {
namespace {

constexpr std::array kBf16{bf16};
constexpr std::array kGateTypes{bf16, f32};
constexpr std::array kIndices{s32, s64};
constexpr std::array kS32{s32};

constexpr TensorSpec kQ{.name = "q", .role = Role::input, .shape = "N,T,H,K", .types = kBf16};
constexpr TensorSpec kK{.name = "k", .role = Role::input, .shape = "N,T,H,K", .types = kBf16};
constexpr TensorSpec kV{.name = "v", .role = Role::input, .shape = "N,T,HV,V", .types = kBf16};
constexpr TensorSpec kA{
    .name = "a",
    .role = Role::input,
    .shape = "N,T,HV,K",
    .types = kGateTypes,
    .doc = "input of the decay gate; the log decay if there is neither A_log nor lower_bound"};
constexpr TensorSpec kB{.name = "b",
                        .role = Role::input,
                        .shape = "N,T,HV",
                        .types = kBf16,
                        .doc = "beta before the sigmoid"};
constexpr TensorSpec kALog{.name = "A_log",
                           .role = Role::input,
                           .presence = Presence::optional,
                           .shape = "*",
                           .types = kF32,
                           .doc = "HV elements: log of the rate of the decay; absent: 0"};
constexpr TensorSpec kDtBias{.name = "dt_bias",
                             .role = Role::input,
                             .presence = Presence::optional,
                             .shape = "*",
                             .types = kF32,
                             .doc = "[HV,K] or [HV K]: added to a"};
constexpr TensorSpec kOut{.name = "out", .role = Role::output, .shape = "N,T,HV,V", .types = kBf16};
constexpr std::array<TensorSpec, 11> kDecodeTensors{{
    kQ,
    kK,
    kV,
    kA,
    kB,
    kALog,
    kDtBias,
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
    kOut,
    {.name = "snapshots",
     .role = Role::output,
     .presence = Presence::optional,
     .shape = "N,T,HV,V,K",
     .types = kF32,
     .doc = "the state after each token"},
}};
constexpr std::array<TensorSpec, 11> kPrefillTensors{{
    kQ,
    kK,
    kV,
    kA,
    kB,
    kALog,
    kDtBias,
    {.name = "cu_seqlens",
     .role = Role::input,
     .presence = Presence::optional,
     .shape = "_",
     .types = kS32,
     .doc = "[R+1]: the first token of each of R sequences in q [1,T,H,K]"},
    {.name = "initial_state",
     .role = Role::input,
     .presence = Presence::optional,
     .shape = "_,HV,_,_",
     .types = kF32,
     .doc = "[N,HV,V,K], or [N,HV,K,V] as state_layout says; absent: zeros"},
    kOut,
    {.name = "final_state",
     .role = Role::output,
     .presence = Presence::optional,
     .shape = "_,HV,_,_",
     .types = kF32,
     .may_alias = "initial_state",
     .doc = "as initial_state"},
}};

constexpr std::array<std::string_view, 1> kNone{"none"};
constexpr std::array<std::string_view, 1> kAutoScale{"1/sqrt(K)"};
constexpr std::array<std::string_view, 2> kLayouts{"vk", "kv"};
constexpr OptionSpec kScale{.name = "scale",
                            .type = OptionType::real,
                            .default_text = "1/sqrt(K)",
                            .words = kAutoScale,
                            .doc = "factor of q"};
constexpr OptionSpec kLowerBound{
    .name = "lower_bound",
    .type = OptionType::real,
    .default_text = "none",
    .words = kNone,
    .doc = "L of the safe gate L sigmoid(A u); none: the gate is -A softplus(u)"};
constexpr OptionSpec kSoftplusBeta{
    .name = "softplus_beta", .type = OptionType::real, .default_text = "1", .least = 0};
constexpr OptionSpec kSoftplusThreshold{.name = "softplus_threshold",
                                        .type = OptionType::real,
                                        .default_text = "20",
                                        .doc = "softplus(u) is u where softplus_beta u is greater"};
constexpr OptionSpec kStateLayout{.name = "state_layout",
                                  .type = OptionType::choice,
                                  .default_text = "vk",
                                  .words = kLayouts,
                                  .doc = "order of the state's last two modes"};
constexpr OptionSpec kNegEigval{.name = "neg_eigval",
                                .type = OptionType::boolean,
                                .default_text = "false",
                                .doc = "beta is 2 sigmoid(b)"};
constexpr std::array<OptionSpec, 7> kDecodeOptions{{kScale,
                                                    kLowerBound,
                                                    kSoftplusBeta,
                                                    kSoftplusThreshold,
                                                    kStateLayout,
                                                    {.name = "update_state",
                                                     .type = OptionType::boolean,
                                                     .default_text = "true",
                                                     .doc = "write the state back"},
                                                    kNegEigval}};
constexpr OptionSpec kChunk{
    .name = "chunk",
    .type = OptionType::integer,
    .default_text = "64",
    .least = 1,
    .doc = "the most tokens to take at once; today's kernel takes them one by one"};
constexpr std::array<OptionSpec, 7> kPrefillOptions{
    {kScale, kLowerBound, kSoftplusBeta, kSoftplusThreshold, kStateLayout, kNegEigval, kChunk}};

constexpr std::array<std::string_view, 3> kDecodeProblems{
    "N=1,T=1,H=32,K=128,HV=32,V=128,S=1,A_log=f32,dt_bias=f32,lower_bound=-5",
    "N=32,T=1,H=32,K=128,HV=32,V=128,S=32,A_log=f32,dt_bias=f32,lower_bound=-5",
    "N=128,T=1,H=32,K=128,HV=32,V=128,S=128,A_log=f32,dt_bias=f32,lower_bound=-5"};
constexpr std::array<std::string_view, 2> kPrefillProblems{
    "N=1,T=1600,H=32,K=128,HV=32,V=128,A_log=f32,dt_bias=f32,lower_bound=-5",
    "N=1,T=8192,H=32,K=128,HV=32,V=128,A_log=f32,dt_bias=f32,lower_bound=-5"};

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
  options.neg_eigval = arguments.boolean("neg_eigval");
  return options;
}

/// The tensors that both operators have.
KdaDecodeTensors common_tensors(const Arguments& arguments) {
  return {.q = arguments.tensor("q"),
          .k = arguments.tensor("k"),
          .v = arguments.tensor("v"),
          .a = arguments.tensor("a"),
          .b = arguments.tensor("b"),
          .A_log = optional_view(arguments, "A_log"),
          .dt_bias = optional_view(arguments, "dt_bias"),
          .out = arguments.tensor("out")};
}

KdaDecodePlan decode_plan(const Arguments& arguments) {
  KdaDecodeTensors tensors = common_tensors(arguments);
  tensors.state = arguments.tensor("state");
  tensors.indices = optional_view(arguments, "indices");
  tensors.snapshots = optional_view(arguments, "snapshots");
  if (arguments.boolean("update_state")) tensors.final_state = tensors.state;
  return plan_kda_decode("kda_decode", tensors, options_of(arguments));
}

KdaDecodePlan prefill_plan(const Arguments& arguments) {
  KdaDecodeTensors tensors = common_tensors(arguments);
  tensors.cu_seqlens = optional_view(arguments, "cu_seqlens");
  tensors.state = optional_view(arguments, "initial_state");
  tensors.final_state = optional_view(arguments, "final_state");
  return plan_kda_decode("kda_prefill", tensors, options_of(arguments));
}

std::vector<OutputSpec> decode_outputs(const Arguments& arguments) {
  arguments.check(Arguments::Outputs::optional);
  std::vector<std::int64_t> shape = shape_of(arguments.tensor("v"));
  std::vector<std::int64_t> states = shape;
  states.push_back(arguments.size("K"));
  return {{"out", bf16, shape}, {"snapshots", f32, states}};
}

std::vector<OutputSpec> prefill_outputs(const Arguments& arguments) {
  arguments.check(Arguments::Outputs::optional);
  const View* seqlens = arguments.find("cu_seqlens");
  std::int64_t requests = arguments.size("N"), heads = arguments.size("HV");
  if (seqlens != nullptr) requests = std::max<std::int64_t>(seqlens->shape[0], 1) - 1;
  std::int64_t v = arguments.size("V"), k = arguments.size("K");
  if (arguments.text("state_layout") == "kv") std::swap(v, k);
  return {{"out", bf16, shape_of(arguments.tensor("v"))},
          {"final_state", f32, {requests, heads, v, k}}};
}

void launch_decode(const Device&, const Stream& stream, const Arguments& arguments) {
  launch_kda_decode(stream, decode_plan(arguments));
}
void launch_prefill(const Device&, const Stream& stream, const Arguments& arguments) {
  launch_kda_decode(stream, prefill_plan(arguments));
}

void decode_reference(const Arguments& arguments, HostTensors& tensors) {
  DeltaRuleResults results = delta_rule_reference(options_of(arguments), tensors, {});
  set_reference(arguments, "out", results.out, tensors);
  set_reference(arguments, "snapshots", results.snapshots, tensors);
  if (arguments.boolean("update_state")) set_reference(arguments, "state", results.state, tensors);
}
void prefill_reference(const Arguments& arguments, HostTensors& tensors) {
  DeltaRuleResults results =
      delta_rule_reference(options_of(arguments), tensors, {.state = "initial_state"});
  set_reference(arguments, "out", results.out, tensors);
  set_reference(arguments, "final_state", results.state, tensors);
}

/// Only f32 arithmetic is between a state and its reference; out is rounded to bf16 besides.
Tolerance tolerance(const Arguments&, std::string_view output) {
  if (output != "out") return {.rmse = 1e-6};
  return {.relative = rows::half_ulp(bf16), .of_row_max = 0x1p-18};
}

/// Contract, K 3: the states of N requests in and out, everything else once.
std::int64_t bytes_of(const KdaDecodePlan& plan) {
  const KdaDecodeTensors& t = plan.tensors;
  std::int64_t requests = t.cu_seqlens ? t.cu_seqlens->shape[0] - 1 : t.q.shape[0];
  std::int64_t total = 0;
  for (const std::optional<View>* state : {&t.state, &t.final_state}) {
    if (!*state || (*state)->shape[0] == 0) continue;
    total += size_bytes(**state) / (*state)->shape[0] * requests;
  }
  for (const View* view : {&t.q, &t.k, &t.v, &t.a, &t.b, &t.out})
    total += size_bytes(*view);
  for (const std::optional<View>* view : {&t.A_log, &t.dt_bias, &t.indices, &t.snapshots})
    total += *view ? size_bytes(**view) : 0;
  return total;
}
std::int64_t decode_bytes(const Arguments& arguments) { return bytes_of(decode_plan(arguments)); }
std::int64_t prefill_bytes(const Arguments& arguments) { return bytes_of(prefill_plan(arguments)); }

std::vector<Traced> traced(const KdaDecodePlan& plan, ptx::Target target) {
  std::vector<Traced> list;
  if (plan.launch.grid.x > 0) list.push_back(plan.trace(target));
  return list;
}
std::vector<Traced> trace_decode(const Arguments& arguments, ptx::Target target) {
  return traced(decode_plan(arguments), target);
}
std::vector<Traced> trace_prefill(const Arguments& arguments, ptx::Target target) {
  return traced(prefill_plan(arguments), target);
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

constexpr Operator kDecode{
    .schema = {.name = "kda_decode",
               .version = 1,
               .formula =
                   "S = S diag(e^g); S += beta (v - S k) k^T; out = S q for T tokens in turn",
               .doc = "Kimi Delta Attention on one or few tokens of many requests, with the state "
                      "in place.",
               .tensors = kDecodeTensors,
               .options = kDecodeOptions},
    .outputs = decode_outputs,
    .launch = launch_decode,
    .reference = decode_reference,
    .tolerance = tolerance,
    .nan_rule = NanRule::skip,
    .bytes = decode_bytes,
    .trace = trace_decode,
    .fill = fill,
    .bench_problems = kDecodeProblems};
constexpr Operator kPrefill{
    .schema = {.name = "kda_prefill",
               .version = 1,
               .formula =
                   "S = S diag(e^g); S += beta (v - S k) k^T; out = S q for all tokens in turn",
               .doc = "Kimi Delta Attention on whole sequences, token by token.",
               .tensors = kPrefillTensors,
               .options = kPrefillOptions},
    .outputs = prefill_outputs,
    .launch = launch_prefill,
    .reference = prefill_reference,
    .tolerance = tolerance,
    .nan_rule = NanRule::skip,
    .bytes = prefill_bytes,
    .trace = trace_prefill,
    .fill = fill,
    .bench_problems = kPrefillProblems};

}  // namespace

const Operator& kda_decode_operator() { return kDecode; }
const Operator& kda_prefill_operator() { return kPrefill; }

}  // namespace tilewright
