// SPDX-License-Identifier: Apache-2.0
// The fields of a model's config.json, by Hugging Face's names.
#pragma once

#include "cli/json.h"

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>

namespace tilewright::cli {

/// Fields of a model with more than text come from its text_config first. Every failure is an
/// Error(user) that names the file and the field.
class ModelConfig {
 public:
  explicit ModelConfig(std::string path);

  /// The first of these fields that is there.
  std::optional<std::int64_t> integer(std::initializer_list<const char*> names) const;
  /// Fields of which 0 says that there is none.
  std::int64_t count(std::initializer_list<const char*> names) const;
  std::int64_t required(const char* name) const;
  double real(std::initializer_list<const char*> names, double otherwise) const;
  std::string text(std::initializer_list<const char*> names, const std::string& otherwise) const;
  bool flag(std::initializer_list<const char*> names, bool otherwise) const;
  bool has(const char* name) const;
  /// How many elements of a list are `value`; 0 where there is no such list.
  std::int64_t times(const char* list, const Json& value) const;
  /// An object inside, such as rope_scaling; without fields where it is not there.
  ModelConfig inside(const char* name) const;

  [[noreturn]] void refuse(const std::string& what) const;

 private:
  ModelConfig(std::string path, Json json) : path_(std::move(path)), json_(std::move(json)) {}
  /// The first of these fields that is there and not null.
  const Json* find(std::initializer_list<const char*> names, const char** found) const;

  std::string path_;
  Json json_;
};

}  // namespace tilewright::cli
