// SPDX-License-Identifier: Apache-2.0
// One instruction for every word of every row of the instruction table, with operands that fit.
#pragma once

#include "ptx/operand_pattern.h"
#include "tilewright/module.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tilewright::ptx::test {

/// A module with one kernel, registers of every type, and variables in every space.
class SampleModule {
 public:
  SampleModule(Target target, Version version);
  /// The instruction with operands made up from its row.
  enum class Optional { left_out, given };
  Instr make(const Opcode& op, Optional optional);
  Function& function() { return module.functions.front(); }

  Module module;

 private:
  Operand make_operand(const Opcode& op, std::size_t spec);
  RegId next_register(Type type);
  Operand registers_of(Type type, int count);
  Operand address(const Opcode& op, const detail::OperandSpec& spec);

  std::vector<std::vector<RegId>> by_type_;
  std::vector<std::size_t> used_;
  LabelId end_ = 0;
};

/// The row's first words; then each other word of one slot, or of every two slots.
std::vector<Opcode> variants(std::uint16_t form, int slots_varied = 1);

/// The first target that has the instruction, oldest first, and the lowest version there.
struct Home {
  Target target;
  Version version;
  friend auto operator<=>(const Home&, const Home&) = default;
};
std::optional<Home> home(const Function& function, const Instr& instr);

/// Every sample, by its home. Calls and indexed branches are left out: they need more than a line.
std::map<Home, std::vector<std::pair<Opcode, SampleModule::Optional>>> samples(
    int slots_varied = 1);

}  // namespace tilewright::ptx::test
