// SPDX-License-Identifier: Apache-2.0
// Compiles the operand column, and resolves types and vector lengths by an opcode's words.
#include "ptx/operand_pattern.h"

#include "ptx/form_index.h"

#include <algorithm>
#include <charconv>

namespace tilewright::ptx::detail {
namespace {

bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

std::int64_t take_number(std::string_view& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  TW_ASSERT(error == std::errc{}, "an operand pattern has a number here");
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

/// "v", "x", "2x", "n/4", "dim", "dim-2", "pack" or a number.
void read_count(std::string_view text, OperandSpec& spec) {
  using Count = OperandSpec::Count;
  if (text == "v") {
    spec.count = Count::v;
  } else if (text == "pack") {
    spec.count = Count::pack;
  } else if (take(text, "n/")) {
    spec.count = Count::n;
    spec.factor = static_cast<int>(take_number(text));
  } else if (take(text, "dim")) {
    spec.count = Count::dim;
    if (!text.empty()) spec.offset = static_cast<int>(take_number(text));
  } else if (text == "x") {
    spec.count = Count::x;
  } else {
    spec.count = Count::fixed;
    spec.factor = static_cast<int>(take_number(text));
    if (text == "x") spec.count = Count::x;
  }
}

void read_type(std::string_view& text, OperandSpec& spec) {
  using From = OperandSpec::TypeFrom;
  std::size_t end = 0;
  while (end < text.size() &&
         ((text[end] >= 'a' && text[end] <= 'z') || (text[end] >= '0' && text[end] <= '9')))
    ++end;
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(end);
  if (word.size() == 1 && word.front() <= '9') {
    spec.type_slot = word.front() - '0';
  } else if (word == "wide") {
    spec.type_from = From::wide;
  } else if (word == "addr") {
    spec.type_from = From::address;
  } else {
    spec.type_from = From::literal;
    spec.type = type_from_name(word).value_or(Type::none);
    TW_ASSERT(spec.type != Type::none, "an operand pattern names a type");
    if (take(text, "/pred")) spec.other_type = Type::pred;
  }
}

void read_range(std::string_view& text, OperandSpec& spec) {
  spec.low = take_number(text);
  if (take(text, "..")) {
    spec.high = take_number(text);
    if (take(text, "/")) spec.step = take_number(text);
    return;
  }
  spec.choices.push_back(spec.low);
  while (take(text, "|"))
    spec.choices.push_back(take_number(text));
  spec.low = spec.choices.front();
  spec.high = spec.choices.back();
}

OperandSpec read_operand(std::string_view text) {
  using Kind = OperandSpec::Kind;
  OperandSpec spec;
  if (text == "_") spec.kind = Kind::sink;
  if (text == "label") spec.kind = Kind::label;
  if (text == "call") spec.kind = Kind::call;
  if (text == "...") spec.kind = Kind::unchecked;
  if (spec.kind != Kind::value) return spec;
  const bool bracket = take(text, "[");
  if (bracket) spec.kind = Kind::address;
  if (take(text, "%")) spec.register_only = true;
  if (take(text, "#")) spec.kind = Kind::immediate;
  if (take(text, "!")) spec.may_negate = true;
  if (take(text, "@")) spec.may_symbol = true;
  if (take(text, "desc")) {
    spec.kind = Kind::descriptor;
    spec.role = 'a';
  } else {
    spec.role = text.front();
    text.remove_prefix(1);
  }
  if (take(text, "{")) {
    const std::size_t close = text.find('}');
    read_count(text.substr(0, close), spec);
    text.remove_prefix(close + 1);
    if (bracket) spec.kind = Kind::tensor_address;
  }
  if (take(text, ":")) read_type(text, spec);
  if (bracket) take(text, "]");
  if (take(text, "=")) read_range(text, spec);
  if (take(text, "~")) spec.relaxed = true;
  if (take(text, "_")) spec.may_sink = true;
  if (take(text, "?")) {
    spec.optional = text.empty();
    spec.with_descriptor = take(text, "desc");
    spec.optional = spec.optional || spec.with_descriptor;
    if (!text.empty()) spec.only_with = mod(text);
    TW_ASSERT(spec.optional || spec.only_with.id != 0, "an operand goes with a word of its row");
    text = {};
  }
  TW_ASSERT(text.empty(), "an operand pattern ends here");
  return spec;
}

/// The number after the first `letter` that a digit follows in a shape such as m64n128k16.
int shape_extent(const Opcode& opcode, char letter) {
  for (const Mod slot : opcode.slots) {
    const std::string_view word = name(slot);
    if (word.size() < 4 || word.front() != 'm' || word[1] < '0' || word[1] > '9') continue;
    std::string_view rest = word.substr(word.find(letter) + 1);
    return static_cast<int>(take_number(rest));
  }
  return 0;
}

/// The number in a word that is `prefix`, digits, `suffix`: v4, x2, 3d. 0 if there is none.
int word_number(const Opcode& opcode, std::string_view prefix, std::string_view suffix) {
  for (const Mod slot : opcode.slots) {
    std::string_view word = name(slot);
    if (!take(word, prefix) || !word.ends_with(suffix)) continue;
    word.remove_suffix(suffix.size());
    int value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error == std::errc{} && end == word.data() + word.size()) return value;
  }
  return 0;
}

Type widened(Type type) {
  switch (type) {
    case Type::u16:
      return Type::u32;
    case Type::s16:
      return Type::s32;
    case Type::u32:
      return Type::u64;
    case Type::s32:
      return Type::s64;
    default:
      return Type::none;
  }
}

}  // namespace

std::vector<OperandSpec> compile_operands(std::string_view pattern) {
  std::vector<OperandSpec> out;
  while (!pattern.empty()) {
    const std::size_t comma = std::min(pattern.find(", "), pattern.size());
    const std::string_view item = pattern.substr(0, comma);
    pattern.remove_prefix(std::min(comma + 2, pattern.size()));
    // `d|p`, but not the choices of `#c=4|8|16`.
    const std::size_t bar = item.front() == '#' ? std::string_view::npos : item.find('|');
    out.push_back(read_operand(item.substr(0, bar)));
    if (bar == std::string_view::npos) continue;
    out.push_back(read_operand(item.substr(bar + 1)));
    out.back().second = true;
  }
  return out;
}

std::span<const OperandSpec> operand_specs(std::uint16_t form) {
  static const std::vector<std::vector<OperandSpec>> all = [] {
    std::vector<std::vector<OperandSpec>> out;
    for (const Form& row : forms())
      out.push_back(compile_operands(row.operands));
    return out;
  }();
  return all[form];
}

Type type_of(const OperandSpec& spec, const Opcode& opcode, int address_size) {
  switch (spec.type_from) {
    case OperandSpec::TypeFrom::slot:
      return opcode.type(spec.type_slot);
    case OperandSpec::TypeFrom::literal:
      return spec.type;
    case OperandSpec::TypeFrom::wide:
      return widened(opcode.type(0));
    case OperandSpec::TypeFrom::address:
      return address_size == 32 ? Type::u32 : Type::u64;
  }
  return Type::none;
}

std::optional<int> count_of(const OperandSpec& spec, const Opcode& opcode) {
  switch (spec.count) {
    case OperandSpec::Count::scalar:
      return 0;
    case OperandSpec::Count::fixed:
      return spec.factor;
    case OperandSpec::Count::v:
      return word_number(opcode, "v", "");
    case OperandSpec::Count::x:
      return spec.factor * word_number(opcode, "x", "");
    case OperandSpec::Count::n:
      return shape_extent(opcode, 'n') / spec.factor;
    case OperandSpec::Count::dim:
      return word_number(opcode, "", "d") + spec.offset;
    case OperandSpec::Count::pack:
      return std::nullopt;
  }
  return 0;
}

}  // namespace tilewright::ptx::detail
