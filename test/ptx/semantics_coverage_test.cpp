// SPDX-License-Identifier: Apache-2.0
// No lane-pure form of the instruction table lacks a meaning, whatever words its slots take.
#include "ptx/opcodes_of_row.h"
#include "ptx/semantics/semantics.h"

#include <gtest/gtest.h>
#include <set>
#include <string>

namespace tilewright::ptx::semantics {
namespace {

using ptx::test::for_each_opcode;

/// The table is laxer than ptxas: lo, ls, hi and hs compare unsigned types alone.
bool assembles(const Opcode& opcode) {
  const Type compared = opcode.type(opcode.row().opcode == "set" ? 1 : 0);
  const bool is_unsigned = is_integer(compared) && !is_signed(compared);
  for (const char* word : {"lo", "ls", "hi", "hs"}) {
    if (opcode.row().opcode.substr(0, 3) == "set" && opcode.has(mod(word)) && !is_unsigned) {
      return false;
    }
  }
  return true;
}

TEST(SemanticsCoverage, EveryLaneFormHasAMeaning) {
  const std::set<std::string> known = {"mov.b128"};  // the emulator keeps such a register as two
  std::set<std::string> missing;
  int found = 0;
  for (std::uint16_t row = 0; row < forms().size(); ++row) {
    if (forms()[row].effect != Effect::lane) continue;
    Opcode opcode;
    opcode.form = row;
    for_each_opcode(row, 0, opcode, [&](const Opcode& full) {
      if (resolve(full)) {
        ++found;
      } else if (assembles(full) && known.count(to_string(full)) == 0) {
        missing.insert(to_string(full));
      }
    });
  }
  std::string list;
  for (const std::string& text : missing)
    list += text + "\n";
  EXPECT_GT(found, 4000);
  EXPECT_EQ(list, "");
}

}  // namespace
}  // namespace tilewright::ptx::semantics
