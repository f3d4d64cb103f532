// SPDX-License-Identifier: Apache-2.0
// Decoding in parts: symbols, functions, operands, modifiers.
#pragma once

#include "emu/code.h"

#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tilewright::emu::detail {

/// Function addresses as values: no memory access reaches them.
constexpr std::uint64_t kFunctionAddress = 0x0400'0000'0000;

const GlobalVariable* find_global(const Code& code, std::string_view name);
/// The address of a global variable or function. Throws Error(user) for another name.
std::uint64_t symbol_value(const Code& code, std::string_view name);
/// The number of a function with a body, or of a built-in one, or kNoFunction.
std::uint32_t function_number(const Code& code, std::string_view name);
void decode_function(Code& code, FunctionCode& function);
/// Reads state space, type, order, scope, vector length and operation from the opcode's words.
void read_modifiers(const ptx::Opcode& opcode, OpInfo& info);
Class class_of(Type type);

/// Gives registers, hidden registers and constants their slots.
class SlotTable {
 public:
  SlotTable(Code& code, FunctionCode& function);

  Slot reg(ptx::RegId id) const;
  Slot scratch(Class cls);
  Slot hidden(Hidden kind, Class cls, std::uint32_t index, int component, std::int64_t value);
  Slot constant(Class cls, std::uint64_t value);
  std::uint32_t carry();
  std::uint32_t bytes() const { return bytes_; }

 private:
  Code& code_;
  FunctionCode& function_;
  std::vector<Slot> registers_;
  std::uint32_t bytes_ = 0;
  std::uint32_t word_line_ = 0, words_used_ = 32;
  std::uint32_t mask_line_ = 0, masks_used_ = 32;
  std::uint32_t carry_ = 0;
  std::map<std::pair<int, std::uint64_t>, Slot> constants_;

  std::uint32_t line(std::uint32_t count);
  Slot make(Class cls);
};

}  // namespace tilewright::emu::detail
