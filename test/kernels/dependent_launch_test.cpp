// SPDX-License-Identifier: Apache-2.0
// Every operator as a dependent launch: it waits before it touches what its predecessor wrote.
#include "emu/grid.h"
#include "kernels/small_problem.h"
#include "tilewright/dependent_launches.h"
#include "tilewright/emulator.h"
#include "tilewright/module.h"
#include "tilewright/operators.h"

#include <gtest/gtest.h>

namespace tilewright {
namespace {

enum class Wait : std::uint8_t { kept, deleted };

struct Outcome {
  int dependent = 0;  ///< launches
  bool ok = true;
  bool differ = false;  ///< in what they write
};

/// Two launches in a row write the same outputs.
Outcome run_twice(const Operator& op, const std::string& problem, Wait wait) {
  const Device device = Device::open("emu:sm_90a");
  test::PlacedProblem placed(device, op, problem);
  emu::Machine& machine = device.emulator();
  Outcome outcome;
  machine.device().hooks.before = [&](emu::Launch& launch) {
    if (!launch.order || !launch.order->dependent) return;
    ++outcome.dependent;
    if (wait == Wait::kept) return;
    ptx::Module module = launch.program.code->module;
    std::string text = ptx::print(module);
    const std::string statement = "griddepcontrol.wait;";
    for (std::size_t at = text.find(statement); at != std::string::npos; at = text.find(statement))
      text.erase(at, statement.size());
    launch.program = machine.load(ptx::parse(text, launch.entry + ".ptx"));
  };
  machine.device().hooks.after = [&](const emu::Launch&, const emu::LaunchReport& report) {
    outcome.ok = outcome.ok && report.ok();
  };
  const DependentLaunches dependent;
  placed.launch_twice();
  outcome.differ = placed.has_inputs();
  return outcome;
}

class DependentOperator : public testing::TestWithParam<const Operator*> {};

TEST_P(DependentOperator, WaitsForItsPredecessor) {
  const Operator& op = *GetParam();
  const std::vector<std::string> problems = test::small_problems(op);
  if (problems.empty()) GTEST_SKIP() << test::why_none(op);
  const Outcome waits = run_twice(op, problems.front(), Wait::kept);
  EXPECT_TRUE(waits.ok) << problems.front();
  if (waits.dependent == 0) GTEST_SKIP() << op.schema.name << " is launched cooperatively";
  if (!waits.differ) return;  // without the wait no one would know
  EXPECT_FALSE(run_twice(op, problems.front(), Wait::deleted).ok) << problems.front();
}

INSTANTIATE_TEST_SUITE_P(Registry, DependentOperator,
                         testing::ValuesIn(operators().begin(), operators().end()),
                         [](const auto& row) { return std::string(row.param->schema.name); });

TEST(DependentLaunches, AreWantedWhileOneLives) {
  EXPECT_FALSE(DependentLaunches::wanted());
  {
    const DependentLaunches outer;
    { const DependentLaunches inner; }
    EXPECT_TRUE(DependentLaunches::wanted());
  }
  EXPECT_FALSE(DependentLaunches::wanted());
}

}  // namespace
}  // namespace tilewright
