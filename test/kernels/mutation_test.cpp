// SPDX-License-Identifier: Apache-2.0
// Deletes each barrier, fence and wait of the operators' kernels, one at a time: nearly all must be
// seen. TILEWRIGHT_MUTATION=all tries more schedules and holds the survivors against
// mutation_survivors.txt; TILEWRIGHT_MUTATION_OPERATOR names one operator. scripts/mutation.sh runs
// all of them that way, in several processes.
#include "emu/grid.h"
#include "emu/mutants.h"
#include "kernels/small_problem.h"
#include "tilewright/module.h"
#include "tilewright/operators.h"

#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <iostream>
#include <map>
#include <set>

namespace tilewright {
namespace {

bool all_wanted() {
  const char* value = std::getenv("TILEWRIGHT_MUTATION");
  return value != nullptr && std::string(value) == "all";
}

bool wanted(std::string_view op) {
  const char* one = std::getenv("TILEWRIGHT_MUTATION_OPERATOR");
  return one == nullptr || op == one;
}

/// A kernel of an operator as printed, and the lines of that text which ran.
struct Kernel {
  std::string text;
  std::set<std::uint32_t> executed;
};

/// Runs the problem with the entries of `texts` replaced; false if something was reported.
bool run(const Operator& op, const std::string& problem, const emu::Options& options,
         const std::map<std::string, std::string>& texts,
         const std::function<void(const emu::Launch&, const emu::LaunchReport&)>& after = {}) {
  const Device device = Device::open("emu:sm_90a");
  device.set_options(options);
  test::PlacedProblem placed(device, op, problem);
  emu::Machine& machine = device.emulator();
  bool ok = true;
  machine.device().hooks.before = [&](emu::Launch& launch) {
    const auto found = texts.find(launch.entry);
    if (found == texts.end()) return;
    launch.program = machine.load(ptx::parse(found->second, launch.entry + ".ptx"));
  };
  machine.device().hooks.after = [&](const emu::Launch& launch, const emu::LaunchReport& report) {
    ok = ok && report.ok();
    if (after) after(launch, report);
  };
  placed.launch();
  return ok;
}

std::map<std::string, Kernel> kernels_of(const Operator& op, const std::string& problem) {
  std::map<std::string, std::string> texts;
  run(op, problem, {}, {}, [&](const emu::Launch& launch, const emu::LaunchReport&) {
    ptx::Module module = launch.program.code->module;
    texts[launch.entry] = ptx::print(module);
  });
  emu::Options options;
  options.counters = emu::Counting::on;
  options.checks = emu::parse_checks("all,overtaken_read");
  std::map<std::string, Kernel> out;
  auto note = [&](const emu::Launch& launch, const emu::LaunchReport& report) {
    Kernel& kernel = out[launch.entry];
    kernel.text = texts[launch.entry];
    for (const emu::InstrCount& each : report.counters.instructions)
      kernel.executed.insert(each.ptx_line);
  };
  EXPECT_TRUE(run(op, problem, options, texts, note)) << op.schema.name << " " << problem;
  return out;
}

bool is_reported(const Operator& op, const std::string& problem, const std::string& entry,
                 const std::string& text) {
  const std::uint64_t seeds = all_wanted() ? 9 : 2;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    emu::Options options;
    options.seed = seed;
    options.checks = emu::parse_checks("all,overtaken_read");  // as kernels_of has them clean
    options.delivery = static_cast<emu::Delivery>(seed % 3);
    options.divergence = static_cast<emu::Divergence>(seed / 3 % 3);
    options.limits.idle_steps = 1 << 16;
    if (!run(op, problem, options, {{entry, text}})) return true;
  }
  return false;
}

/// The name without the sizes that it was specialised for: "moe_dispatch_replicated".
std::string family(const std::string& entry) { return entry.substr(0, entry.find_last_of('_')); }

/// What was tried, by "OPERATOR KERNEL: STATEMENT number N" and whether some problem showed it.
std::map<std::string, bool> tried(const Operator& op) {
  std::map<std::string, bool> out;
  for (const std::string& problem : test::small_problems(op)) {
    for (const auto& [entry, kernel] : kernels_of(op, problem)) {
      std::map<std::string, int> numbers;
      for (const emu::test::Mutant& mutant : emu::test::mutants(kernel.text)) {
        if (!kernel.executed.contains(mutant.line)) continue;
        const std::string statement = mutant.what.substr(mutant.what.find(": ") + 2);
        const std::string name =
            family(entry) + ": " + statement + " number " + std::to_string(++numbers[statement]);
        bool& seen = out[std::string(op.schema.name) + " " + name];
        seen = seen || is_reported(op, problem, entry, mutant.text);
      }
    }
  }
  return out;
}

/// "OPERATOR KERNEL: STATEMENT number N | reason" a line.
std::map<std::string, std::string> listed_survivors() {
  std::ifstream in(std::string(TILEWRIGHT_SOURCE_DIR) + "/test/kernels/mutation_survivors.txt");
  std::map<std::string, std::string> out;
  for (std::string line; std::getline(in, line);) {
    const std::size_t bar = line.find(" | ");
    if (bar == std::string::npos || !wanted(line.substr(0, line.find(' ')))) continue;
    out[line.substr(0, bar)] = line.substr(bar + 3);
  }
  return out;
}

TEST(OperatorMutation, DeletedSynchronisationIsReported) {
  const std::map<std::string, std::string> listed = listed_survivors();
  std::set<std::string> survivors;
  std::string unlisted;
  std::size_t all = 0, unlisted_count = 0;
  for (const Operator* op : operators()) {
    if (!wanted(op->schema.name)) continue;
    for (const auto& [name, seen] : tried(*op)) {
      ++all;
      if (seen) continue;
      survivors.insert(name);
      if (listed.contains(name)) continue;
      unlisted += "\n" + name;
      ++unlisted_count;
    }
  }
  EXPECT_TRUE(all > 0 || all_wanted());  // some kernel has something to delete
  std::cout << "deletions " << all << ", survivors " << survivors.size() << "\n";
  EXPECT_LE(unlisted_count * 20, all_wanted() ? 0 : all)
      << unlisted_count << " of " << all
      << " survive without a reason in test/kernels/mutation_survivors.txt:" << unlisted;
  for (const auto& [name, reason] : listed) {
    EXPECT_FALSE(reason.empty()) << name;
    if (all_wanted()) {
      EXPECT_TRUE(survivors.contains(name)) << name << " is reported by now";
    }
  }
}

}  // namespace
}  // namespace tilewright
