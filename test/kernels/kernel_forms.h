// SPDX-License-Identifier: Apache-2.0
// The kernels of an operator that differ in how they synchronise, and with what each runs.
#pragma once

#include "tilewright/emulator.h"
#include "tilewright/operator.h"
#include "tilewright/tune.h"

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace tilewright::test {

/// A problem, and the configuration that its plan is made to choose.
struct Setting {
  std::string problem;
  const tune::Space* space = nullptr;  ///< null: the standard one
  tune::Config config{};
  std::string text() const;
};

/// Runs with the entries of `texts` replaced, and `after` each launch; false if something was
/// reported.
bool run(const Operator& op, const Setting& setting, const emu::Options& options,
         const std::map<std::string, std::string>& texts,
         const std::function<void(const emu::Launch&, const emu::LaunchReport&)>& after = {});

/// A kernel in one setting.
struct Sample {
  Setting setting;
  std::string entry;
  std::uint64_t threads = 0;  ///< of a block
};
/// Its text, and the lines of that which run; nothing may be reported.
struct Ran {
  std::string text;
  std::set<std::uint32_t> executed;
};
Ran run_sample(const Operator& op, const Sample& sample);

/// Kernels with the same statements of synchronisation in the same order. A sample a problem with
/// the standard configuration, and for each size of blocks the first of those that a search may
/// take: a warp of few has more to do.
struct Form {
  std::string name;  ///< without sizes; "moe_dispatch_replicated form 2"
  std::vector<Sample> samples;
};

/// `standard`: those of small_problems(). `all`: of problems of every kind, in each configuration
/// that a search may take.
enum class Wanted : std::uint8_t { standard, all };
std::vector<Form> forms(const Operator& op, Wanted wanted);

}  // namespace tilewright::test
