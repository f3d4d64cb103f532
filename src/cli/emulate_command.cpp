// SPDX-License-Identifier: Apache-2.0
// `tilewright emulate`: any PTX, run with checks on the CPU.
#include "base/file.h"
#include "cli/emulate_arguments.h"
#include "cli/findings.h"
#include "cli/inputs.h"
#include "cli/interrupt.h"
#include "cli/program.h"
#include "cli/roofline.h"
#include "cli/text.h"
#include "cli/whole_number.h"
#include "tilewright/module.h"
#include "tilewright/replay.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>

namespace tilewright::cli {
namespace {

constexpr std::size_t kPreview = 16;

struct EmulateRequest {
  std::string file;
  std::string entry;
  std::string case_file;
  std::string grid = "1";
  std::string block = "1";
  std::string cluster = "1";
  std::string checks = "all";
  std::string residency;
  std::string delivery;
  std::string divergence;
  std::string roofline;  ///< a GPU, or empty
  std::string schedule;
  emu::Schedule replayed;
  std::vector<std::string> args;
  std::int64_t smem = 0;
  std::uint64_t seeds = 1;
  bool cooperative = false;
  emu::Options options;
  Format format = Format::text;
};

/// What the runs with all seeds gave. Findings of one kind at one instruction are kept once.
struct Summary {
  struct Found {
    emu::Diagnostic finding;
    std::uint64_t seed = 0;  ///< the first that showed it
    std::string schedule;    ///< a short one that shows it; empty: none was looked for
  };
  std::vector<Found> findings;
  emu::LaunchReport last;
  std::uint64_t seeds_run = 0;
  std::uint64_t steps = 0;
  bool interrupted = false;
  std::vector<std::pair<std::string, Array>> outputs;  ///< argument, contents after the first seed
  std::vector<emu::CaseBuffer> wrong_buffers;
  std::uint64_t wrong_seed = 0;
  std::string wrong_schedule;
};

/// One run, on fresh memory; launches without expected outputs always match.
using Runner = std::function<emu::CaseResult(const emu::Options&)>;

std::string read_text(const std::string& path) {
  const io::Source source(path);
  std::string text(source.size(), '\0');
  source.read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

emu::Dim3 parse_dim(const std::string& option, const std::string& text) {
  std::uint32_t extents[3] = {1, 1, 1};
  std::string_view rest = text;
  for (int i = 0; i < 3 && !rest.empty(); ++i) {
    const auto [end, code] = std::from_chars(rest.data(), rest.data() + rest.size(), extents[i]);
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    const bool more = !rest.empty() && (rest[0] == ',' || rest[0] == 'x') && i < 2;
    if (code != std::errc() || extents[i] == 0 || (!rest.empty() && !more)) break;
    if (rest.empty()) return {extents[0], extents[1], extents[2]};
    rest.remove_prefix(1);
  }
  throw Error(ErrorKind::user,
              option + " " + text + ": write one to three positive numbers: 64 or 8,4,1");
}

template <typename Enum>
void parse_word(const std::string& option, const std::string& text, Enum& value) {
  if (text.empty()) return;
  std::string words;
  for (int i = 0; i < 3; ++i) {
    const auto each = static_cast<Enum>(i);
    if (name(each) == text) {
      value = each;
      return;
    }
    words += (words.empty() ? "" : ", ") + std::string(name(each));
  }
  throw Error(ErrorKind::user, option + " " + text + ": it is one of " + words);
}

void finish_options(EmulateRequest& request) {
  request.options.checks = emu::parse_checks(request.checks);
  parse_word("--residency", request.residency, request.options.residency);
  parse_word("--delivery", request.delivery, request.options.delivery);
  parse_word("--divergence", request.divergence, request.options.divergence);
  request.options.keep_going = &keep_going;
  if (!request.roofline.empty()) {
    bounds_of({}, request.roofline);  // refuses an unknown GPU before anything runs
    request.options.counters = emu::Counting::on;
  }
  if (request.schedule.empty()) return;
  request.replayed = emu::parse_schedule(request.schedule);
  request.options.replay = &request.replayed;
}

/// The entry that is named, or the only one.
std::string choose_entry(const ptx::Module& module, const EmulateRequest& request) {
  std::string names;
  int count = 0;
  for (const ptx::Function& function : module.functions) {
    if (!function.entry) continue;
    if (function.name == request.entry) return function.name;
    names += (names.empty() ? "" : ", ") + function.name;
    ++count;
  }
  if (count == 1 && request.entry.empty()) return names;
  throw Error(ErrorKind::user,
              request.file + ": " +
                  (request.entry.empty() ? "name an entry with --entry"
                                         : "no entry is named '" + request.entry + "'") +
                  "; it has " + (names.empty() ? "none" : names));
}

bool same_finding(const emu::Diagnostic& a, const emu::Diagnostic& b) {
  return a.kind == b.kind && a.place.ptx_line == b.place.ptx_line && a.entry == b.entry;
}

bool shows(const emu::LaunchReport& report, const emu::Diagnostic& finding) {
  return std::any_of(report.findings.begin(), report.findings.end(),
                     [&](const emu::Diagnostic& each) { return same_finding(each, finding); });
}

void merge(Summary& summary, emu::CaseResult result, std::uint64_t seed) {
  if (!result.outputs_match && result.report.completed && summary.wrong_buffers.empty()) {
    summary.wrong_seed = seed;
    for (emu::CaseBuffer& buffer : result.buffers) {
      if (buffer.mismatches > 0) summary.wrong_buffers.push_back(std::move(buffer));
    }
  }
  for (const emu::Diagnostic& finding : result.report.findings) {
    const auto same = [&](const Summary::Found& found) {
      return same_finding(found.finding, finding);
    };
    if (std::none_of(summary.findings.begin(), summary.findings.end(), same)) {
      summary.findings.push_back({finding, seed, {}});
    }
  }
  summary.steps += result.report.steps;
  ++summary.seeds_run;
  summary.last = std::move(result.report);
}

void run_schedules(const EmulateRequest& request, const Runner& run, Summary& summary) {
  for (std::uint64_t i = 0; i < request.seeds && !interrupted(); ++i) {
    emu::Options options = request.options;
    options.seed += i;
    merge(summary, run(options), options.seed);
  }
}

/// The shortest schedule found that gives what the seed gave.
std::string shortened(const EmulateRequest& request, const Runner& run, std::uint64_t seed,
                      const std::function<bool(const emu::CaseResult&)>& still) {
  emu::Schedule recorded;
  emu::Options options = request.options;
  options.seed = seed;
  options.record = &recorded;
  const std::uint64_t steps = run(options).report.steps;
  options.record = nullptr;
  options.limits.steps = std::min(options.limits.steps, 4 * steps + (1 << 16));
  return emu::to_string(emu::shorten(recorded, [&](const emu::Schedule& candidate) {
    options.replay = &candidate;
    return !interrupted() && still(run(options));
  }));
}

/// For what several seeds were run: the schedule that matters instead of a seed.
void shorten_schedules(const EmulateRequest& request, const Runner& run, Summary& summary) {
  constexpr int kMost = 4;  // findings: each costs up to 200 runs
  int count = 0;
  for (Summary::Found& found : summary.findings) {
    if (found.finding.severity == emu::Severity::advice || ++count > kMost) continue;
    found.schedule = shortened(request, run, found.seed, [&](const emu::CaseResult& r) {
      return shows(r.report, found.finding);
    });
  }
  if (summary.wrong_buffers.empty()) return;
  summary.wrong_schedule = shortened(request, run, summary.wrong_seed, [](const auto& r) {
    return !r.outputs_match && r.report.completed;
  });
}

/// Runs a launch; keeps what the first run left in the arguments that are to be printed.
class LaunchRunner {
 public:
  LaunchRunner(const EmulateRequest& request, const std::string& ptx)
      : module_(ptx::parse(ptx, request.file)) {
    launch_.entry = choose_entry(module_, request);
    launch_.grid = parse_dim("--grid", request.grid);
    launch_.block = parse_dim("--block", request.block);
    launch_.cluster = parse_dim("--cluster", request.cluster);
    launch_.dynamic_smem_bytes = request.smem;
    launch_.cooperative = request.cooperative;
    for (const std::string& text : request.args)
      arguments_.push_back(parse_kernel_argument(text));
  }

  emu::CaseResult run(const emu::Options& options) {
    emu::Machine machine(module_.target);
    launch_.program = machine.load(module_);
    const PlacedArguments placed =
        place(machine, emu::parameters(launch_.program, launch_.entry), arguments_, launch_.entry);
    launch_.params = placed.params;
    emu::CaseResult result;
    result.outputs_match = true;
    result.report = machine.launch(launch_, options);
    if (!std::exchange(first_, false)) return result;
    for (std::size_t k = 0; k < arguments_.size(); ++k) {
      if (!arguments_[k].printed) continue;
      Array contents = *arguments_[k].buffer;
      machine.read(placed.addresses[k], contents.bytes);
      if (!arguments_[k].save.empty()) write_arrays(arguments_[k].save, {contents});
      outputs.emplace_back(arguments_[k].text, std::move(contents));
    }
    return result;
  }

  std::vector<std::pair<std::string, Array>> outputs;

 private:
  ptx::Module module_;
  emu::Launch launch_;
  std::vector<KernelArgument> arguments_;
  bool first_ = true;
};

void run_all(const EmulateRequest& request, const std::string& ptx, Summary& summary) {
  std::optional<LaunchRunner> launch;
  if (request.case_file.empty()) launch.emplace(request, ptx);
  const Runner run = [&](const emu::Options& options) {
    if (launch) return launch->run(options);
    return emu::run_case(request.case_file, ptx, request.file, options);
  };
  run_schedules(request, run, summary);
  if (launch) summary.outputs = std::move(launch->outputs);
  if (request.seeds > 1 && request.schedule.empty()) shorten_schedules(request, run, summary);
}

std::string schedule_text(const std::string& schedule) {
  return schedule.empty() ? "" : "; shortest: --schedule " + schedule;
}

std::string summary_text(const EmulateRequest& request, const Summary& summary) {
  std::string text = summary.last.output;
  for (const Summary::Found& found : summary.findings) {
    text += cli::text_of(std::vector{found.finding});
    if (request.seeds == 1) continue;
    text +=
        "  first with --seed " + std::to_string(found.seed) + schedule_text(found.schedule) + "\n";
  }
  for (const auto& [argument, contents] : summary.outputs) {
    text += argument + ": " + preview(contents, kPreview) + "\n";
  }
  for (const emu::CaseBuffer& buffer : summary.wrong_buffers) {
    text += "WRONG  argument " + std::to_string(buffer.arg) + ": " + grouped(buffer.mismatches) +
            " of " + grouped(buffer.elements) + " elements; " + buffer.first_difference +
            " (--seed " + std::to_string(summary.wrong_seed) +
            schedule_text(summary.wrong_schedule) + ")\n";
  }
  if (request.options.counters == emu::Counting::on) text += counters_text(summary.last.counters);
  if (!request.roofline.empty()) {
    text += roofline_text(bounds_of(summary.last.counters, request.roofline), request.roofline);
  }
  text += plural(static_cast<std::int64_t>(summary.seeds_run), "schedule") + ", " +
          totals_text(summary.last.counters, summary.steps) + ", " +
          plural(static_cast<std::int64_t>(summary.findings.size()), "finding") +
          (summary.interrupted ? "; interrupted, so this is what is known so far" : "") + "\n";
  return text;
}

Json summary_json(const EmulateRequest& request, const Summary& summary) {
  Json json = {{"file", request.file},
               {"schedules", summary.seeds_run},
               {"steps", summary.steps},
               {"completed", summary.last.completed},
               {"interrupted", summary.interrupted},
               {"output", summary.last.output},
               {"findings", Json::array()},
               {"wrong_outputs", Json::array()}};
  for (const Summary::Found& found : summary.findings) {
    Json each = cli::json_of(found.finding);
    each["seed"] = found.seed;
    if (!found.schedule.empty()) each["schedule"] = found.schedule;
    json["findings"].push_back(std::move(each));
  }
  for (const emu::CaseBuffer& buffer : summary.wrong_buffers) {
    json["wrong_outputs"].push_back({{"argument", buffer.arg},
                                     {"mismatches", buffer.mismatches},
                                     {"elements", buffer.elements},
                                     {"first", buffer.first_difference},
                                     {"seed", summary.wrong_seed}});
    if (!summary.wrong_schedule.empty()) {
      json["wrong_outputs"].back()["schedule"] = summary.wrong_schedule;
    }
  }
  for (const auto& [argument, contents] : summary.outputs) {
    json["outputs"].push_back({{"argument", argument}, {"values", to_doubles(contents)}});
  }
  if (request.options.counters == emu::Counting::on)
    json["counters"] = cli::json_of(summary.last.counters);
  if (!request.roofline.empty()) {
    json["roofline"] =
        cli::json_of(bounds_of(summary.last.counters, request.roofline), request.roofline);
  }
  return json;
}

void emulate(Program& program, EmulateRequest request) {
  finish_options(request);
  const std::string ptx = read_text(request.file);
  Summary summary;
  {
    const InterruptHandler handler;
    run_all(request, ptx, summary);
    summary.interrupted = interrupted();
  }
  if (request.format == Format::json) {
    print_json(summary_json(request, summary));
  } else {
    print(summary_text(request, summary));
  }
  std::vector<emu::Diagnostic> findings;
  for (const Summary::Found& found : summary.findings)
    findings.push_back(found.finding);
  program.exit = exit_of(findings);
  if (program.exit == Exit::right && !summary.wrong_buffers.empty()) {
    program.exit = Exit::comparison_failed;
  }
  if (program.exit == Exit::right && summary.interrupted) program.exit = Exit::findings;
}

void add_schedule_options(CLI::App& command, EmulateRequest& request) {
  command
      .add_option("--check", request.checks,
                  "all, none, or kinds such as race,unordered; all leaves out overtaken_read")
      ->capture_default_str();
  command.add_option("--seed", request.options.seed, "Schedule")
      ->check(whole_number())
      ->capture_default_str();
  command.add_option("--seeds", request.seeds, "How many schedules, from --seed on")
      ->check(whole_number(1, std::uint64_t{1} << 32))
      ->capture_default_str();
  command.add_option("--schedule", request.schedule,
                     "The turns of warps instead of a seed, as printed for a finding");
  command.add_option("--residency", request.residency, "Blocks alive at a time: all|estimate|one");
  command.add_option("--delivery", request.delivery, "Asynchronous copies: late|eager|random");
  command.add_option("--divergence", request.divergence, "converge|maximal|random");
  command.add_option("--max-memory", request.options.limits.memory_bytes, "Bytes of host memory")
      ->check(whole_number(0, INT64_MAX));
  command.add_option("--max-steps", request.options.limits.steps, "Warp instructions of a launch")
      ->check(whole_number());
  command.add_option("--max-output", request.options.limits.output_bytes, "Bytes of printf")
      ->check(whole_number(0, INT64_MAX));
}

}  // namespace

void add_emulate_command(CLI::App& app, Program& program) {
  auto request = std::make_shared<EmulateRequest>();
  CLI::App* command =
      app.add_subcommand("emulate", "Run any PTX on the CPU and report what is wrong with it");
  command->add_option("FILE", request->file, "PTX")->required();
  command->add_option("--entry", request->entry, "Kernel; may be left out if there is only one");
  command->add_option("--case", request->case_file, "Launch, inputs and expected outputs: a .case");
  command->add_option("--grid", request->grid, "Blocks: X, X,Y or X,Y,Z")->capture_default_str();
  command->add_option("--block", request->block, "Threads of a block")->capture_default_str();
  command->add_option("--cluster", request->cluster, "Blocks of a cluster")->capture_default_str();
  command->add_option("--smem", request->smem, "Dynamic shared memory in bytes")
      ->check(whole_number(0, INT64_MAX));
  command->add_flag("--cooperative", request->cooperative, "All blocks are resident");
  command
      ->add_option("--arg", request->args,
                   "One a parameter: @FILE, out:TYPE:N[=FILE], iota:TYPE:N, i32:V, f32:V, ...")
      ->allow_extra_args(false);
  add_schedule_options(*command, *request);
  command->add_flag_callback(
      "--counters", [request] { request->options.counters = emu::Counting::on; },
      "Count executions, sectors and bank conflicts by instruction");
  command->add_option("--roofline", request->roofline,
                      "The least time on a GPU, such as 'NVIDIA H200', for what was counted");
  add_json_flag(*command, request->format);
  command->callback([&program, request] { emulate(program, *request); });
}

}  // namespace tilewright::cli
