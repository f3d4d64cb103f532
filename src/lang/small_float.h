// SPDX-License-Identifier: Apache-2.0
// Conversion of packed words of fp8, fp6 and fp4 elements.
#pragma once

#include "tilewright/value.h"

#include <cstdint>
#include <span>
#include <vector>

namespace tilewright::lang {

/// e4m3, e5m2, e2m3, e3m2 and e2m1.
bool is_small_float(Type type);

/// The f16x2 pairs (as u32) of the low `count` elements of a word; exact.
std::vector<Value> widen_small(Type from, const Value& word, int count, SourceLoc at);
/// Whether elements may lie outside of a type.
enum class Range : std::uint8_t { any, within };

/// A word of up to 32 bits of f32 values, the rest 0: nearest even, saturating; NaN is kept in fp8
/// and becomes the largest value in fp6 and fp4. Within the range: no limits are applied.
Value narrow_small(Type to, std::span<const Value> wide, Range range, SourceLoc at);

/// A word of codes of e2m1 of 64 times f32 values under 7 / 64, the rest 0.
Value narrow_64ths(std::span<const Value> wide, SourceLoc at);
/// The same of exact products with `factor`, which is 2^-16, or up to 2^-25 below it.
Value narrow_products(std::span<const Value> wide, float factor, SourceLoc at);
/// x times factor: of two numbers of f32 beside the product, the odd one.
Value product_to_odd(const Value& x, float factor, SourceLoc at);

}  // namespace tilewright::lang
