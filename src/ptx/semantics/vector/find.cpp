// SPDX-License-Identifier: Apache-2.0
// Asks the table that has an opcode's operation.
#include "ptx/semantics/vector/lanes.h"

namespace tilewright::ptx::semantics::TW_ISA {

LaneFn find_lane_fn(const Spec& spec) {
  if (spec.op == LaneOp::set || spec.op == LaneOp::setp) return find_compare(spec);
  if (spec.op == LaneOp::cvt) return find_convert(spec);
  if (spec.has(kCc) || spec.op == LaneOp::addc || spec.op == LaneOp::subc ||
      spec.op == LaneOp::madc) {
    return find_carry(spec);
  }
  if (const LaneFn fn = find_integer(spec)) return fn;
  if (const LaneFn fn = find_float(spec)) return fn;
  if (const LaneFn fn = find_float_pair(spec)) return fn;
  if (const LaneFn fn = find_half(spec)) return fn;
  if (const LaneFn fn = find_approximate(spec)) return fn;
  return find_bits(spec);
}

}  // namespace tilewright::ptx::semantics::TW_ISA
