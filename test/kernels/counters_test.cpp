// SPDX-License-Identifier: Apache-2.0
// What every operator's kernels do on small problems, counted: test/golden/counters/OPERATOR.txt.
#include "emu/grid.h"
#include "golden.h"
#include "kernels/small_problem.h"
#include "tilewright/operators.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <iomanip>
#include <map>
#include <sstream>

namespace tilewright {
namespace {

std::string text(const emu::Dim3& d) {
  return std::to_string(d.x) + "x" + std::to_string(d.y) + "x" + std::to_string(d.z);
}

/// Instructions that touch memory or diverge, summed by opcode.
std::string instruction_rows(const emu::Counters& counters) {
  std::map<std::string, emu::InstrCount> by_opcode;
  for (const emu::InstrCount& each : counters.instructions) {
    emu::InstrCount& sum = by_opcode[each.instruction];
    sum.executions += each.executions;
    sum.divergent += each.divergent;
    sum.sectors += each.sectors;
    sum.ideal_sectors += each.ideal_sectors;
    sum.wavefronts += each.wavefronts;
    sum.ideal_wavefronts += each.ideal_wavefronts;
  }
  std::ostringstream out;
  for (const auto& [opcode, sum] : by_opcode) {
    if (sum.sectors + sum.wavefronts + sum.divergent == 0) continue;
    out << "    " << opcode << ": " << sum.executions << " executed";
    if (sum.divergent > 0) out << ", " << sum.divergent << " divergent";
    if (sum.sectors > 0) out << ", " << sum.sectors << " sectors of " << sum.ideal_sectors;
    if (sum.wavefronts > 0)
      out << ", " << sum.wavefronts << " wavefronts of " << sum.ideal_wavefronts;
    out << "\n";
  }
  return out.str();
}

std::string totals(const emu::Counters& c) {
  std::ostringstream out;
  out << "    instructions: " << c.warp_instructions << " of warps, " << c.thread_instructions
      << " of threads\n    bytes:";
  const std::pair<const char*, std::uint64_t> bytes[] = {{"global read", c.global_read_bytes},
                                                         {"global written", c.global_written_bytes},
                                                         {"shared read", c.shared_read_bytes},
                                                         {"shared written", c.shared_written_bytes},
                                                         {"local", c.local_bytes},
                                                         {"asynchronous", c.async_bytes}};
  const char* comma = " ";
  for (const auto& [what, count] : bytes) {
    if (count == 0) continue;
    out << comma << what << " " << count;
    comma = ", ";
  }
  out << "\n";
  if (c.atomics > 0) out << "    atomics: " << c.atomics << "\n";
  if (c.tensor_ops > 0) out << "    tensor operations: " << c.tensor_ops << "\n";
  return out.str();
}

constexpr std::ptrdiff_t kMostGoldenLines = 80;  // of test/structure: a second problem has to fit
std::ptrdiff_t line_count(const std::string& text) {
  return std::count(text.begin(), text.end(), '\n');
}

std::string counted(const Operator& op, const std::string& problem) {
  const Device device = Device::open("emu:sm_90a");
  emu::Options options;
  options.counters = emu::Counting::on;
  device.set_options(options);
  test::PlacedProblem placed(device, op, problem);
  std::string out = "problem " + problem + "\n";
  device.emulator().device().hooks.after = [&](const emu::Launch& launch,
                                               const emu::LaunchReport& report) {
    EXPECT_TRUE(report.ok()) << op.schema.name << " " << problem;
    out += "  kernel " + launch.entry + ": grid " + text(launch.grid) + ", block " +
           text(launch.block) + "\n" + totals(report.counters) + instruction_rows(report.counters);
  };
  placed.launch();
  return out;
}

class OperatorCounters : public testing::TestWithParam<const Operator*> {};

TEST_P(OperatorCounters, AreThoseOfTheGoldenFile) {
  const Operator& op = *GetParam();
  std::string all;
  std::vector<std::string> problems = test::small_problems(op);
  problems.resize(std::min<std::size_t>(problems.size(), 2));  // the least and a wide one
  for (const std::string& problem : problems) {
    const std::string next = counted(op, problem);
    if (all.empty() || line_count(all + next) <= kMostGoldenLines) all += next;
  }
  if (all.empty()) {
    GTEST_SKIP() << op.schema.name
                 << " takes none of its bench problems here: " << test::why_none(op);
  }
  test::expect_golden("counters/" + std::string(op.schema.name) + ".txt", all);
}

INSTANTIATE_TEST_SUITE_P(Registry, OperatorCounters,
                         testing::ValuesIn(operators().begin(), operators().end()),
                         [](const auto& row) { return std::string(row.param->schema.name); });

}  // namespace
}  // namespace tilewright
