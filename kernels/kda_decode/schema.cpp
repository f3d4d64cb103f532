// SPDX-License-Identifier: Apache-2.0
// kda_decode as the command line and bindings see them.
#include "kernels/kda/reference.h"
#include "kernels/kda_decode/delta_schema.h"
#include "kernels/kda_decode/reference.h"

#include <array>

namespace tilewright {
namespace {

using namespace kda_schema;  // NOLINT(google-build-using-namespace): this file's words

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
constexpr std::array<std::string_view, 3> kDecodeProblems{
    "N=1,T=1,H=32,K=128,HV=32,V=128,S=1,A_log=f32,dt_bias=f32,lower_bound=-5",
    "N=32,T=1,H=32,K=128,HV=32,V=128,S=32,A_log=f32,dt_bias=f32,lower_bound=-5",
    "N=128,T=1,H=32,K=128,HV=32,V=128,S=128,A_log=f32,dt_bias=f32,lower_bound=-5"};
KdaDecodePlan decode_plan(const Arguments& arguments) {
  KdaDecodeTensors tensors = common_tensors(arguments);
  tensors.state = arguments.tensor("state");
  tensors.indices = optional_view(arguments, "indices");
  tensors.snapshots = optional_view(arguments, "snapshots");
  if (arguments.boolean("update_state")) tensors.final_state = tensors.state;
  return plan_kda_decode("kda_decode", tensors, options_of(arguments));
}

std::vector<OutputSpec> decode_outputs(const Arguments& arguments) {
  arguments.check(Arguments::Outputs::optional);
  std::vector<std::int64_t> shape = shape_of(arguments.tensor("v"));
  std::vector<std::int64_t> states = shape;
  states.push_back(arguments.size("K"));
  return {{"out", bf16, shape}, {"snapshots", f32, states}};
}

void launch_decode(const Device&, const Stream& stream, const Arguments& arguments) {
  launch_kda_decode(stream, decode_plan(arguments));
}

void decode_reference(const Arguments& arguments, HostTensors& tensors) {
  DeltaRuleResults results = delta_rule_reference(options_of(arguments), tensors, {});
  set_reference(arguments, "out", results.out, tensors);
  set_reference(arguments, "snapshots", results.snapshots, tensors);
  if (arguments.boolean("update_state")) set_reference(arguments, "state", results.state, tensors);
}

Tolerance tolerance(const Arguments&, std::string_view output) {
  return kda::token_tolerance(output);
}

std::int64_t decode_bytes(const Arguments& arguments) {
  return bytes_of(decode_plan(arguments).tensors);
}

std::vector<Traced> trace_decode(const Arguments& arguments, ptx::Target target) {
  KdaDecodePlan plan = decode_plan(arguments);
  std::vector<Traced> traced;
  if (plan.launch.grid.x > 0) traced.push_back(plan.trace(target));
  return traced;
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
    .nan_rule = skip_nan,
    .check_contents =
        [](const Arguments& arguments, std::span<const Array> inputs) {
          check_slots(arguments, inputs, "indices", "state");
        },
    .bytes = decode_bytes,
    .trace = trace_decode,
    .fill = fill,
    .bench_problems = kDecodeProblems};

}  // namespace

const Operator& kda_decode_operator() { return kDecode; }

}  // namespace tilewright
