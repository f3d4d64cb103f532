// SPDX-License-Identifier: Apache-2.0
// Deletes each barrier, fence and wait of the operators' kernels, one at a time: nearly all must be
// seen. TILEWRIGHT_MUTATION=all tries more schedules and holds the survivors against
// mutation_survivors.txt; TILEWRIGHT_MUTATION_OPERATOR names one operator. scripts/mutation.sh runs
// all of them that way, in several processes.
#include "emu/mutants.h"
#include "kernels/kernel_forms.h"
#include "tilewright/operators.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <iostream>
#include <map>
#include <set>

namespace tilewright {
namespace {

using test::Form;
using test::Sample;

bool all_wanted() {
  const char* value = std::getenv("TILEWRIGHT_MUTATION");
  return value != nullptr && std::string(value) == "all";
}

bool wanted(std::string_view op) {
  const char* one = std::getenv("TILEWRIGHT_MUTATION_OPERATOR");
  return one == nullptr || op == one;
}

bool is_reported(const Operator& op, const Sample& sample, const std::string& text) {
  const std::uint64_t seeds = all_wanted() ? 9 : 2;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    emu::Options options;
    options.seed = seed;
    options.checks = emu::parse_checks("all,overtaken_read");  // as the originals are clean
    options.delivery = static_cast<emu::Delivery>(seed % 3);
    options.divergence = static_cast<emu::Divergence>(seed / 3 % 3);
    options.limits.idle_steps = 1 << 16;
    if (!test::run(op, sample.setting, options, {{sample.entry, text}})) return true;
  }
  return false;
}

/// What was tried of a form, by "OPCODE number N", and whether some launch showed it.
using Tried = std::map<std::string, bool>;

/// Returns whether more launches may show more.
bool try_sample(const Operator& op, const Sample& sample, Tried& tried) {
  const test::Ran ran = test::run_sample(op, sample);
  std::map<std::string, int> numbers;
  bool more = false;
  for (const emu::test::Mutant& mutant : emu::test::mutants(ran.text)) {
    const std::string name = mutant.opcode + " number " + std::to_string(++numbers[mutant.opcode]);
    if (ran.executed.contains(mutant.line)) {
      bool& seen = tried[name];
      seen = seen || is_reported(op, sample, mutant.text);
    }
    const auto found = tried.find(name);
    more = more || found == tried.end() || !found->second;
  }
  return more;
}

/// By "OPERATOR KERNEL: OPCODE number N".
Tried try_operator(const Operator& op) {
  Tried all;
  const auto which = all_wanted() ? test::Wanted::all : test::Wanted::standard;
  for (const Form& form : test::forms(op, which)) {
    Tried tried;
    for (const Sample& sample : form.samples) {
      if (!try_sample(op, sample, tried)) break;
    }
    const std::string name = std::string(op.schema.name) + " " + form.name;
    const auto survivors =
        std::count_if(tried.begin(), tried.end(), [](const auto& one) { return !one.second; });
    std::cout << name << ": " << tried.size() << " deletions, " << survivors << " survive, "
              << form.samples.front().setting.text() << std::endl;
    for (const auto& [what, seen] : tried)
      all[std::string(name).append(": ").append(what)] = seen;
  }
  return all;
}

/// "OPERATOR KERNEL: OPCODE number N | reason" a line.
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
    for (const auto& [name, seen] : try_operator(*op)) {
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
