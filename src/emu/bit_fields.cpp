// SPDX-License-Identifier: Apache-2.0
// Finds the masks of stores to bit-fields.
#include "emu/bit_fields.h"

#include <unordered_map>

namespace tilewright::emu::detail {

namespace {

using OperandKind = ptx::Operand::Kind;

bool is_register(const ptx::Instr& instr, std::size_t i) {
  return instr.operands.size() > i && instr.operands[i].kind == OperandKind::reg;
}

}  // namespace

std::unordered_set<const ptx::Instr*> bit_field_masks(const ptx::Function& function) {
  std::unordered_set<const ptx::Instr*> found;
  // What the registers of the straight run so far hold: a loaded word, or one that was masked.
  std::unordered_map<std::uint32_t, const ptx::Instr*> loaded, masked;
  for (const ptx::Stmt& stmt : function.body) {
    const auto* instr = std::get_if<ptx::Instr>(&stmt);
    if (instr == nullptr || instr->guard) {
      loaded.clear();
      masked.clear();
      continue;
    }
    if (!is_register(*instr, 0)) continue;
    const std::string_view name = instr->op.row().opcode;
    const std::uint32_t result = instr->operands[0].id;
    const ptx::Instr* mask = nullptr;
    if (name == "and" && is_register(*instr, 1) && loaded.count(instr->operands[1].id) != 0 &&
        instr->operands.size() == 3 && instr->operands[2].kind == OperandKind::imm) {
      mask = instr;
    }
    if (name == "or") {
      for (const std::size_t i : {1U, 2U}) {
        if (!is_register(*instr, i)) continue;
        const auto it = masked.find(instr->operands[i].id);
        if (it != masked.end()) found.insert(it->second);
      }
    }
    loaded.erase(result);
    masked.erase(result);
    if (name == "ld") loaded[result] = instr;
    if (mask != nullptr) masked[result] = mask;
  }
  return found;
}

}  // namespace tilewright::emu::detail
