// SPDX-License-Identifier: Apache-2.0
// Reads the fields of config.json, and refuses what cannot be one.
#include "cli/model_config.h"

#include "tilewright/error.h"

#include <algorithm>
#include <fstream>

namespace tilewright::cli {

ModelConfig::ModelConfig(std::string path) : path_(std::move(path)) {
  std::ifstream stream(path_, std::ios::binary);
  if (!stream) refuse("cannot be read");
  json_ = Json::parse(stream, nullptr, /*allow_exceptions=*/false);
  if (!json_.is_object()) refuse("is not a JSON object");
  const auto text = json_.find("text_config");
  if (text != json_.end() && text->is_object()) {
    const Json fields = *text;
    json_.update(fields);
  }
}

const Json* ModelConfig::find(std::initializer_list<const char*> names, const char** name) const {
  for (const char* each : names) {
    const auto found = json_.find(each);
    if (found == json_.end() || found->is_null()) continue;
    *name = each;
    return &*found;
  }
  return nullptr;
}

std::optional<std::int64_t> ModelConfig::integer(std::initializer_list<const char*> names) const {
  const char* name = nullptr;
  const Json* found = find(names, &name);
  if (found == nullptr) return std::nullopt;
  if (!found->is_number_integer() || found->get<std::int64_t>() < 1) {
    refuse(std::string("field ") + name + " is " + found->dump() + "; it must be a count");
  }
  return found->get<std::int64_t>();
}

std::int64_t ModelConfig::count(std::initializer_list<const char*> names) const {
  const char* name = nullptr;
  const Json* found = find(names, &name);
  if (found == nullptr || *found == 0) return 0;
  return *integer({name});
}

std::int64_t ModelConfig::required(const char* name) const {
  if (const std::optional<std::int64_t> value = integer({name})) return *value;
  refuse(std::string("has no field ") + name);
}

double ModelConfig::real(std::initializer_list<const char*> names, double otherwise) const {
  const char* name = nullptr;
  const Json* found = find(names, &name);
  return found != nullptr && found->is_number() ? found->get<double>() : otherwise;
}

std::string ModelConfig::text(std::initializer_list<const char*> names,
                              const std::string& otherwise) const {
  const char* name = nullptr;
  const Json* found = find(names, &name);
  return found != nullptr && found->is_string() ? found->get<std::string>() : otherwise;
}

bool ModelConfig::flag(std::initializer_list<const char*> names, bool otherwise) const {
  const char* name = nullptr;
  const Json* found = find(names, &name);
  return found != nullptr && found->is_boolean() ? found->get<bool>() : otherwise;
}

bool ModelConfig::has(const char* name) const {
  const char* found = nullptr;
  return find({name}, &found) != nullptr;
}

std::int64_t ModelConfig::times(const char* list, const Json& value) const {
  const char* name = nullptr;
  const Json* found = find({list}, &name);
  if (found == nullptr || !found->is_array()) return 0;
  return std::count(found->begin(), found->end(), value);
}

ModelConfig ModelConfig::inside(const char* name) const {
  const char* found_name = nullptr;
  const Json* found = find({name}, &found_name);
  return {path_, found != nullptr && found->is_object() ? *found : Json::object()};
}

void ModelConfig::refuse(const std::string& what) const {
  throw Error(ErrorKind::user, "model: " + path_ + ": " + what);
}

}  // namespace tilewright::cli
