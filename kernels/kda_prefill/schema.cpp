// SPDX-License-Identifier: Apache-2.0
// kda_prefill as the command line and bindings see it.
#include "kernels/kda/reference.h"
#include "kernels/kda_decode/delta_schema.h"
#include "kernels/kda_decode/reference.h"
#include "kernels/kda_prefill/growth.h"
#include "kernels/kda_prefill/kda_prefill.h"

#include <algorithm>
#include <array>
#include <utility>

namespace tilewright {
namespace {

using namespace kda_schema;  // NOLINT(google-build-using-namespace): this file's words

constexpr std::array<TensorSpec, 11> kTensors{{
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

constexpr std::array<OptionSpec, 7> kOptions{
    {kScale, kLowerBound, kSoftplusBeta, kSoftplusThreshold, kStateLayout, kNegEigval, kChunk}};

// A short prompt and the heads of one device of eight, then long ones and all heads.
constexpr std::array<std::string_view, 4> kProblems{
    "N=1,T=128,H=4,K=128,HV=4,V=128,A_log=f32,dt_bias=f32,lower_bound=-5",
    "N=1,T=1600,H=32,K=128,HV=32,V=128,A_log=f32,dt_bias=f32,lower_bound=-5",
    "N=1,T=8192,H=32,K=128,HV=32,V=128,A_log=f32,dt_bias=f32,lower_bound=-5",
    "N=1,T=65536,H=32,K=128,HV=32,V=128,A_log=f32,dt_bias=f32,lower_bound=-5"};

KdaDecodeTensors tensors_of(const Arguments& arguments) {
  KdaDecodeTensors tensors = common_tensors(arguments);
  tensors.cu_seqlens = optional_view(arguments, "cu_seqlens");
  tensors.state = optional_view(arguments, "initial_state");
  tensors.final_state = optional_view(arguments, "final_state");
  return tensors;
}

KdaPrefillOptions prefill_options_of(const Arguments& arguments) {
  return {options_of(arguments), kda_schema::chunk_of(arguments)};
}

std::int64_t workspace_bytes(const Arguments& arguments) {
  return kda_prefill_workspace_bytes(tensors_of(arguments), prefill_options_of(arguments));
}

KdaPrefillPlan plan_of(const DeviceProperties& device, const Arguments& arguments) {
  return plan_kda_prefill(device, "kda_prefill", tensors_of(arguments),
                          prefill_options_of(arguments),
                          arguments.workspace(workspace_bytes(arguments)));
}

std::vector<OutputSpec> outputs(const Arguments& arguments) {
  arguments.check(Arguments::Outputs::optional);
  const View* seqlens = arguments.find("cu_seqlens");
  std::int64_t requests = arguments.size("N"), heads = arguments.size("HV");
  if (seqlens != nullptr) requests = std::max<std::int64_t>(seqlens->shape[0], 1) - 1;
  std::int64_t v = arguments.size("V"), k = arguments.size("K");
  if (arguments.text("state_layout") == "kv") std::swap(v, k);
  return {{"out", bf16, shape_of(arguments.tensor("v"))},
          {"final_state", f32, {requests, heads, v, k}}};
}

void launch(const Device& device, const Stream& stream, const Arguments& arguments) {
  launch_kda_prefill(stream, plan_of(device.properties(), arguments));
}

void reference(const Arguments& arguments, HostTensors& tensors) {
  DeltaRuleResults results =
      delta_rule_reference(options_of(arguments), tensors, {.state = "initial_state"});
  set_reference(arguments, "out", results.out, tensors);
  // There may be more initial states than sequences.
  if (const View* final_state = arguments.find("final_state"))
    results.state.resize(static_cast<std::size_t>(size(*final_state)));
  set_reference(arguments, "final_state", results.state, tensors);
}

/// Token by token as kda_decode.
Tolerance tolerance(const Arguments& arguments, std::string_view output) {
  if (workspace_bytes(arguments) == 0) return kda::token_tolerance(output);
  return chunk_tolerance(output);
}

void check_contents(const Arguments& arguments, std::span<const Array> inputs) {
  check_sequences(arguments, inputs, arguments.size("T"));
  bool given = arguments.find("A_log") == nullptr && !options_of(arguments).gate.lower_bound;
  if (!given) return;
  check_growth(arguments, inputs,
               {.name = "a",
                .logs = true,
                .columns = arguments.size("HV") * arguments.size("K"),
                .tokens = arguments.size("T"),
                .chunk = chunked_tokens(arguments.size("T"), chunk_of(arguments))});
}

std::int64_t bytes(const Arguments& arguments) { return bytes_of(tensors_of(arguments)); }

std::vector<Traced> trace(const Arguments& arguments, ptx::Target target) {
  return traced_kernels(plan_of(DeviceProperties{}, arguments), target);
}

constexpr Operator kOperator{
    .schema =
        {.name = "kda_prefill",
         .version = 1,
         .formula = "S = S diag(e^g); S += beta (v - S k) k^T; out = S q for all tokens in turn",
         .doc = "Kimi Delta Attention on whole sequences, in chunks on tensor cores or token "
                "by token.",
         .tensors = kTensors,
         .options = kOptions,
         .limits =
             "In chunks a NaN or an infinity reaches the tokens of its block of 16 before it, too, "
             "and what is less than 1e-5 of a state that a gate clears loses digits: chunk=1 takes "
             "token by token."},
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

const Operator& kda_prefill_operator() { return kOperator; }

}  // namespace tilewright
