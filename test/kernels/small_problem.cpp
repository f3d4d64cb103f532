// SPDX-License-Identifier: Apache-2.0
// Reducing the sizes of problems, and placing tensors.
#include "kernels/small_problem.h"

#include "tilewright/emulator.h"
#include "tilewright/error.h"
#include "tilewright/stream.h"

#include <algorithm>
#include <span>

namespace tilewright::test {
namespace {

/// The first size of a problem is its rows; the others may be needed at some size to be taken, and
/// wide rows are what makes threads of a block work together. Many rows meet in counters.
struct Caps {
  std::int64_t rows, others;
};
constexpr Caps kLeast[] = {{4, 128},   {4, 256},   {8, 512},          {8, 1024},
                           {16, 4096}, {64, 8192}, {1 << 20, 1 << 20}};
constexpr Caps kTall[] = {{64, 256}, {64, 512}, {64, 1024}, {64, 8192}};
constexpr Caps kWide[] = {{2, 8192}, {2, 4096}, {4, 1024}, {64, 512}};

/// Problems that show what reduced ones do not: lanes of a warp with the same expert; more chunks
/// than a pipeline has stages; sizes that are options, or too many for the emulator in any order.
struct Extra {
  std::string_view op, problem;
};
constexpr Extra kExtra[] = {
    {"kda_commit", "S=2,HV=2,V=128,K=128,N=2,T=4"},
    {"gated_delta_rule", "TOKENS=320,H=1,K=128,HV=1,V=128,S=1,mode=prefill"},
    {"lightning_attention", "T=320,H=1,K=128,HV=1,V=128,S=1,state=f32,cu_seqlens=s32"},
    {"kda_prefill", "N=1,T=320,H=1,K=128,HV=1,V=128,A_log=f32,dt_bias=f32,lower_bound=-5"},
    {"moe_dispatch", "T=256,K=8,H=128,x=bf16,experts=16,variant=replicated"},
    {"rope_table", "rotary_dim=64,max_position=33,scaling=yarn,factor=4"}};

/// Problems whose plans look up more spaces, with many choices a warp.
constexpr Extra kMoreKinds[] = {
    {"moe_dispatch", "T=256,K=8,H=128,x=bf16,experts=16,variant=decode"},
    {"moe_dispatch", "T=512,K=8,H=128,x=bf16,experts=16,variant=decode_dependent"},
    {"moe_dispatch", "T=2048,K=8,H=128,x=bf16,experts=16,variant=prefill"}};

constexpr std::uint64_t kMostSteps = 2'000'000;  // a fraction of a second

std::string reduced(const Problem& problem, Caps caps) {
  std::string text;
  auto append = [&](const std::string& name, const std::string& value) {
    text += (text.empty() ? "" : ",") + name + "=" + value;
  };
  for (std::size_t i = 0; i < problem.sizes.size(); ++i) {
    const auto& [name, value] = problem.sizes[i];
    append(name, std::to_string(std::min(value, i == 0 ? caps.rows : caps.others)));
  }
  for (const auto& [tensor, type] : problem.types)
    append(tensor, std::string(name(type)));
  for (const auto& [option, value] : problem.options)
    append(option, value);
  return text;
}

/// What distinguishes problems besides their sizes.
std::string kind_of(const Problem& problem) {
  Problem kind = problem;
  kind.sizes.clear();
  return reduced(kind, kLeast[0]);
}

/// Why the operator does not take the problem; empty if it does.
std::string refusal(const Operator& op, const std::string& problem) {
  const Device device = Device::open("emu:sm_90a");
  emu::Options options;
  options.limits.steps = kMostSteps;
  device.set_options(options);
  try {
    PlacedProblem(device, op, problem).launch();
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::internal) throw;
    return error.message();
  }
  return device.last_report().completed ? "" : "it takes too many steps";
}

/// The problem with the first sizes that the operator takes, if it is not there already.
void add_first_taken(const Operator& op, const Problem& problem, std::span<const Caps> caps,
                     std::vector<std::string>& taken) {
  for (const Caps each : caps) {
    const std::string candidate = reduced(problem, each);
    if (std::find(taken.begin(), taken.end(), candidate) != taken.end()) return;
    if (!refusal(op, candidate).empty()) continue;
    taken.push_back(candidate);
    return;
  }
}

}  // namespace

PlacedProblem::PlacedProblem(const Device& device, const Operator& op, const std::string& problem)
    : device_(device),
      op_(&op),
      problem_(parse_problem(op.schema, problem)),
      arguments_(op.schema) {
  for (const auto& [name, value] : problem_.options)
    arguments_.set_option(name, value);
  inputs_ = make_inputs(op, problem_, 1);
  for (const Array& input : inputs_) {
    add(input.name, input.type, input.shape);
    buffers_.back().upload(input.bytes);
  }
  for (const OutputSpec& output : op.outputs(arguments_)) {
    const bool given = std::any_of(inputs_.begin(), inputs_.end(),
                                   [&](const Array& a) { return a.name == output.name; });
    if (!given) add(output.name, output.type, output.shape);
  }
  if (op.workspace_bytes == nullptr) return;
  buffers_.emplace_back(device_, op.workspace_bytes(arguments_));
  buffers_.back().fill(std::byte{0});
  arguments_.set_workspace({buffers_.back().address(), buffers_.back().size_bytes()});
}

void PlacedProblem::add(std::string_view name, Type type, const std::vector<std::int64_t>& shape) {
  buffers_.emplace_back(device_, storage_bytes(type, shape));
  arguments_.set(name, make_view(buffers_.back().address(), type, shape));
}

void PlacedProblem::launch() {
  const Stream stream(device_);
  op_->launch(device_, stream, arguments_);
  stream.synchronize();
}

bool PlacedProblem::has_inputs() const {
  return std::any_of(op_->schema.tensors.begin(), op_->schema.tensors.end(),
                     [](const TensorSpec& spec) { return spec.role == Role::input; });
}

void PlacedProblem::launch_twice() {
  Arguments other = arguments_;
  for (const Array& input : make_inputs(*op_, problem_, 2)) {
    const auto spec = std::find_if(op_->schema.tensors.begin(), op_->schema.tensors.end(),
                                   [&](const TensorSpec& each) { return each.name == input.name; });
    if (spec->role != Role::input) continue;
    buffers_.emplace_back(device_, storage_bytes(input.type, input.shape));
    buffers_.back().upload(input.bytes);
    other.set(input.name, make_view(buffers_.back().address(), input.type, input.shape));
  }
  const Stream stream(device_);
  op_->launch(device_, stream, arguments_);
  op_->launch(device_, stream, other);
  stream.synchronize();
}

std::vector<std::string> small_problems(const Operator& op) {
  std::vector<std::string> taken, kinds;
  auto rows = [&](std::string_view text) {
    const Problem problem = parse_problem(op.schema, text);
    return problem.sizes.empty() ? 0 : problem.sizes.front().second;
  };
  for (const std::string_view text : op.bench_problems) {
    const Problem problem = parse_problem(op.schema, text);
    const std::string kind = kind_of(problem);
    if (std::find(kinds.begin(), kinds.end(), kind) != kinds.end()) continue;
    add_first_taken(op, problem, kLeast, taken);
    if (kinds.empty()) add_first_taken(op, problem, kWide, taken);
    kinds.push_back(kind);
    if (kinds.size() == 2) break;
  }
  const auto tallest =
      std::max_element(op.bench_problems.begin(), op.bench_problems.end(),
                       [&](std::string_view a, std::string_view b) { return rows(a) < rows(b); });
  if (tallest != op.bench_problems.end()) {
    add_first_taken(op, parse_problem(op.schema, *tallest), kTall, taken);
  }
  for (const Extra& extra : kExtra) {
    if (extra.op == op.schema.name) taken.emplace_back(extra.problem);
  }
  return taken;
}

std::vector<std::string> problems_of_every_kind(const Operator& op) {
  std::vector<std::string> taken = small_problems(op), kinds;
  for (const std::string_view text : op.bench_problems) {
    const Problem problem = parse_problem(op.schema, text);
    const std::string kind = kind_of(problem);
    if (std::find(kinds.begin(), kinds.end(), kind) != kinds.end()) continue;
    kinds.push_back(kind);
    add_first_taken(op, problem, kLeast, taken);
    add_first_taken(op, problem, kWide, taken);
  }
  for (const Extra& extra : kMoreKinds) {
    if (extra.op == op.schema.name) taken.emplace_back(extra.problem);
  }
  return taken;
}

std::string why_none(const Operator& op) {
  if (op.bench_problems.empty()) return "it has no bench problems";
  return refusal(op, std::string(op.bench_problems.front()));
}

}  // namespace tilewright::test
