// SPDX-License-Identifier: Apache-2.0
// Every candidate of every operator's problems can be checked: its kernels can be made for inputs
// that a search has cut down.
#include "tilewright/operators.h"
#include "tilewright/trace.h"
#include "tilewright/tune.h"
#include "tune/operator_tuner.h"

#include <algorithm>
#include <gtest/gtest.h>

namespace tilewright::tune {
namespace {

/// Elements of the largest matrix that the problem's sizes span: inputs have to be made here.
std::int64_t extent(const Problem& problem) {
  std::vector<std::int64_t> sizes;
  for (const auto& [name, size] : problem.sizes)
    sizes.push_back(size);
  std::sort(sizes.rbegin(), sizes.rend());
  return sizes.empty() ? 0 : sizes[0] * (sizes.size() > 1 ? sizes[1] : 1);
}

std::vector<Lookup> lookups_of(const Inputs& inputs, ptx::Target target) {
  const Watch watch;
  (void)inputs.op->trace(unplaced_arguments(inputs, {}), target);
  return watch.lookups();
}

/// Candidates whose check was made.
int check_candidates(const Operator& op, const std::string& text, ptx::Target target) {
  int checked = 0;
  for (const Lookup& lookup : lookups_of(make_problem_inputs(op, text, 0), target)) {
    for (const Config& config : candidates(*lookup.space, DeviceProperties{}, lookup.key)) {
      SCOPED_TRACE(std::string(op.schema.name) + " " + text + ": " +
                   std::string(lookup.space->name) + " " + config_text(*lookup.space, config));
      const Pin pin(*lookup.space, config);
      try {
        const Inputs inputs = check_inputs({&op, text}, *lookup.space, target, 1);
        (void)op.trace(unplaced_arguments(inputs, {}), target);
        ++checked;
      } catch (const Error& error) {
        ADD_FAILURE() << error.what();
      }
    }
  }
  return checked;
}

TEST(Tuning, ChecksEveryCandidateOnInputsThatItsKernelsCanTake) {
  constexpr std::int64_t kMostElements = 1 << 20;
  const ptx::Target target = ptx::parse_target("sm_90a");
  int checked = 0;
  for (const Operator* op : operators()) {
    if (op->trace == nullptr) continue;
    for (std::string_view text : op->bench_problems) {
      if (extent(parse_problem(op->schema, text)) <= kMostElements)
        checked += check_candidates(*op, std::string(text), target);
    }
  }
  EXPECT_GT(checked, 100);
}

}  // namespace
}  // namespace tilewright::tune
