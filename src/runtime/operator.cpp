// SPDX-License-Identifier: Apache-2.0
// Arguments of an operator held against its schema.
#include "tilewright/operator.h"

#include "runtime/schema_shape.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace tilewright {
namespace {

[[noreturn]] void refuse(const Schema& schema, const std::string& what, SourceLoc at) {
  throw Error(ErrorKind::user, std::string(schema.name) + ": " + what, at);
}

/// The shortest text that reads back as the number.
std::string number_text(double value) {
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  return {buffer, end};
}

std::string join(std::span<const std::string_view> words) {
  std::string text;
  for (std::string_view word : words)
    text += (text.empty() ? "" : ", ") + std::string(word);
  return text;
}

/// What an option may be, in words: "a number of at least 0, or one of none".
std::string allowed(const OptionSpec& spec) {
  switch (spec.type) {
    case OptionType::boolean:
      return "true or false";
    case OptionType::choice:
      return "one of " + join(spec.words);
    case OptionType::text:
      return "any text";
    case OptionType::real:
    case OptionType::integer:
      break;
  }
  std::string text = spec.type == OptionType::real ? "a finite number" : "an integer";
  if (std::isfinite(spec.least)) text += " of at least " + number_text(spec.least);
  if (std::isfinite(spec.most)) {
    text += std::isfinite(spec.least) ? " and " : " of ";
    text += "at most " + number_text(spec.most);
  }
  if (!spec.words.empty()) text += ", or one of " + join(spec.words);
  return text;
}

template <typename Number>
bool read_number(std::string_view text, Number& number) {
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  return code == std::errc() && end == text.data() + text.size();
}

bool in_range(const OptionSpec& spec, double value) {
  return std::isfinite(value) && value >= spec.least && value <= spec.most;
}

template <typename Specs>
std::string names_of(const Specs& specs) {
  std::string text;
  for (const auto& spec : specs)
    text += (text.empty() ? "" : ", ") + std::string(spec.name);
  return text.empty() ? "none" : text;
}

bool is_output(const TensorSpec& spec) { return spec.role != Role::input; }

}  // namespace

std::string_view name(Role role) {
  switch (role) {
    case Role::input:
      return "input";
    case Role::output:
      return "output";
    case Role::inout:
      return "inout";
  }
  return "";
}

std::string_view name(OptionType type) {
  switch (type) {
    case OptionType::real:
      return "number";
    case OptionType::integer:
      return "integer";
    case OptionType::boolean:
      return "boolean";
    case OptionType::choice:
      return "choice";
    case OptionType::text:
      return "text";
  }
  return "";
}

Arguments::Arguments(const Schema& schema)
    : schema_(&schema), tensors_(schema.tensors.size()), options_(schema.options.size()) {
  for (const OptionSpec& spec : schema.options) {
    if (!spec.is_required()) set_option(spec.name, spec.default_text);
  }
}

void Arguments::fail(std::string_view what, SourceLoc at) const {
  refuse(*schema_, std::string(what), at);
}

std::size_t Arguments::tensor_index(std::string_view name, SourceLoc at) const {
  for (std::size_t i = 0; i < schema_->tensors.size(); ++i) {
    if (schema_->tensors[i].name == name) return i;
  }
  fail("no tensor is named '" + std::string(name) + "'; it has " + names_of(schema_->tensors), at);
}

std::size_t Arguments::option_index(std::string_view name, SourceLoc at) const {
  for (std::size_t i = 0; i < schema_->options.size(); ++i) {
    if (schema_->options[i].name == name) return i;
  }
  fail("no option is named '" + std::string(name) + "'; it has " + names_of(schema_->options), at);
}

void Arguments::set(std::string_view name, const View& view, SourceLoc at) {
  const std::size_t index = tensor_index(name, at);
  const std::span<const Type> types = schema_->tensors[index].types;
  if (std::find(types.begin(), types.end(), view.type) == types.end()) {
    std::string list;
    for (Type type : types) {
      list += (list.empty() ? "" : ", ") + std::string(tilewright::name(type));
    }
    fail("'" + std::string(name) + "' is " + to_string(view) + "; its type must be one of " + list,
         at);
  }
  tensors_[index] = view;
}

void Arguments::set_option(std::string_view name, std::string_view text, SourceLoc at) {
  const std::size_t index = option_index(name, at);
  const OptionSpec& spec = schema_->options[index];
  OptionValue value;
  value.text = text;
  value.is_given = true;
  value.is_word = std::find(spec.words.begin(), spec.words.end(), text) != spec.words.end();
  bool good = value.is_word || spec.type == OptionType::text;
  if (!good && spec.type == OptionType::boolean) {
    good = text == "true" || text == "false" || text == "1" || text == "0";
    value.integer = text == "true" || text == "1" ? 1 : 0;
  }
  if (!good && spec.type == OptionType::real) {
    good = read_number(text, value.number) && in_range(spec, value.number);
  }
  if (!good && spec.type == OptionType::integer) {
    good = read_number(text, value.integer) && in_range(spec, static_cast<double>(value.integer));
  }
  if (!good) {
    fail("option '" + std::string(name) + "' is '" + std::string(text) + "'; it must be " +
             allowed(spec),
         at);
  }
  options_[index] = std::move(value);
}

void Arguments::set_option(std::string_view name, double value, SourceLoc at) {
  const OptionSpec& spec = schema_->options[option_index(name, at)];
  const bool whole = std::abs(value) < 9e15 && value == std::trunc(value);
  if (spec.type != OptionType::real && whole) {
    set_option(name, std::to_string(static_cast<std::int64_t>(value)), at);
    return;
  }
  set_option(name, number_text(value), at);
}

const Workspace& Arguments::workspace(std::int64_t needed_bytes, SourceLoc at) const {
  if (workspace_.size_bytes >= needed_bytes) return workspace_;
  fail("the workspace has " + std::to_string(workspace_.size_bytes) + " bytes; it needs " +
           std::to_string(needed_bytes) + ", zeroed once",
       at);
}

const View* Arguments::find(std::string_view name) const {
  const std::optional<View>& view = tensors_[tensor_index(name, {})];
  return view ? &*view : nullptr;
}

const View& Arguments::tensor(std::string_view name) const {
  const View* view = find(name);
  if (view == nullptr) fail("tensor '" + std::string(name) + "' is missing");
  return *view;
}

const Arguments::OptionValue& Arguments::option(std::string_view name, OptionType type) const {
  const std::size_t index = option_index(name, {});
  TW_ASSERT(schema_->options[index].type == type, "an operator reads an option by its own type");
  if (!options_[index].is_given) {
    fail("option '" + std::string(name) + "' is missing; it must be " +
         allowed(schema_->options[index]));
  }
  return options_[index];
}

double Arguments::real(std::string_view name) const {
  const std::optional<double> value = real_or_word(name);
  TW_ASSERT(value, "options with words are read by real_or_word");
  return *value;
}

std::int64_t Arguments::integer(std::string_view name) const {
  const std::optional<std::int64_t> value = integer_or_word(name);
  TW_ASSERT(value, "options with words are read by integer_or_word");
  return *value;
}

bool Arguments::boolean(std::string_view name) const {
  return option(name, OptionType::boolean).integer != 0;
}

std::string_view Arguments::text(std::string_view name) const {
  return options_[option_index(name, {})].text;
}

std::optional<double> Arguments::real_or_word(std::string_view name) const {
  const OptionValue& value = option(name, OptionType::real);
  return value.is_word ? std::nullopt : std::optional(value.number);
}

std::optional<std::int64_t> Arguments::integer_or_word(std::string_view name) const {
  const OptionValue& value = option(name, OptionType::integer);
  return value.is_word ? std::nullopt : std::optional(value.integer);
}

std::int64_t Arguments::size(std::string_view name) const {
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (!tensors_[i]) continue;
    const ShapePattern pattern(schema_->tensors[i].shape);
    if (std::optional<std::int64_t> extent = pattern.extent_of(name, *tensors_[i])) return *extent;
  }
  fail("size " + std::string(name) + " is unknown: no tensor that has it is given");
}

bool is_made(const OutputSpec& output, const TensorSpec& spec) {
  if (output.making != Making::by_presence) return output.making == Making::always;
  return spec.presence == Presence::required || spec.role == Role::inout;
}

NanRule nan_rule(const Operator& op, const Arguments& arguments) {
  return op.nan_rule == nullptr ? NanRule::equal : op.nan_rule(arguments);
}

void Arguments::check(Outputs outputs, SourceLoc at) const {
  SizeBindings sizes;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const TensorSpec& spec = schema_->tensors[i];
    const bool needed = spec.presence == Presence::required &&
                        (spec.role != Role::output || outputs == Outputs::required);
    if (!tensors_[i] && needed) fail("tensor '" + std::string(spec.name) + "' is missing", at);
    if (!tensors_[i]) continue;
    const std::string problem = ShapePattern(spec.shape).bind(spec.name, *tensors_[i], sizes);
    if (!problem.empty()) fail(problem, at);
    if (tensors_[i]->address == 0 && tilewright::size(*tensors_[i]) != 0) {
      fail("'" + std::string(spec.name) + "' is " + to_string(*tensors_[i]) + " at address 0", at);
    }
  }
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const TensorSpec& out = schema_->tensors[i];
    if (!tensors_[i] || !is_output(out)) continue;
    if (overlaps_itself(*tensors_[i])) {
      fail("'" + std::string(out.name) + "' is " + to_string(*tensors_[i]) +
               ", whose elements overlap; give each memory of its own",
           at);
    }
    for (std::size_t j = 0; j < tensors_.size(); ++j) {
      if (j == i || !tensors_[j] || !overlap(*tensors_[i], *tensors_[j])) continue;
      const TensorSpec& other = schema_->tensors[j];
      const bool in_place = (out.may_alias == other.name || other.may_alias == out.name) &&
                            *tensors_[i] == *tensors_[j];
      if (in_place) continue;
      fail("'" + std::string(out.name) + "' overlaps '" + std::string(other.name) +
               "' in memory; give them separate tensors" +
               (out.may_alias == other.name ? ", or exactly the same one" : ""),
           at);
    }
  }
}

const Array* HostTensors::find(std::string_view name) const {
  const auto at = std::find_if(arrays_.begin(), arrays_.end(),
                               [name](const Array& array) { return array.name == name; });
  return at == arrays_.end() ? nullptr : &*at;
}

const Array& HostTensors::at(std::string_view name) const {
  const Array* array = find(name);
  if (array == nullptr) {
    throw Error(ErrorKind::user, "host tensors: none is named '" + std::string(name) +
                                     "'; there are " + names_of(arrays_));
  }
  return *array;
}

void HostTensors::set(Array array) {
  constexpr std::size_t kMost = 64;  // more than any schema names
  arrays_.reserve(kMost);            // references that at() gave stay valid
  TW_ASSERT(arrays_.size() < kMost, "a schema has fewer tensors");
  for (Array& old : arrays_) {
    if (old.name == array.name) {
      old = std::move(array);
      return;
    }
  }
  arrays_.push_back(std::move(array));
}

}  // namespace tilewright
