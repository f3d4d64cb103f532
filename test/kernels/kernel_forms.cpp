// SPDX-License-Identifier: Apache-2.0
// Collecting forms by what is launched, and running them.
#include "kernels/kernel_forms.h"

#include "emu/grid.h"
#include "emu/mutants.h"
#include "kernels/small_problem.h"
#include "tilewright/error.h"
#include "tilewright/module.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <optional>
#include <span>

namespace tilewright::test {
namespace {

/// The name without the sizes that it was specialised for: "moe_dispatch_replicated".
std::string family(const std::string& entry) { return entry.substr(0, entry.find_last_of('_')); }

/// What tells forms apart; empty if nothing synchronises.
std::string signature(const std::string& entry, const std::string& text) {
  std::multimap<std::uint32_t, std::string> by_line;
  for (const emu::test::Mutant& mutant : emu::test::mutants(text))
    by_line.emplace(mutant.line, mutant.opcode);
  std::string opcodes;
  for (const auto& [line, opcode] : by_line)
    opcodes += " " + opcode;
  return opcodes.empty() ? "" : family(entry) + opcodes;
}

class Collector {
 public:
  explicit Collector(const Operator& op) : op_(op) {}
  std::vector<Form> take() { return std::move(forms_); }

  void add_problem(const std::string& problem, Wanted wanted) {
    const tune::Watch watch;
    add({problem});
    if (wanted == Wanted::standard) return;
    const Device device = Device::open("emu:sm_90a");
    for (const tune::Lookup& lookup : std::vector<tune::Lookup>(watch.lookups())) {
      const std::vector<tune::Config> configs =
          tune::candidates(*lookup.space, device.properties(), lookup.key);
      for (const tune::Config& config : std::span(configs).subspan(1))  // behind the standard one
        add_configuration({problem, lookup.space, config});
    }
  }

 private:
  const Operator& op_;
  std::vector<Form> forms_;
  std::map<std::string, std::size_t> number_;  ///< of a form, by signature
  std::map<std::string, int> of_family_;

  void add_configuration(const Setting& setting) {
    try {
      add(setting);
    } catch (const Error& error) {  // not for another key that the plan looks up
      if (error.kind() == ErrorKind::internal) throw;
    }
  }

  /// The kernels are made and begin; what they do does not matter here.
  void add(const Setting& setting) {
    emu::Options options;
    options.limits.steps = 1;
    run(op_, setting, options, {}, [&](const emu::Launch& launch, const emu::LaunchReport&) {
      ptx::Module module = launch.program.code->module;
      const std::string key = signature(launch.entry, ptx::print(module));
      if (!key.empty()) add(key, {setting, launch.entry, launch.block.count()});
    });
  }

  void add(const std::string& key, Sample sample) {
    const auto [at, fresh] = number_.emplace(key, forms_.size());
    if (fresh) {
      const std::string name = family(sample.entry);
      const int count = ++of_family_[name];
      forms_.push_back({count == 1 ? name : name + " form " + std::to_string(count), {}});
    }
    std::vector<Sample>& samples = forms_[at->second].samples;
    const bool known = std::any_of(samples.begin(), samples.end(), [&](const Sample& other) {
      return other.setting.problem == sample.setting.problem &&
             other.setting.space == sample.setting.space && other.threads == sample.threads;
    });
    if (!known) samples.push_back(std::move(sample));  // what one does not show, another may
  }
};

}  // namespace

std::string Setting::text() const {
  std::string out = problem;
  if (space != nullptr) out += " with " + tune::config_text(*space, config);
  return out;
}

bool run(const Operator& op, const Setting& setting, const emu::Options& options,
         const std::map<std::string, std::string>& texts,
         const std::function<void(const emu::Launch&, const emu::LaunchReport&)>& after) {
  const Device device = Device::open("emu:sm_90a");
  device.set_options(options);
  PlacedProblem placed(device, op, setting.problem);
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
  std::optional<tune::Pin> pin;
  if (setting.space != nullptr) pin.emplace(*setting.space, setting.config);
  placed.launch();
  return ok;
}

Ran run_sample(const Operator& op, const Sample& sample) {
  std::string text;
  run(op, sample.setting, {}, {}, [&](const emu::Launch& launch, const emu::LaunchReport&) {
    ptx::Module module = launch.program.code->module;
    if (launch.entry == sample.entry) text = ptx::print(module);
  });
  Ran ran{std::move(text), {}};
  emu::Options options;
  options.counters = emu::Counting::on;
  options.checks = emu::parse_checks("all,overtaken_read");
  auto note = [&](const emu::Launch& launch, const emu::LaunchReport& report) {
    if (launch.entry != sample.entry) return;
    for (const emu::InstrCount& each : report.counters.instructions)
      ran.executed.insert(each.ptx_line);
  };
  const bool ok = run(op, sample.setting, options, {{sample.entry, ran.text}}, note);
  EXPECT_TRUE(ok) << op.schema.name << " " << sample.setting.text();
  return ran;
}

std::vector<Form> forms(const Operator& op, Wanted wanted) {
  Collector all(op);
  // The last problems are those that are chosen for what they show.
  auto add = [&](std::vector<std::string> problems, Wanted which) {
    std::reverse(problems.begin(), problems.end());
    for (const std::string& problem : problems)
      all.add_problem(problem, which);
  };
  add(small_problems(op), Wanted::standard);
  if (wanted == Wanted::all) add(problems_of_every_kind(op), wanted);
  return all.take();
}

}  // namespace tilewright::test
