// SPDX-License-Identifier: Apache-2.0
// Constant folding of pure instructions, with the values that the device would compute.
#include "lang/fold.h"

#include "tilewright/number_formats.h"

#include <bit>
#include <cmath>

namespace tilewright::lang {
namespace {

template <class T, class U>
std::int64_t to_bits(T value) {
  return static_cast<std::int64_t>(std::bit_cast<U>(value));
}
float as_f32(std::int64_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits)); }
double as_f64(std::int64_t bits) { return std::bit_cast<double>(bits); }

template <class T>
std::optional<T> fold_float(BinaryOp op, T a, T b) {
  switch (op) {
    case BinaryOp::add:
      return a + b;
    case BinaryOp::sub:
      return a - b;
    case BinaryOp::mul:
      return a * b;
    case BinaryOp::div:
      return a / b;
    case BinaryOp::min:
      return std::fmin(a, b);
    case BinaryOp::max:
      return std::fmax(a, b);
    case BinaryOp::rem:
    case BinaryOp::and_:
    case BinaryOp::or_:
    case BinaryOp::xor_:
    case BinaryOp::shl:
    case BinaryOp::shr:
      return std::nullopt;
  }
  return std::nullopt;
}

std::optional<std::int64_t> fold_division(BinaryOp op, Type type, std::int64_t a, std::int64_t b) {
  if (b == 0) return std::nullopt;
  bool remainder = op == BinaryOp::rem;
  if (!is_signed(type)) {
    auto ua = static_cast<std::uint64_t>(a);
    auto ub = static_cast<std::uint64_t>(b);
    return static_cast<std::int64_t>(remainder ? ua % ub : ua / ub);
  }
  if (b == -1) return remainder ? 0 : static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(a));
  return remainder ? a % b : a / b;
}

std::optional<std::int64_t> fold_shift(BinaryOp op, Type type, std::int64_t a, std::int64_t count) {
  int width = bits(type);
  // PTX clamps the count to the width.
  std::int64_t n = count < 0 || count > width ? width : count;
  if (op == BinaryOp::shl)
    return n >= 64 ? 0 : static_cast<std::int64_t>(static_cast<std::uint64_t>(a) << n);
  if (is_signed(type)) return a >> (n >= 64 ? 63 : n);
  return n >= 64 ? 0 : static_cast<std::int64_t>(static_cast<std::uint64_t>(a) >> n);
}

std::optional<std::int64_t> fold_integer(BinaryOp op, Type type, std::int64_t a, std::int64_t b) {
  auto ua = static_cast<std::uint64_t>(a);
  auto ub = static_cast<std::uint64_t>(b);
  bool less = is_signed(type) ? a < b : ua < ub;
  switch (op) {
    case BinaryOp::add:
      return static_cast<std::int64_t>(ua + ub);
    case BinaryOp::sub:
      return static_cast<std::int64_t>(ua - ub);
    case BinaryOp::mul:
      return static_cast<std::int64_t>(ua * ub);
    case BinaryOp::div:
    case BinaryOp::rem:
      return fold_division(op, type, a, b);
    case BinaryOp::and_:
      return a & b;
    case BinaryOp::or_:
      return a | b;
    case BinaryOp::xor_:
      return a ^ b;
    case BinaryOp::shl:
    case BinaryOp::shr:
      return fold_shift(op, type, a, b);
    case BinaryOp::min:
      return less ? a : b;
    case BinaryOp::max:
      return less ? b : a;
  }
  return std::nullopt;
}

template <class T>
bool compare(CompareOp op, T a, T b) {
  switch (op) {
    case CompareOp::eq:
      return a == b;
    case CompareOp::ne:
      return a != b;
    case CompareOp::lt:
      return a < b;
    case CompareOp::le:
      return a <= b;
    case CompareOp::gt:
      return a > b;
    case CompareOp::ge:
      return a >= b;
  }
  return false;
}

}  // namespace

std::int64_t wrap(Type type, std::int64_t value) {
  int width = bits(type);
  if (width >= 64) return value;
  auto raw = static_cast<std::uint64_t>(value) & ((std::uint64_t{1} << width) - 1);
  bool negative = is_signed(type) && is_integer(type) && (raw >> (width - 1)) != 0;
  return static_cast<std::int64_t>(negative ? raw | ~((std::uint64_t{1} << width) - 1) : raw);
}

std::optional<std::int64_t> fold(BinaryOp op, Type type, std::int64_t a, std::int64_t b) {
  if (type == f32) {
    auto r = fold_float(op, as_f32(a), as_f32(b));
    if (!r || std::isnan(*r)) return std::nullopt;  // which NaN it is, the device decides
    return to_bits<float, std::uint32_t>(*r);
  }
  if (type == f64) {
    auto r = fold_float(op, as_f64(a), as_f64(b));
    if (!r || std::isnan(*r)) return std::nullopt;
    return to_bits<double, std::uint64_t>(*r);
  }
  if (!is_integer(type) && !is_bits(type) && type != pred) return std::nullopt;
  auto r = fold_integer(op, type, a, b);
  return r ? std::optional(wrap(type, *r)) : std::nullopt;
}

std::optional<bool> fold(CompareOp op, Type type, std::int64_t a, std::int64_t b) {
  if (type == f32) return compare(op, as_f32(a), as_f32(b));
  if (type == f64) return compare(op, as_f64(a), as_f64(b));
  if (is_integer(type) && !is_signed(type)) {
    return compare(op, static_cast<std::uint64_t>(a), static_cast<std::uint64_t>(b));
  }
  if (is_integer(type) || is_bits(type) || type == pred) return compare(op, a, b);
  return std::nullopt;
}

namespace {

/// Integers are taken exactly or not at all: a literal that loses digits is a slip of the pen.
std::optional<std::int64_t> integer_as_float(Type type, std::int64_t integer) {
  int digits = type == f64 ? 53 : type == f32 ? 24 : type == f16 ? 11 : 8;
  std::uint64_t magnitude =
      integer < 0 ? 0 - static_cast<std::uint64_t>(integer) : static_cast<std::uint64_t>(integer);
  while (magnitude != 0 && magnitude % 2 == 0)
    magnitude /= 2;
  if (magnitude >> digits != 0) return std::nullopt;
  return literal_bits(type, static_cast<double>(integer));
}

}  // namespace

std::optional<std::int64_t> literal_bits(Type type, std::int64_t integer) {
  if (is_float(type)) return integer_as_float(type, integer);
  if (type == pred) return integer == 0 || integer == 1 ? std::optional(integer) : std::nullopt;
  std::int64_t wrapped = wrap(type, integer);
  // 0xFFFFFFFF is accepted for s32 masks, and -1 for unsigned types.
  bool fits = wrapped == integer || (bits(type) < 64 && (integer >> bits(type)) == 0) ||
              (integer < 0 && bits(type) < 64 && (integer >> (bits(type) - 1)) == -1);
  return fits ? std::optional(wrapped) : std::nullopt;
}

std::optional<std::int64_t> literal_bits(Type type, double real) {
  if (type == f64) return to_bits<double, std::uint64_t>(real);
  std::int64_t infinity = type == f16 ? 0x7c00 : type == bf16 ? 0x7f80 : 0x7f800000;
  std::int64_t magnitude = type == f16 ? 0x7fff : type == bf16 ? 0x7fff : 0x7fffffff;
  std::int64_t raw = 0;
  if (type == f32) {
    raw = to_bits<float, std::uint32_t>(static_cast<float>(real));
  } else if (type == f16 || type == bf16) {
    raw = rounded_bits(type, real);
  } else {
    return std::nullopt;
  }
  bool overflows = std::isfinite(real) && (raw & magnitude) == infinity;
  return overflows ? std::nullopt : std::optional(raw);
}

std::int64_t rounded_bits(Type type, double real) {
  return type == f16 ? f64_to_f16(real) : f64_to_bf16(real);
}

}  // namespace tilewright::lang
