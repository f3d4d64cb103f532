// SPDX-License-Identifier: Apache-2.0
// Error bounds that the PTX manual gives for approximate instructions (section "Floating-Point
// Instructions").
#include "ptx/semantics/spec.h"

namespace tilewright::ptx::semantics {

std::string_view accuracy_of(const Spec& spec) {
  if (spec.has(kOob))
    return "the out-of-bounds NaN is taken to be 0x7ff7, which the manual does not state";
  if (!spec.has(kApprox | kFull)) return {};
  const bool f64 = spec.types[0] == Type::f64;
  const bool half = spec.types[0] == Type::f16 || spec.types[0] == Type::f16x2;
  const bool brain = spec.types[0] == Type::bf16 || spec.types[0] == Type::bf16x2;
  switch (spec.op) {
    case LaneOp::div:
      return spec.has(kFull) ? "2 ulp" : "2 ulp for divisors in [2^-126, 2^126]";
    case LaneOp::rcp:
      return f64 ? "gross: 20 bits of mantissa" : "1 ulp";
    case LaneOp::rsqrt:
      return f64 ? "gross" : "2^-22.9 relative";
    case LaneOp::sqrt:
      return "2^-23 relative";
    case LaneOp::sin:
    case LaneOp::cos:
      return "2^-20.5 absolute in [-2pi, 2pi], 2^-14.7 in [-100pi, 100pi]";
    case LaneOp::lg2:
      return "2^-22 absolute in (0.5, 2), else relative";
    case LaneOp::ex2:
      return half ? "2^-9.9 relative" : brain ? "2^-7 relative" : "2 ulp";
    case LaneOp::tanh:
      return half ? "2^-10.987 absolute" : brain ? "2^-8 absolute" : "2^-11 relative";
    default:
      return "approximate";
  }
}

}  // namespace tilewright::ptx::semantics
