// SPDX-License-Identifier: Apache-2.0
// The meaning of an opcode that the instruction table has resolved.
#include "ptx/semantics/spec.h"

#include <algorithm>

namespace tilewright::ptx::semantics {

Meaning resolve(const Opcode& opcode) {
  Spec spec = parse_spec(to_string(opcode));
  if (spec.op == LaneOp::min || spec.op == LaneOp::max) {  // two sources or three, by the row
    const std::string_view operands = opcode.row().operands;
    spec.sources = static_cast<int>(std::count(operands.begin(), operands.end(), ','));
  }
  return resolve(spec, best_isa());
}

}  // namespace tilewright::ptx::semantics
