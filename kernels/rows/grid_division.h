// SPDX-License-Identifier: Apache-2.0
// Division of block numbers by a number that a launch's host side knows: a product and a shift.
#pragma once

#include "tilewright/trace.h"
#include "tilewright/value.h"

#include <cstdint>

namespace tilewright::rows {

/// The launch parameter, and its place in a trace. Pre: 0 < divisor < 2^31.
std::uint64_t divisor_parameter(std::int64_t divisor);
ScalarArg divisor_arg();

struct Divided {
  Value quotient, remainder;  ///< s32
};
/// Traced. Pre: 0 <= n < 2^31.
Divided divided(const Value& n, const Value& divisor);

}  // namespace tilewright::rows
