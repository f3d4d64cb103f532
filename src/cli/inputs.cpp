// SPDX-License-Identifier: Apache-2.0
// Reading an operator's inputs and options from files and settings.
#include "cli/inputs.h"

#include "cli/whole_number.h"
#include "tilewright/case_file.h"
#include "tilewright/npy.h"
#include "tilewright/npz.h"
#include "tilewright/safetensors.h"

#include <algorithm>

namespace tilewright::cli {
namespace {

[[noreturn]] void refuse(const std::string& what) { throw Error(ErrorKind::user, what); }

/// "x.npz#name:bf16" in its parts.
struct FileSpec {
  std::string path;
  std::string member;
  Type raw = Type::none;
};

FileSpec parse_file_spec(const std::string& text) {
  FileSpec spec{text, {}, Type::none};
  const std::size_t colon = text.rfind(':');
  if (colon != std::string::npos) {
    if (const std::optional<Type> type = type_from_name(text.substr(colon + 1))) {
      spec.raw = *type;
      spec.path.resize(colon);
    }
  }
  const std::size_t hash = spec.path.rfind('#');
  if (hash != std::string::npos) {
    spec.member = spec.path.substr(hash + 1);
    spec.path.resize(hash);
  }
  return spec;
}

void put(std::vector<Array>& arrays, Array array) {
  const auto same = std::find_if(arrays.begin(), arrays.end(),
                                 [&array](const Array& each) { return each.name == array.name; });
  if (same == arrays.end()) {
    arrays.push_back(std::move(array));
  } else {
    *same = std::move(array);
  }
}

void add_file(const std::string& spec, Inputs& inputs) {
  if (spec.ends_with(".safetensors")) {
    CaseFile contents = read_case_file(spec);
    for (Array& array : contents.inputs)
      put(inputs.arrays, std::move(array));
    for (auto& attr : contents.attrs)
      inputs.options.push_back(std::move(attr));
    for (Array& array : contents.expected)
      put(inputs.expected, std::move(array));
    return;
  }
  for (Array& array : read_arrays(spec))
    put(inputs.arrays, std::move(array));
}

void add_setting(const std::string& text, Inputs& inputs) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    refuse("--set " + text + ": write NAME=VALUE for an option or NAME=@FILE for a tensor");
  }
  const std::string key = text.substr(0, equals);
  const std::string value = text.substr(equals + 1);
  if (!value.starts_with("@")) {
    inputs.options.emplace_back(key, value);
    return;
  }
  std::vector<Array> arrays = read_arrays(value.substr(1));
  if (arrays.size() != 1) {
    std::string names;
    for (const Array& array : arrays)
      names += (names.empty() ? "" : ", ") + array.name;
    refuse("--set " + text + ": the file has " + std::to_string(arrays.size()) +
           " tensors; add '#' and one of " + names);
  }
  arrays.front().name = key;
  put(inputs.arrays, std::move(arrays.front()));
}

}  // namespace

void add_input_options(CLI::App& command, InputRequest& request) {
  command.add_option("OP", request.op, "Operator; 'tilewright list' shows them")->required();
  command
      .add_option("--in", request.files,
                  "Case file (.safetensors), or .npz or .npy of tensors; may be repeated")
      ->allow_extra_args(false);
  command
      .add_option(
          "--set", request.sets,
          "Option as NAME=VALUE, or tensor as NAME=@FILE[#MEMBER][:TYPE]; may be repeated, and "
          "the last of a name counts")
      ->allow_extra_args(false);
  command.add_option("--problem", request.problem,
                     "Make inputs of these sizes and types: T=8,H=4096,x=bf16");
  command.add_option("--input-seed", request.seed, "Seed of the inputs that are made")
      ->check(whole_number());
}

std::vector<Array> read_arrays(const std::string& text) {
  const FileSpec spec = parse_file_spec(text);
  if (spec.path.ends_with(".npy") && spec.member.empty()) return {read_npy(spec.path, spec.raw)};
  if (spec.path.ends_with(".npz")) {
    if (spec.member.empty()) return read_npz(spec.path, spec.raw);
    return {read_npz(spec.path, spec.member, spec.raw)};
  }
  if (spec.path.ends_with(".safetensors")) {
    if (spec.member.empty()) return read_safetensors(spec.path);
    return {SafetensorsFile(spec.path).read(spec.member)};
  }
  refuse(text + ": the file's kind is not known; use .safetensors, .npz or .npy");
}

void write_arrays(const std::string& path, const std::vector<Array>& arrays) {
  if (path.ends_with(".safetensors")) {
    write_safetensors(path, arrays);
  } else if (path.ends_with(".npz")) {
    write_npz(path, arrays);
  } else if (path.ends_with(".npy") && arrays.size() == 1) {
    write_npy(path, arrays.front());
  } else if (path.ends_with(".npy")) {
    refuse(path + ": there are " + std::to_string(arrays.size()) +
           " outputs; use .safetensors or .npz");
  } else {
    refuse(path + ": the file's kind is not known; use .safetensors, .npz or .npy");
  }
}

std::vector<std::string> Inputs::wanted(std::vector<std::string> names) const {
  for (const TensorSpec& spec : op->schema.tensors) {
    const bool right_is_known =
        std::any_of(expected.begin(), expected.end(),
                    [&](const Array& array) { return array.name == spec.name; });
    if (spec.role == Role::output && right_is_known) names.emplace_back(spec.name);
  }
  return names;
}

Inputs load_inputs(const Program& program, const InputRequest& request) {
  const Operator& op = program.find(request.op);
  if (request.files.empty() && request.sets.empty() && request.problem.empty()) {
    refuse(
        request.op + ": there are no inputs; give --in FILE, --set NAME=@FILE or --problem " +
        (op.bench_problems.empty() ? "SIZE=NUMBER,..." : std::string(op.bench_problems.front())));
  }
  Inputs inputs;
  inputs.op = &op;
  if (!request.problem.empty()) {
    static_cast<tune::Inputs&>(inputs) =
        tune::make_problem_inputs(op, request.problem, request.seed);
  }
  for (const std::string& file : request.files)
    add_file(file, inputs);
  for (const std::string& setting : request.sets)
    add_setting(setting, inputs);
  return inputs;
}

}  // namespace tilewright::cli
