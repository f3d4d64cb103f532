// SPDX-License-Identifier: Apache-2.0
// What is known of sums, products and quotients of integers with known divisors and bounds.
#pragma once

#include "tilewright/value.h"

namespace tilewright::lang {

Facts facts_of_type(Type type);
/// Facts that the type's wrapping keeps true: unknown bounds if the exact result may not fit.
Facts facts_add(const Facts& a, const Facts& b, Type type);
Facts facts_sub(const Facts& a, const Facts& b, Type type);
Facts facts_mul(const Facts& a, const Facts& b, Type type);
Facts facts_div(const Facts& a, std::int64_t divisor, Type type);
Facts facts_rem(const Facts& a, std::int64_t divisor, Type type);
/// Of x, where x + addend has `sum` and has not wrapped: bounds only where those are known.
Facts facts_less(const Facts& sum, std::int64_t addend, Type type);
/// Whether the bounds lie within what the type can hold.
bool fits(const Facts& facts, Type type);

}  // namespace tilewright::lang
