// SPDX-License-Identifier: Apache-2.0
// Element values of tensor-core operands as doubles, which hold all of them exactly.
#pragma once

#include "tilewright/type.h"

#include <cstdint>

namespace tilewright::emu::detail {

/// The value of an element's bits. f64 excepted, every type fits a double exactly.
double decode_number(Type type, std::uint64_t bits);
/// The bits of a value rounded to nearest even; integers wrap, or clamp if `saturate`.
std::uint64_t encode_number(Type type, double value, bool saturate);

}  // namespace tilewright::emu::detail
