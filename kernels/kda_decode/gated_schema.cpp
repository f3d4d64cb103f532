// SPDX-License-Identifier: Apache-2.0
// gated_delta_rule as the command line and bindings see it.
#include "kernels/kda/reference.h"
#include "kernels/kda/unit_mode.h"
#include "kernels/kda_decode/delta_schema.h"
#include "kernels/kda_decode/reference.h"
#include "kernels/kda_prefill/growth.h"
#include "kernels/kda_prefill/kda_prefill.h"
#include "kernels/rows/row_schema.h"

#include <array>

namespace tilewright {
namespace {

constexpr std::array kBf16{bf16};
constexpr std::array kIndices{s32, s64};

constexpr std::array<TensorSpec, 8> kTensors{{
    {.name = "q",
     .role = Role::input,
     .shape = "TOKENS,H,K",
     .types = kBf16,
     .doc = "a token of each request, or all of one sequence, as mode says"},
    {.name = "k", .role = Role::input, .shape = "TOKENS,H,K", .types = kBf16},
    {.name = "v", .role = Role::input, .shape = "TOKENS,HV,V", .types = kBf16},
    {.name = "alpha",
     .role = Role::input,
     .shape = "TOKENS,HV",
     .types = kF32,
     .doc = "the decay factor (in chunks, those of successive tokens multiply to at most 16)"},
    {.name = "beta",
     .role = Role::input,
     .shape = "TOKENS,HV",
     .types = kF32,
     .doc = "the strength of the correction"},
    {.name = "state", .role = Role::inout, .shape = "S,HV,V,K", .types = kF32},
    {.name = "indices",
     .role = Role::input,
     .presence = Presence::optional,
     .shape = "N",
     .types = kIndices,
     .doc = "the slot of a request or sequence; negative: inactive; absent: 0, 1, ..."},
    {.name = "out", .role = Role::output, .shape = "TOKENS,HV,V", .types = kBf16},
}};

constexpr std::array<std::string_view, 2> kModes{"decode", "prefill"};
constexpr std::array<OptionSpec, 3> kOptions{{
    kda_schema::kScale,
    {.name = "mode",
     .type = OptionType::choice,
     .default_text = "decode",
     .words = kModes,
     .doc = "whether tokens are of as many requests, or of one sequence"},
    kda_schema::kChunk,
}};

constexpr std::array<std::string_view, 3> kProblems{
    "TOKENS=1,H=32,K=128,HV=32,V=128,S=1", "TOKENS=128,H=32,K=128,HV=32,V=128,S=128",
    "TOKENS=8192,H=32,K=128,HV=32,V=128,S=1,mode=prefill"};

KdaDecodeOptions options_of(const Arguments& arguments) {
  KdaDecodeOptions options;
  options.scale = optional_real(arguments, "scale");
  options.scalar_gate = true;
  return options;
}

bool is_decode(const Arguments& arguments) { return arguments.text("mode") == "decode"; }

KdaDecodeTensors tensors_of(const Arguments& arguments) {
  int one = is_decode(arguments) ? 1 : 0;
  const View* indices = arguments.find("indices");
  if (one == 0 && indices != nullptr && size(*indices) != 1) {
    arguments.fail("indices is " + to_string(*indices) +
                   "; with mode=prefill all tokens are of one sequence, which has one index");
  }
  auto of = [&](const char* name) { return kda::with_unit_mode(arguments.tensor(name), one); };
  const View* out = arguments.find("out");
  return {.q = of("q"),
          .k = of("k"),
          .v = of("v"),
          .a = of("alpha"),
          .b = of("beta"),
          .state = arguments.tensor("state"),
          .indices = optional_view(arguments, "indices"),
          .out = out == nullptr ? View{} : kda::with_unit_mode(*out, one),
          .final_state = arguments.tensor("state")};
}

/// One token a request is never worth a chunk.
KdaPrefillOptions prefill_options_of(const Arguments& arguments) {
  return {options_of(arguments), is_decode(arguments) ? 1 : kda_schema::chunk_of(arguments)};
}

std::int64_t workspace_bytes(const Arguments& arguments) {
  return kda_prefill_workspace_bytes(tensors_of(arguments), prefill_options_of(arguments));
}

KdaPrefillPlan plan_of(const DeviceProperties& device, const Arguments& arguments) {
  return plan_kda_prefill(device, "gated_delta_rule", tensors_of(arguments),
                          prefill_options_of(arguments),
                          arguments.workspace(workspace_bytes(arguments)));
}

std::vector<OutputSpec> outputs(const Arguments& arguments) {
  arguments.check(Arguments::Outputs::optional);
  return {{"out", bf16, shape_of(arguments.tensor("v"))}};
}

void launch(const Device& device, const Stream& stream, const Arguments& arguments) {
  launch_kda_prefill(stream, plan_of(device.properties(), arguments));
}

/// For the reference a sequence has cu_seqlens, and so has a token of its own each request.
void reference(const Arguments& arguments, HostTensors& tensors) {
  std::int64_t tokens = tensors.at("q").shape[0];
  std::int64_t step = arguments.text("mode") == "decode" ? 1 : tokens;
  std::vector<double> first;
  for (std::int64_t at = 0; at <= tokens && (step > 0 || first.empty()); at += step)
    first.push_back(static_cast<double>(at));
  tensors.set(make_array("cu_seqlens", s32, {static_cast<std::int64_t>(first.size())}, first));
  DeltaRuleResults results =
      delta_rule_reference(options_of(arguments), tensors, {.a = "alpha", .b = "beta"});
  set_reference(arguments, "out", results.out, tensors);
  set_reference(arguments, "state", results.state, tensors);
}

/// As kda_decode and kda_prefill.
Tolerance tolerance(const Arguments& arguments, std::string_view output) {
  if (workspace_bytes(arguments) > 0) return chunk_tolerance(output);
  return kda::token_tolerance(output);
}

void check_contents(const Arguments& arguments, std::span<const Array> inputs) {
  check_slots(arguments, inputs, "indices", "state");
  std::int64_t tokens = arguments.size("TOKENS");
  check_growth(arguments, inputs,
               {.name = "alpha",
                .columns = arguments.size("HV"),
                .tokens = tokens,
                .chunk = chunked_tokens(tokens, prefill_options_of(arguments).chunk)});
}

std::int64_t bytes(const Arguments& arguments) {
  const View& state = arguments.tensor("state");
  bool decode = arguments.text("mode") == "decode";
  std::int64_t requests = decode ? arguments.size("TOKENS") : 1;
  std::int64_t total = bytes_of_inputs(arguments) - size_bytes(state);
  if (state.shape[0] > 0) total += 2 * size_bytes(state) / state.shape[0] * requests;
  return total + size_bytes(arguments.tensor("out"));
}

std::vector<Traced> trace(const Arguments& arguments, ptx::Target target) {
  return traced_kernels(plan_of(DeviceProperties{}, arguments), target);
}

/// Factors between 0 and 1; request n has slot n.
void fill(const Problem&, std::vector<Array>& inputs) {
  for (Array& input : inputs) {
    bool factors = input.name == "alpha" || input.name == "beta";
    if (!factors && input.name != "indices") continue;
    std::vector<double> values;
    for (std::int64_t i = 0; i < element_count(input.shape); ++i)
      values.push_back(factors ? static_cast<double>(1 + i % 9) / 10 : static_cast<double>(i));
    input = make_array(input.name, input.type, input.shape, values);
  }
}

constexpr Operator kOperator{
    .schema =
        {.name = "gated_delta_rule",
         .version = 1,
         .formula = "S = alpha S; S += beta (v - S k) k^T; out = S q, with q and k of length 1",
         .doc = "The delta rule with one decay factor a head, with the state in place.",
         .tensors = kTensors,
         .options = kOptions,
         .limits =
             "In chunks a NaN or an infinity reaches the tokens of its block of 16 in front of it, "
             "too, and what is less than 1e-5 of a state that a gate clears loses digits: "
             "chunk=1 takes token by token."},
    .outputs = outputs,
    .launch = launch,
    .workspace_bytes = workspace_bytes,
    .reference = reference,
    .tolerance = tolerance,
    .nan_rule = skip_nan,
    .check_contents = check_contents,
    .bytes = bytes,
    .trace = trace,
    .fill = fill,
    .bench_problems = kProblems};

}  // namespace

const Operator& gated_delta_rule_operator() { return kOperator; }

}  // namespace tilewright
