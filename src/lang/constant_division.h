// SPDX-License-Identifier: Apache-2.0
// Quotients by constants as products: ptxas emits a whole division where a multiplication serves.
#pragma once

#include "tilewright/value.h"

namespace tilewright::lang {

/// Of an integer of 32 or 64 bits that is signed, or known to have its highest bit clear.
bool is_quotient_by_product(const Value& n);
/// n / divisor, rounded to zero. Pre: is_quotient_by_product(n), 1 < divisor.
Value divide_by_constant(const Value& n, std::int64_t divisor, const Facts& facts, SourceLoc at);

}  // namespace tilewright::lang
