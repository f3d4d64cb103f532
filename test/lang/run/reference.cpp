// SPDX-License-Identifier: Apache-2.0
// Operators on the host: wide integers cut to the type, and floating point rounded once.
#include "reference.h"

#include "tilewright/number_formats.h"

#include <bit>
#include <cmath>
#include <limits>

namespace tilewright::test {
namespace {

__extension__ using Wide = __int128;

Wide number(Type type, std::uint64_t raw) {
  return is_signed(type) ? Wide{as_signed(type, raw)} : Wide{cut(type, raw)};
}

std::uint64_t shifted(Binary op, Type type, std::uint64_t a, std::uint64_t count) {
  int width = bits(type);
  if (op == Binary::shl)
    return count >= static_cast<std::uint64_t>(width) ? 0 : cut(type, a << count);
  int most = is_signed(type) ? width - 1 : width;
  int n = count > static_cast<std::uint64_t>(most) ? most : static_cast<int>(count);
  return cut(type, static_cast<std::uint64_t>(static_cast<std::int64_t>(number(type, a) >> n)));
}

std::uint64_t of_integers(Binary op, Type type, std::uint64_t a, std::uint64_t b) {
  Wide x = number(type, a);
  Wide y = number(type, b);
  Wide result = 0;
  switch (op) {
    case Binary::add:
      result = x + y;
      break;
    case Binary::sub:
      result = x - y;
      break;
    case Binary::mul:
      return cut(type, a * b);
    case Binary::div:
      result = x / y;
      break;
    case Binary::rem:
      result = x % y;
      break;
    case Binary::and_:
      return cut(type, a & b);
    case Binary::or_:
      return cut(type, a | b);
    case Binary::xor_:
      return cut(type, a ^ b);
    case Binary::shl:
    case Binary::shr:
      return shifted(op, type, a, b);
    case Binary::min:
      result = x < y ? x : y;
      break;
    case Binary::max:
      result = x < y ? y : x;
      break;
  }
  return cut(type, static_cast<std::uint64_t>(result));
}

/// min and max of PTX: a NaN loses, and -0 is less than +0.
double chosen(Binary op, double x, double y) {
  if (std::isnan(x)) return y;
  if (std::isnan(y)) return x;
  bool x_less = x < y || (x == y && std::signbit(x) && !std::signbit(y));
  return (op == Binary::min) == x_less ? x : y;
}

template <class T>
T of_reals(Binary op, T x, T y) {
  if (op == Binary::add) return x + y;
  if (op == Binary::sub) return x - y;
  if (op == Binary::mul) return x * y;
  if (op == Binary::div) return x / y;
  return static_cast<T>(chosen(op, static_cast<double>(x), static_cast<double>(y)));
}

}  // namespace

std::uint64_t cut(Type type, std::uint64_t raw) {
  int width = bits(type);
  return width >= 64 ? raw : raw & ((std::uint64_t{1} << width) - 1);
}

std::int64_t as_signed(Type type, std::uint64_t raw) {
  int unused = 64 - bits(type);
  return static_cast<std::int64_t>(raw << unused) >> unused;
}

double as_real(Type type, std::uint64_t raw) {
  if (type == f64) return std::bit_cast<double>(raw);
  if (type == f32)
    return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(raw)));
  auto half = static_cast<std::uint16_t>(raw);
  return static_cast<double>(type == f16 ? f16_to_f32(half) : bf16_to_f32(half));
}

std::uint64_t real_bits(Type type, double value) {
  if (type == f64) return std::bit_cast<std::uint64_t>(value);
  if (type == f32) return std::bit_cast<std::uint32_t>(static_cast<float>(value));
  return type == f16 ? f64_to_f16(value) : f64_to_bf16(value);
}

bool is_nan(Type type, std::uint64_t raw) {
  return is_float(type) && std::isnan(as_real(type, raw));
}

bool same(Type type, std::uint64_t a, std::uint64_t b) {
  return a == b || (is_nan(type, a) && is_nan(type, b));
}

std::uint64_t binary(Binary op, Type type, std::uint64_t a, std::uint64_t b) {
  if (!is_float(type)) return of_integers(op, type, a, b);
  // Sums and products of two 16-bit numbers round once in double, f32 ones in float.
  if (type == f32) {
    auto x = static_cast<float>(as_real(f32, a));
    auto y = static_cast<float>(as_real(f32, b));
    return std::bit_cast<std::uint32_t>(of_reals(op, x, y));
  }
  return real_bits(type, of_reals(op, as_real(type, a), as_real(type, b)));
}

bool compare(Compare op, Type type, std::uint64_t a, std::uint64_t b) {
  bool less = false;
  bool equal = false;
  bool ordered = true;
  if (is_float(type)) {
    double x = as_real(type, a);
    double y = as_real(type, b);
    less = x < y;
    equal = x == y;
    ordered = !std::isnan(x) && !std::isnan(y);
  } else {
    less = number(type, a) < number(type, b);
    equal = number(type, a) == number(type, b);
  }
  switch (op) {
    case Compare::eq:
      return equal;
    case Compare::ne:
      return !equal;
    case Compare::lt:
      return less;
    case Compare::le:
      return less || equal;
    case Compare::gt:
      return ordered && !less && !equal;
    case Compare::ge:
      return ordered && !less;
  }
  return false;
}

std::uint64_t negate(Type type, std::uint64_t a) {
  if (is_float(type)) return cut(type, a ^ (std::uint64_t{1} << (bits(type) - 1)));
  return cut(type, 0 - a);
}

std::uint64_t convert(Type to, Type from, std::uint64_t a) {
  if (!is_float(from) && !is_float(to)) return cut(to, static_cast<std::uint64_t>(number(from, a)));
  if (!is_float(from)) {
    Wide x = number(from, a);
    if (to == f32) {  // one rounding: a detour through double would round twice
      return std::bit_cast<std::uint32_t>(static_cast<float>(x));
    }
    return real_bits(to, static_cast<double>(x));
  }
  double x = as_real(from, a);
  if (is_float(to)) return real_bits(to, x);
  int width = bits(to);
  // PTX ISA, cvt: NaN gives 0, but the top bit where a 64-bit type takes part.
  bool long_type = width == 64 || bits(from) == 64;
  if (std::isnan(x)) return long_type ? std::uint64_t{1} << (width - 1) : 0;
  Wide most = is_signed(to) ? (Wide{1} << (width - 1)) - 1 : (Wide{1} << width) - 1;
  Wide least = is_signed(to) ? -(Wide{1} << (width - 1)) : Wide{0};
  Wide whole = std::fabs(x) >= 0x1p100 ? (x < 0 ? least : most) : static_cast<Wide>(x);
  whole = whole < least ? least : whole > most ? most : whole;
  return cut(to, static_cast<std::uint64_t>(whole));
}

}  // namespace tilewright::test
