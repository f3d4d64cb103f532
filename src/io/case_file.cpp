// SPDX-License-Identifier: Apache-2.0
// Operator test cases from and to safetensors files.
#include "tilewright/case_file.h"

#include "base/file.h"
#include "tilewright/safetensors.h"

#include <charconv>
#include <nlohmann/json.hpp>

namespace tilewright {
namespace {

constexpr std::string_view kPrefix = "expect.";

using Attrs = std::vector<std::pair<std::string, std::string>>;

/// The text of a JSON scalar as the command line would take it.
std::string scalar_text(const std::string& path, const std::string& key,
                        const nlohmann::ordered_json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "true" : "false";
  if (value.is_number_float()) {
    char buffer[64];
    const auto end = std::to_chars(buffer, buffer + sizeof buffer, value.get<double>()).ptr;
    return {buffer, end};
  }
  if (value.is_number()) return value.dump();
  io::refuse(path, "attrs: '" + key + "' is no number, string, truth value or null");
}

Attrs parse_attrs(const std::string& path, const std::string& text) {
  const auto shallow = [&path](int depth, nlohmann::json::parse_event_t, auto&) {
    if (depth > 1) io::refuse(path, "attrs: values must be scalars");
    return true;
  };
  const nlohmann::ordered_json json =
      nlohmann::ordered_json::parse(text, shallow, /*allow_exceptions=*/false);
  if (!json.is_object()) io::refuse(path, "metadata entry 'attrs' is no JSON object");
  Attrs attrs;
  for (const auto& [key, value] : json.items()) {
    if (!value.is_null()) attrs.emplace_back(key, scalar_text(path, key, value));
  }
  return attrs;
}

}  // namespace

CaseFile read_case_file(const std::string& path) {
  const SafetensorsFile file(path);
  CaseFile contents;
  for (const TensorEntry& tensor : file.tensors()) {
    Array array = file.read(tensor.name);
    if (array.name.starts_with(kPrefix)) {
      array.name.erase(0, kPrefix.size());
      contents.expected.push_back(std::move(array));
    } else {
      contents.inputs.push_back(std::move(array));
    }
  }
  for (const auto& [key, value] : file.metadata()) {
    if (key == "attrs") contents.attrs = parse_attrs(path, value);
  }
  return contents;
}

void write_case_file(const std::string& path, const CaseFile& contents) {
  nlohmann::ordered_json attrs = nlohmann::ordered_json::object();
  for (const auto& [key, value] : contents.attrs) {
    // A number stays one: what reads as a JSON scalar is stored as such.
    const nlohmann::ordered_json scalar =
        nlohmann::ordered_json::parse(value, nullptr, /*allow_exceptions=*/false);
    const bool plain = scalar.is_number() || scalar.is_boolean();
    attrs[key] = plain ? scalar : nlohmann::ordered_json(value);
  }
  std::vector<Array> arrays = contents.inputs;
  for (Array expected : contents.expected) {
    expected.name.insert(0, kPrefix);
    arrays.push_back(std::move(expected));
  }
  write_safetensors(path, arrays, {{"attrs", attrs.dump()}});
}

}  // namespace tilewright
