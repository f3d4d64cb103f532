// SPDX-License-Identifier: Apache-2.0
// What the operators of the language give, computed plainly on the host, element by element.
#pragma once

#include "tilewright/type.h"

#include <cstdint>

namespace tilewright::test {

enum class Binary { add, sub, mul, div, rem, and_, or_, xor_, shl, shr, min, max };
enum class Compare { eq, ne, lt, le, gt, ge };

/// Bits of the low `bits(type)` of a number; sign-extended reading of such bits.
std::uint64_t cut(Type type, std::uint64_t raw);
std::int64_t as_signed(Type type, std::uint64_t raw);
double as_real(Type type, std::uint64_t raw);
std::uint64_t real_bits(Type type, double value);
bool is_nan(Type type, std::uint64_t raw);
/// The same bits, or NaN both.
bool same(Type type, std::uint64_t a, std::uint64_t b);

std::uint64_t binary(Binary op, Type type, std::uint64_t a, std::uint64_t b);
bool compare(Compare op, Type type, std::uint64_t a, std::uint64_t b);
std::uint64_t negate(Type type, std::uint64_t a);
std::uint64_t convert(Type to, Type from, std::uint64_t a);

}  // namespace tilewright::test
