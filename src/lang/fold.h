// SPDX-License-Identifier: Apache-2.0
// Operations on constants, computed when traced with the device's rounding and wrapping.
#pragma once

#include "tilewright/type.h"

#include <cstdint>
#include <optional>

namespace tilewright::lang {

enum class BinaryOp : std::uint8_t { add, sub, mul, div, rem, and_, or_, xor_, shl, shr, min, max };
enum class CompareOp : std::uint8_t { eq, ne, lt, le, gt, ge };

/// The constant's bits cut to the type's width and sign-extended (zero-extended if unsigned).
std::int64_t wrap(Type type, std::int64_t bits);
/// Nothing where folding is not exact on the host (f16, bf16) or not defined (division by zero).
std::optional<std::int64_t> fold(BinaryOp op, Type type, std::int64_t a, std::int64_t b);
std::optional<bool> fold(CompareOp op, Type type, std::int64_t a, std::int64_t b);
/// The bits of a literal in a type; nothing if the type cannot hold an integer
/// exactly, or if a finite number would become infinite.
std::optional<std::int64_t> literal_bits(Type type, std::int64_t integer);
std::optional<std::int64_t> literal_bits(Type type, double real);
/// The nearest f16 or bf16 with ties to even, infinity beyond the range, as a conversion gives it.
std::int64_t rounded_bits(Type type, double real);

}  // namespace tilewright::lang
