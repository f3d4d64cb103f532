// SPDX-License-Identifier: Apache-2.0
// One instruction for every word of every row of the instruction table, with operands that fit.
#pragma once

#include "tilewright/module.h"

#include <string>
#include <vector>

namespace tilewright::ptx::test {

/// A module with one kernel, registers of every type, and variables in every space.
class SampleModule {
 public:
  SampleModule(Target target, Version version);
  /// Appends the instruction with operands made up from its row.
  void add(const Opcode& op);

  Module module;

 private:
  Operand make(const Opcode& op, std::size_t spec);
  RegId next_register(Type type);
  Operand address(const Opcode& op);

  std::vector<std::vector<RegId>> by_type_;
  std::vector<std::size_t> used_;
  LabelId end_ = 0;
};

/// The row's first words; then, one slot at a time, each other word of that slot.
std::vector<Opcode> variants(std::uint16_t form);

/// The first target that has the opcode, oldest first, and the lowest version there.
struct Home {
  Target target;
  Version version;
};
Home home(const Opcode& op);

}  // namespace tilewright::ptx::test
