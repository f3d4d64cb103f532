// SPDX-License-Identifier: Apache-2.0
// The operand column of the instruction table, compiled.
#pragma once

#include "tilewright/form.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace tilewright::ptx::detail {

/// One operand of a row; docs/ptx-table.md has the spelling of each field.
struct OperandSpec {
  enum class Kind : std::uint8_t {
    value,           ///< a register, immediate or other value: `a`, `d`, `p`
    address,         ///< `[a]`
    tensor_address,  ///< `[t{dim}]`
    immediate,       ///< `#a`
    sink,            ///< `_`
    label,           ///< `label`
    call,            ///< `call`: all operands of a call
    descriptor,      ///< `desc{4}`: a 64-bit descriptor or registers
    unchecked,       ///< `...`: any operands from here on
  };
  enum class TypeFrom : std::uint8_t { slot, literal, wide, address };
  enum class Count : std::uint8_t { scalar, fixed, v, x, n, dim, pack };

  Kind kind = Kind::value;
  char role = ' ';
  TypeFrom type_from = TypeFrom::slot;
  int type_slot = 0;
  Type type = Type::none;
  Type other_type = Type::none;  ///< `u32/pred`: a register of this type will do too
  Count count = Count::scalar;
  int factor = 1;  ///< fixed: the count; x, n: multiplies or divides
  int offset = 0;  ///< dim: added
  bool optional = false, register_only = false, relaxed = false;
  bool may_sink = false, may_negate = false, may_symbol = false;
  bool with_descriptor = false;  ///< `?desc`: present if `desc` is a descriptor, not registers
  bool second = false;           ///< the right side of d|p
  Mod only_with;                 ///< if not 0: present if and only if the opcode has this word
  std::int64_t low = INT64_MIN, high = INT64_MAX;
  std::int64_t step = 1;  ///< `low..high/step`
  std::vector<std::int64_t> choices;

  bool is_destination() const { return role == 'd' || role == 'p' || role == 'q'; }
};

/// The operands of a row; a second side of a pair follows its first.
std::vector<OperandSpec> compile_operands(std::string_view pattern);
std::span<const OperandSpec> operand_specs(std::uint16_t form);

Type type_of(const OperandSpec& spec, const Opcode& opcode, int address_size);
/// Elements of a vector operand; 0 for a scalar one, nothing where any split goes (`{pack}`).
std::optional<int> count_of(const OperandSpec& spec, const Opcode& opcode);

}  // namespace tilewright::ptx::detail
