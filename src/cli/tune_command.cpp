// SPDX-License-Identifier: Apache-2.0
// `tilewright tune`: searches an operator's configurations and records the winners.
#include "cli/json.h"
#include "cli/measure.h"
#include "cli/program.h"
#include "cli/progress_bar.h"
#include "cli/text.h"
#include "cli/whole_number.h"
#include "tilewright/tune_record.h"
#include "tune/operator_tuner.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <memory>

namespace tilewright::cli {
namespace {

enum class Run { on_device, dry };

struct TuneRequest {
  std::string op;
  std::vector<std::string> problems;
  std::vector<std::string> wanted;
  std::string device = "cuda:0";
  std::string target = "sm_90a";
  std::string out;
  std::string commit = "unknown";
  double budget_s = 60;
  std::uint64_t seed = 0;
  Run run = Run::on_device;
  Format format = Format::text;
};

std::int64_t count(const tune::Tuned& tuned, tune::Fate fate) {
  return std::count_if(tuned.result.trials.begin(), tuned.result.trials.end(),
                       [fate](const tune::Trial& trial) { return trial.fate == fate; });
}

std::string problem_text(const tune::Tuned& tuned) {
  return std::string(tuned.space->name) + " " + tune::key_text(*tuned.space, tuned.key);
}

/// One line a search: the winner, its time and the standard one's, what became of the others.
std::string summary_text(const tune::Tuned& tuned) {
  const tune::Trial& best = tuned.result.best();
  const tune::Trial& standard = tuned.result.standard();
  std::string text = problem_text(tuned) + ": " + tune::config_text(*tuned.space, best.config) +
                     ", " + fixed(best.median_us, 2) + " us";
  if (&best != &standard && standard.median_us > 0) {
    text += " (standard " + tune::config_text(*tuned.space, standard.config) + ", " +
            fixed(standard.median_us, 2) + " us)";
  }
  text += "; " + plural(static_cast<std::int64_t>(tuned.result.trials.size()), "candidate");
  for (const tune::Fate fate : {tune::Fate::measured, tune::Fate::slower, tune::Fate::refused,
                                tune::Fate::wrong, tune::Fate::unreached}) {
    if (count(tuned, fate) > 0) {
      text += ", " + std::to_string(count(tuned, fate)) + " " + std::string(tune::name(fate));
    }
  }
  if (!tuned.result.compared())
    text += "; no record: the budget ended before a second was measured";
  text += "\n";
  for (const tune::Trial& trial : tuned.result.trials) {
    if (trial.fate != tune::Fate::wrong) continue;
    text += "  wrong: " + tune::config_text(*tuned.space, trial.config) + ": " + trial.why + "\n";
  }
  return text;
}

std::string candidates_text(const tune::Tuned& tuned) {
  Columns columns;
  for (const tune::Trial& trial : tuned.result.trials) {
    columns.add({tune::config_text(*tuned.space, trial.config), trial.note,
                 trial.why.empty() ? "" : "refused: " + trial.why});
  }
  return problem_text(tuned) + ": " +
         plural(static_cast<std::int64_t>(tuned.result.trials.size()), "candidate") + "\n" +
         columns.text("  ");
}

Json json_of(const tune::Tuned& tuned, Run run) {
  Json json = {{"space", std::string(tuned.space->name)},
               {"key", tune::key_text(*tuned.space, tuned.key)},
               {"problems", tuned.problems},
               {"candidates", Json::array()}};
  if (run == Run::on_device)
    json["winner"] = tune::config_text(*tuned.space, tuned.result.best().config);
  for (const tune::Trial& trial : tuned.result.trials) {
    Json each = {{"config", tune::config_text(*tuned.space, trial.config)}, {"note", trial.note}};
    if (run == Run::on_device) {
      each["fate"] = std::string(tune::name(trial.fate));
      each["us"] = trial.median_us;
      each["rounds"] = trial.us.size();
    }
    if (!trial.why.empty()) each["why"] = trial.why;
    json["candidates"].push_back(std::move(each));
  }
  return json;
}

/// What the file has, if there is one; else nothing of this device.
tune::RecordFile existing_records(const std::string& path, const std::string& device) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) return {device, {}};
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  tune::RecordFile file = tune::parse_records(text, path);
  if (file.device == device) return file;
  throw Error(ErrorKind::user, "tune: " + path + " is of the device '" + file.device + "', not '" +
                                   device + "'; name another --out");
}

void write_records(const TuneRequest& request, const Device& device,
                   const std::vector<tune::Tuned>& all, tune::RecordFile file) {
  for (const tune::Tuned& tuned : all) {
    if (!tuned.result.compared()) continue;
    tune::Record record = tune::make_record(*tuned.space, tuned.key, tuned.result.best().config);
    record.us = tuned.result.best().median_us;
    record.standard_us = tuned.result.standard().median_us;
    record.measured =
        "driver " + driver_text(device) + ", " + assembler_text() + ", commit " + request.commit;
    tune::put_record(file, std::move(record));
  }
  std::ofstream stream(request.out, std::ios::binary | std::ios::trunc);
  stream << tune::print_records(file);
  stream.flush();
  if (!stream) throw Error(ErrorKind::user, "tune: cannot write " + request.out);
}

/// Problems of the operator's own where none is named.
std::vector<std::string> problems_of(const TuneRequest& request, const Operator& op) {
  if (!request.problems.empty()) return request.problems;
  if (!op.bench_problems.empty()) return {op.bench_problems.begin(), op.bench_problems.end()};
  throw Error(ErrorKind::user, request.op + ": has no problems of its own; give --shapes");
}

std::vector<tune::Tuned> search_all(const Program& program, const TuneRequest& request,
                                    std::optional<Device>& device) {
  const Operator& op = program.find(request.op);
  tune::TuneRequest wanted{.op = &op,
                           .problems = problems_of(request, op),
                           .wanted = request.wanted,
                           .seed = request.seed};
  wanted.search.budget_s = request.budget_s;
  ProgressBar bar;
  std::string problem;
  wanted.begin = [&problem](const tune::Space& space, const tune::Key& key) {
    problem = std::string(space.name) + " " + tune::key_text(space, key);
  };
  wanted.progress = [&](const tune::Progress& at) {
    bar.show(std::string(at.stage) + " " + problem, at.done, at.of);
  };
  if (request.run == Run::dry) {
    return tune::list_candidates(ptx::parse_target(request.target), wanted);
  }
  device.emplace(Device::open(request.device));
  return tune::tune_operator(*device, wanted);
}

void tune_command(const Program& program, const TuneRequest& request) {
  if (!(request.budget_s > 0)) {
    throw Error(ErrorKind::user,
                "tune: --budget " + number_text(request.budget_s) + ": it must be above 0 seconds");
  }
  std::optional<Device> device;
  std::optional<tune::RecordFile> file;
  if (!request.out.empty() && request.run == Run::on_device) {  // a bad file is known before hours
    file = existing_records(request.out, Device::open(request.device).properties().name);
  }
  const std::vector<tune::Tuned> all = search_all(program, request, device);
  if (file) write_records(request, *device, all, std::move(*file));
  Json json = {{"operator", request.op}, {"searches", Json::array()}};
  for (const tune::Tuned& tuned : all) {
    if (request.format == Format::json) {
      json["searches"].push_back(json_of(tuned, request.run));
    } else {
      print(request.run == Run::dry ? candidates_text(tuned) : summary_text(tuned));
    }
  }
  if (request.format == Format::json) print_json(json);
}

}  // namespace

void add_tune_command(CLI::App& app, Program& program) {
  auto request = std::make_shared<TuneRequest>();
  CLI::App* command =
      app.add_subcommand("tune", "Search an operator's configurations and record the fastest");
  command->add_option("OP", request->op, "Operator; 'tilewright list' shows them")->required();
  command
      ->add_option(
          "--shapes,--problem", request->problems,
          "Problem such as T=1,H=4096,x=bf16; may be repeated; default: the operator's own")
      ->allow_extra_args(false);
  command
      ->add_option("--with", request->wanted, "Compute this optional output too; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--device", request->device, "cuda:N")->capture_default_str();
  command->add_option("--budget", request->budget_s, "Seconds for all searches together")
      ->capture_default_str();
  command->add_option("--out", request->out,
                      "File of records that takes the winners, as in docs/tuning.md");
  command->add_option("--commit", request->commit, "Named in the records as what was measured")
      ->capture_default_str();
  command
      ->add_option("--input-seed", request->seed, "Seed of the inputs that results are checked on")
      ->check(whole_number());
  CLI::Option* const dry = command->add_flag_callback(
      "--dry-run", [request] { request->run = Run::dry; },
      "List the candidates and assemble them; needs no GPU");
  command->add_option("--target", request->target, "Architecture of a dry run")
      ->needs(dry)
      ->capture_default_str();
  add_json_flag(*command, request->format);
  command->callback([&program, request] { tune_command(program, *request); });
}

}  // namespace tilewright::cli
