// SPDX-License-Identifier: Apache-2.0
// kda_commit as the command line and bindings see it, with its reference.
#include "kernels/kda_commit/kda_commit.h"
#include "kernels/rows/row_schema.h"

#include <algorithm>
#include <array>

namespace tilewright {
namespace {

constexpr std::array kIndices{s32, s64};
constexpr std::array<TensorSpec, 6> kTensors{{
    {.name = "state", .role = Role::inout, .shape = "S,HV,V,K", .types = kF32},
    {.name = "d_records", .role = Role::input, .shape = "N,T,HV,V", .types = kF32},
    {.name = "k_records", .role = Role::input, .shape = "N,T,HV,K", .types = kF32},
    {.name = "decay_records", .role = Role::input, .shape = "N,T,HV,K", .types = kF32},
    {.name = "accepted",
     .role = Role::input,
     .shape = "N",
     .types = kIndices,
     .doc = "tokens from the first on, T at most; 0: the state stays"},
    {.name = "indices",
     .role = Role::input,
     .presence = Presence::optional,
     .shape = "N",
     .types = kIndices,
     .doc = "the slot of a request; negative: it is inactive; absent: 0 to N - 1"},
}};
constexpr std::array<std::string_view, 1> kProblems{"S=32,HV=32,V=128,K=128,N=32,T=4"};

KdaCommitTensors tensors_of(const Arguments& arguments) {
  return {arguments.tensor("state"),     arguments.tensor("d_records"),
          arguments.tensor("k_records"), arguments.tensor("decay_records"),
          arguments.tensor("accepted"),  optional_view(arguments, "indices")};
}

std::vector<OutputSpec> outputs(const Arguments& arguments) {
  arguments.check(Arguments::Outputs::optional);
  return {};
}

void launch(const Device&, const Stream& stream, const Arguments& arguments) {
  kda_commit(stream, tensors_of(arguments));
}

/// Token by token: S = S diag(decay) + d k^T.
void reference(const Arguments&, HostTensors& tensors) {
  const Array& k_records = tensors.at("k_records");
  std::vector<double> state = to_doubles(tensors.at("state"));
  std::vector<double> d = to_doubles(tensors.at("d_records")), k = to_doubles(k_records);
  std::vector<double> decay = to_doubles(tensors.at("decay_records"));
  std::vector<double> accepted = to_doubles(tensors.at("accepted")), slots;
  if (const Array* indices = tensors.find("indices")) slots = to_doubles(*indices);
  std::int64_t steps = k_records.shape[1], heads = k_records.shape[2], width = k_records.shape[3];
  std::int64_t height = tensors.at("d_records").shape[3];
  auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  for (std::int64_t n = 0; n < k_records.shape[0]; ++n) {
    auto slot = slots.empty() ? n : static_cast<std::int64_t>(slots[at(n)]);
    auto count = std::min(steps, static_cast<std::int64_t>(accepted[at(n)]));
    for (std::int64_t t = 0; t < count && slot >= 0; ++t) {
      for (std::int64_t i = 0; i < heads * height * width; ++i) {
        std::int64_t column = i % width, row = i / width % height, head = i / width / height;
        std::int64_t token = (n * steps + t) * heads + head;
        double& s = state[at(slot * heads * height * width + i)];
        s = s * decay[at(token * width + column)] +
            d[at(token * height + row)] * k[at(token * width + column)];
      }
    }
  }
  tensors.set(make_array("state", f64, tensors.at("state").shape, state));
}

/// Only f32 arithmetic is between a state and its reference.
Tolerance tolerance(const Arguments&, std::string_view) { return {.rmse = 1e-6}; }

/// Contract, K 6: states of N requests in and out, records once.
std::int64_t bytes(const Arguments& arguments) {
  const View& state = arguments.tensor("state");
  std::int64_t total = bytes_of_inputs(arguments) - size_bytes(state);
  if (state.shape[0] > 0) total += 2 * size_bytes(state) / state.shape[0] * arguments.size("N");
  return total;
}

std::vector<Traced> trace(const Arguments& arguments, ptx::Target target) {
  std::vector<Traced> traced;
  KdaCommitPlan plan = plan_kda_commit(tensors_of(arguments));
  if (plan.launch.grid.x > 0) traced.push_back(plan.trace(target));
  return traced;
}

/// Request n has slot n; some of the tokens are accepted.
void fill(const Problem& problem, std::vector<Array>& inputs) {
  for (Array& input : inputs) {
    if (input.name != "accepted" && input.name != "indices") continue;
    std::vector<double> values;
    for (std::int64_t n = 0; n < problem.size("N"); ++n) {
      std::int64_t accepted = 1 + n % std::max<std::int64_t>(problem.size("T"), 1);
      values.push_back(static_cast<double>(input.name == "indices" ? n : accepted));
    }
    input = make_array(input.name, input.type, input.shape, values);
  }
}

constexpr Operator kOperator{
    .schema = {.name = "kda_commit",
               .version = 1,
               .formula = "S = S diag(e^g) + d k^T for the accepted tokens in turn",
               .doc = "The state after the accepted tokens, from the records of "
                      "kda_verify_compact.",
               .tensors = kTensors},
    .outputs = outputs,
    .launch = launch,
    .reference = reference,
    .tolerance = tolerance,
    .check_contents =
        [](const Arguments& arguments, std::span<const Array> inputs) {
          check_slots(arguments, inputs, "indices", "state");
        },
    .bytes = bytes,
    .trace = trace,
    .fill = fill,
    .bench_problems = kProblems};

}  // namespace

const Operator& kda_commit_operator() { return kOperator; }

}  // namespace tilewright
