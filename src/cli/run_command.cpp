// SPDX-License-Identifier: Apache-2.0
// `tilewright run`: one operator on tensors from files, on a GPU or in the emulator.
#include "cli/check.h"
#include "cli/findings.h"
#include "cli/inputs.h"
#include "cli/json.h"
#include "cli/measure.h"
#include "cli/program.h"
#include "cli/text.h"
#include "cli/whole_number.h"
#include "tilewright/stream.h"
#include "tune/repeats.h"

#include <algorithm>
#include <memory>

namespace tilewright::cli {
namespace {

enum class Check { off, on };
enum class Timed { off, on };

struct RunRequest {
  InputRequest inputs;
  std::string device;
  std::string out;
  std::vector<std::string> wanted;
  Check check = Check::off;
  Timed timed = Timed::on;
  emu::Counting counting = emu::Counting::off;
  std::uint64_t seed = 0;
  std::uint64_t repeats = 0;
  Format format = Format::text;
};

/// All that a run yields, before it is printed.
struct Outcome {
  std::string device;
  std::string device_name;
  std::vector<Array> outputs;
  std::vector<emu::Diagnostic> findings;
  emu::Counters counters;  ///< of the last kernel, on an emulated device
  std::uint64_t steps = 0;
  std::vector<CheckResult> checks;
  tune::Repeats repeats;
  std::optional<Measurement> measurement;
};

Device open_device(const RunRequest& request) {
  if (!request.device.empty()) return Device::open(request.device);
  return Device::open(Device::cuda_count() > 0 ? "cuda:0" : "emu:sm_90a");
}

/// Did the kernels leave their tensors? Then the inputs may hold places that there are not, where
/// the reference, which is not guarded as the emulator is, must not go.
bool out_of_bounds(const Outcome& outcome) {
  return std::any_of(
      outcome.findings.begin(), outcome.findings.end(),
      [](const emu::Diagnostic& each) { return each.kind == emu::Kind::out_of_bounds; });
}

emu::Options options_of(const RunRequest& request, std::uint64_t seed) {
  emu::Options options;
  options.counters = request.counting;
  options.seed = seed;
  return options;
}

/// In the emulator a launch repeats under the schedules of the seeds that follow, up to one with
/// findings.
void repeat_schedules(const Device& device, const RunRequest& request, const Inputs& inputs,
                      Outcome& outcome) {
  std::vector<std::uint64_t> differing(outcome.outputs.size());
  for (std::uint64_t i = 1; i <= request.repeats && outcome.findings.empty(); ++i) {
    device.set_options(options_of(request, request.seed + i));
    const Stream stream(device);
    const tune::Session session(device, inputs, inputs.wanted(request.wanted));
    session.launch(stream);
    stream.synchronize();
    outcome.findings = device.take_findings();
    const std::vector<Array> outputs = session.outputs();
    for (std::size_t j = 0; j < outputs.size(); ++j)
      if (outputs[j].bytes != outcome.outputs[j].bytes) ++differing[j];
    ++outcome.repeats.launches;
  }
  for (std::size_t j = 0; j < differing.size(); ++j) {
    if (differing[j] != 0)
      outcome.repeats.differences.push_back({outcome.outputs[j].name, differing[j]});
  }
}

Outcome execute(const Program& program, const RunRequest& request, const Inputs& inputs) {
  const Device device = open_device(request);
  const bool emulated = device.kind() == DeviceKind::emulated;
  if (emulated) device.set_options(options_of(request, request.seed));
  Outcome outcome{device.id(), device.properties().name, {}, {}, {}, 0, {}, {}, {}};
  {
    const Stream stream(device);
    const tune::Session session(device, inputs, inputs.wanted(request.wanted));
    session.launch(stream);
    stream.synchronize();
    outcome.findings = device.take_findings();
    if (emulated && session.size_bytes() > 0) {
      outcome.counters = device.last_report().counters;
      outcome.steps = device.last_report().steps;
    }
    outcome.outputs = session.outputs();
    if (request.check == Check::on && !out_of_bounds(outcome)) {
      outcome.checks = check_outputs(inputs, session.arguments(), outcome.outputs);
    }
  }
  if (emulated) {
    repeat_schedules(device, request, inputs, outcome);
  } else if (request.repeats > 0) {
    outcome.repeats = tune::repeat(Stream(device), inputs, inputs.wanted(request.wanted),
                                   static_cast<std::int64_t>(request.repeats));
  }
  if (!emulated && request.timed == Timed::on) {
    outcome.measurement =
        measure(Stream(device), inputs, inputs.wanted(request.wanted), program.operators);
  }
  return outcome;
}

bool is_output(const Outcome& outcome, const std::string& name) {
  return std::any_of(outcome.outputs.begin(), outcome.outputs.end(),
                     [&name](const Array& array) { return array.name == name; });
}

std::string repeats_text(const tune::Repeats& repeats) {
  std::string text = "repeats   " + grouped(static_cast<std::uint64_t>(repeats.launches));
  if (repeats.differences.empty()) return text + ", all of the same bits\n";
  for (const tune::Repeats::Difference& each : repeats.differences) {
    text.append("; ")
        .append(each.output)
        .append(" DIFFERS, ")
        .append(grouped(each.count) + " times");
  }
  return text + "\n";
}

std::string summary_text(const RunRequest& request, const Inputs& inputs, const Outcome& outcome) {
  std::string text =
      request.inputs.op + " on " + outcome.device + " (" + outcome.device_name + ")\n";
  for (const Array& array : inputs.arrays) {
    text += "  " + std::string(is_output(outcome, array.name) ? "inout   " : "input   ") +
            to_string(array) + "\n";
  }
  for (const auto& [name, value] : inputs.options)
    text.append("  option  ").append(name).append("=").append(value).append("\n");
  for (const Array& array : outcome.outputs)
    text += "  output  " + to_string(array) + "\n";
  if (!request.out.empty()) text += "written   " + request.out + "\n";
  for (const CheckResult& check : outcome.checks)
    text += "check     " + text_of(check) + "\n";
  if (request.check == Check::on && out_of_bounds(outcome))
    text += "check     not done: accesses were out of bounds\n";
  if (outcome.repeats.launches > 0) text += repeats_text(outcome.repeats);
  if (outcome.measurement) text += "time      " + text_of(*outcome.measurement) + "\n";
  if (outcome.steps > 0) {
    text += "executed  " + totals_text(outcome.counters, outcome.steps) + "\n";
    text +=
        "findings  " + (outcome.findings.empty() ? "none\n"
                                                 : grouped(std::uint64_t{outcome.findings.size()}) +
                                                       "\n" + text_of(outcome.findings));
    if (!outcome.counters.instructions.empty()) text += counters_text(outcome.counters);
  }
  return text;
}

Json summary_json(const RunRequest& request, const Inputs& inputs, const Outcome& outcome) {
  Json json = {{"operator", request.inputs.op},
               {"device", outcome.device},
               {"device_name", outcome.device_name}};
  const auto add = [&json](const char* key, const Array& array) {
    json[key].push_back({{"name", array.name}, {"type", name(array.type)}, {"shape", array.shape}});
  };
  for (const Array& array : inputs.arrays)
    add("inputs", array);
  for (const Array& array : outcome.outputs)
    add("outputs", array);
  json["options"] = Json::object();
  for (const auto& [name, value] : inputs.options)
    json["options"][name] = value;
  if (!request.out.empty()) json["written"] = request.out;
  if (request.check == Check::on) {
    json["checks"] = Json::array();
    for (const CheckResult& check : outcome.checks)
      json["checks"].push_back(json_of(check));
  }
  if (outcome.repeats.launches > 0) {
    json["repeats"] = {{"launches", outcome.repeats.launches}, {"differences", Json::object()}};
    for (const tune::Repeats::Difference& each : outcome.repeats.differences)
      json["repeats"]["differences"][each.output] = each.count;
  }
  if (outcome.measurement) json["time"] = json_of(*outcome.measurement);
  json["findings"] = json_of(outcome.findings);
  if (outcome.steps > 0) json["steps"] = outcome.steps;
  if (request.counting == emu::Counting::on) json["counters"] = json_of(outcome.counters);
  return json;
}

void run(Program& program, const RunRequest& request) {
  const Inputs inputs = load_inputs(program, request.inputs);
  const Outcome outcome = execute(program, request, inputs);
  if (!request.out.empty()) write_arrays(request.out, outcome.outputs);
  if (request.format == Format::json) {
    print_json(summary_json(request, inputs, outcome));
  } else {
    print(summary_text(request, inputs, outcome));
  }
  program.exit = exit_of(outcome.findings);
  if (program.exit == Exit::right &&
      !(all_right(outcome.checks) && outcome.repeats.differences.empty())) {
    program.exit = Exit::comparison_failed;
  }
}

}  // namespace

void add_run_command(CLI::App& app, Program& program) {
  auto request = std::make_shared<RunRequest>();
  CLI::App* command = app.add_subcommand(
      "run", "Run an operator on tensors from files, on a GPU or in the emulator");
  add_input_options(*command, request->inputs);
  command->add_option("--out", request->out, "Write outputs: .safetensors, .npz or .npy");
  command
      ->add_option("--with", request->wanted, "Compute this optional output too; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--device", request->device,
                      "cuda:N, or emu:sm_90a and such; a GPU if there is one");
  command->add_flag_callback(
      "--check", [request] { request->check = Check::on; },
      "Compare with the float64 reference and expect.* tensors; exit code 1 if wrong");
  command->add_flag_callback(
      "--no-time", [request] { request->timed = Timed::off; }, "Do not measure on a GPU");
  command->add_flag_callback(
      "--counters", [request] { request->counting = emu::Counting::on; },
      "Count executions, sectors and bank conflicts in the emulator");
  command
      ->add_option("--repeats", request->repeats,
                   "Launch so many times more, in the emulator with the next seeds; exit code 1 "
                   "where an output's bits are not always the same")
      ->check(whole_number(0, 1'000'000'000));
  command->add_option("--seed", request->seed, "Schedule of the emulator")->check(whole_number());
  add_json_flag(*command, request->format);
  command->callback([&program, request] { run(program, *request); });
}

}  // namespace tilewright::cli
