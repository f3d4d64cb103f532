// SPDX-License-Identifier: Apache-2.0
// All opcodes that a row of the instruction table stands for.
#pragma once

#include "ptx/form_index.h"

namespace tilewright::ptx::test {

/// Calls `visit` with each opcode of a row: every word of every slot from `slot` on.
template <class Visit>
void for_each_opcode(std::uint16_t row, std::size_t slot, Opcode opcode, const Visit& visit) {
  const auto slots = detail::FormIndex::get().slots(row);
  if (slot == slots.size()) return visit(opcode);
  if (slots[slot].optional) for_each_opcode(row, slot + 1, opcode, visit);
  for (const Mod word : slots[slot].words) {
    opcode.slots[slot] = word;
    for_each_opcode(row, slot + 1, opcode, visit);
  }
}

}  // namespace tilewright::ptx::test
