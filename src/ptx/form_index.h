// SPDX-License-Identifier: Apache-2.0
// The instruction table compiled: words interned, patterns as slots, rows by opcode.
#pragma once

#include "ptx/forms.h"
#include "tilewright/form.h"

#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tilewright::ptx::detail {

/// One place of a pattern: any of `words`, or nothing if `optional`.
struct Slot {
  std::vector<Mod> words;
  bool optional = false;
  bool with_previous = false;  ///< present if and only if the slot before it is
};

/// Built once; read-only afterwards.
class FormIndex {
 public:
  static const FormIndex& get();

  std::span<const Form> rows() const { return rows_; }
  std::span<const Slot> slots(std::size_t row) const { return slots_[row]; }
  /// Rows of an opcode, in table order; empty for an unknown one.
  std::span<const std::uint16_t> rows_of(std::string_view opcode) const;
  std::string_view word(Mod mod) const { return words_[mod.id]; }
  Type type(Mod mod) const { return types_[mod.id]; }
  Mod find(std::string_view word) const;
  /// The first row from `first` on (an index into rows_of) that takes the words in this order.
  std::optional<Opcode> match(std::string_view opcode, std::span<const Mod> mods,
                              std::size_t first = 0) const;
  /// What a word needs, in forms of some opcode.
  std::span<const WordRequires* const> requirements(Mod mod) const {
    return word_requires_[mod.id];
  }
  /// What operands of a row may need.
  std::span<const OperandRequires* const> operand_requirements(std::uint16_t row) const {
    return operand_requires_[row];
  }
  std::string unknown_opcode(std::string_view opcode) const;
  std::string no_such_form(std::string_view opcode, std::string_view modifiers) const;

 private:
  FormIndex();
  Mod intern(std::string_view word);
  std::vector<Mod> intern_list(std::string_view list);
  bool match_unordered(std::span<const Slot> slots, std::span<const Mod> mods, Mod* out) const;
  void index_requirements();
  bool row_has(std::uint16_t row, Mod mod) const;
  bool conflicting(std::string_view opcode, std::span<const Mod> mods) const;
  std::vector<Slot> compile(std::string_view pattern);

  struct WordConflict {
    std::string_view opcode;
    std::vector<Mod> left, right;
  };

  std::vector<Form> rows_;
  std::vector<std::vector<Slot>> slots_;
  std::vector<WordConflict> conflicts_;
  std::vector<std::vector<const WordRequires*>> word_requires_;        ///< by word
  std::vector<std::vector<const OperandRequires*>> operand_requires_;  ///< by row
  std::vector<std::string_view> words_;
  std::vector<Type> types_;
  std::unordered_map<std::string_view, std::uint16_t> ids_;
  std::unordered_map<std::string_view, std::vector<std::uint16_t>> by_opcode_;
};

/// Splits "rn.f32" at its dots; nothing if a word is empty or there are more than kMaxSlots.
std::optional<std::vector<std::string_view>> split_modifiers(std::string_view text);

}  // namespace tilewright::ptx::detail
