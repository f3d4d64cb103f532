// SPDX-License-Identifier: Apache-2.0
// Element values of tensor-core operands as doubles, which hold all of them exactly.
#pragma once

#include "tilewright/form.h"
#include "tilewright/type.h"

#include <cstdint>

namespace tilewright::emu::detail {

/// An element of a matrix operand: `s4` is s8 in four bits, `b1` is u8 in one.
struct Element {
  Type type = Type::none;
  int bits = 0;
};
/// The i-th word of an opcode that names elements: a type, or s4, u4, b1.
Element element(const ptx::Opcode& opcode, int i);

/// The value of an element's bits. f64 excepted, every type fits a double exactly.
double decode_number(Type type, std::uint64_t bits);
double decode_number(Element element, std::uint64_t bits);
/// The bits of a value rounded to nearest even; integers wrap, or clamp if `saturate`.
std::uint64_t encode_number(Type type, double value, bool saturate);

}  // namespace tilewright::emu::detail
