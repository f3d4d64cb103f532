// SPDX-License-Identifier: Apache-2.0
// The parts of the instruction table, and the requirements that rows share.
#pragma once

#include "tilewright/form.h"

#include <span>

namespace tilewright::ptx::detail {

constexpr std::array<Requires, 2> since(int major, int minor, std::string_view targets) {
  return {Requires{{major, minor}, targets}, Requires{}};
}
/// Every target this library knows of; ISA 6.0 introduced `.sync` and scopes.
inline constexpr std::array<Requires, 2> kAny = since(1, 0, "sm_50+");
inline constexpr std::array<Requires, 2> kVolta = since(6, 0, "sm_70+");
inline constexpr std::array<Requires, 2> kSm80 = since(7, 0, "sm_80+");
inline constexpr std::array<Requires, 2> kSm90 = since(7, 8, "sm_90+");
inline constexpr std::array<Requires, 2> kSm90v80 = since(8, 0, "sm_90+");
inline constexpr std::array<Requires, 2> kSm90v81 = since(8, 1, "sm_90+");
inline constexpr std::array<Requires, 2> kSm90v86 = since(8, 6, "sm_90+");
inline constexpr std::array<Requires, 2> kSm100 = since(8, 6, "sm_100+");
inline constexpr std::array<Requires, 2> kSm100v88 = since(8, 8, "sm_100+");

/// A named list of words that patterns use as `.<name>`.
struct WordSet {
  std::string_view name, words;
};
/// Words of `left` do not go with words of `right` in one instruction; each a list, or `<set>`.
struct Conflict {
  std::string_view opcode, left, right;
};
/// What a word needs beyond its row, in every form of `opcode` (empty: of any opcode).
struct WordRequires {
  std::string_view opcode, word;
  Requires requires_;
};
/// What operand `index` needs beyond its row, where the opcode has `word` and not `without`; `type`
/// none: any type.
struct OperandRequires {
  std::string_view opcode, word, without;
  std::size_t index;
  Type type;
  Requires requires_;
};
std::span<const WordSet> word_sets();
std::span<const Conflict> conflicts();
std::span<const WordRequires> word_requirements();
std::span<const OperandRequires> operand_requirements();

std::span<const Form> arith_forms();
std::span<const Form> logic_forms();
std::span<const Form> convert_forms();
std::span<const Form> memory_forms();
std::span<const Form> control_forms();
std::span<const Form> async_forms();
std::span<const Form> matrix_forms();
std::span<const Form> blackwell_forms();

}  // namespace tilewright::ptx::detail
