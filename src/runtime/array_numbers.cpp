// SPDX-License-Identifier: Apache-2.0
// Values of element types in double and back: the plain arithmetic that references rely on.
#include "tilewright/array.h"
#include "tilewright/view.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>

namespace tilewright {
namespace {

/// How a float format treats its largest exponent.
enum class Top {
  ieee,       ///< infinity and NaN
  one_nan,    ///< numbers, and NaN with all bits set
  all_finite  ///< numbers only
};

struct Format {
  int exponent_bits;
  int mantissa_bits;
  bool is_signed;
  Top top;

  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  std::uint64_t sign_bit() const {
    return is_signed ? std::uint64_t{1} << (exponent_bits + mantissa_bits) : 0;
  }
  std::uint64_t all_ones() const {
    return (std::uint64_t{1} << (exponent_bits + mantissa_bits)) - 1;
  }
  std::uint64_t infinity() const { return all_ones() >> mantissa_bits << mantissa_bits; }
  std::uint64_t largest() const {
    if (top == Top::ieee) return infinity() - 1;
    return top == Top::one_nan ? all_ones() - 1 : all_ones();
  }
  std::uint64_t nan() const {
    if (top == Top::ieee) return infinity() | std::uint64_t{1} << (mantissa_bits - 1);
    return all_ones();
  }
};

std::optional<Format> format_of(Type type) {
  switch (type) {
    case Type::f16:
      return Format{5, 10, true, Top::ieee};
    case Type::bf16:
      return Format{8, 7, true, Top::ieee};
    case Type::e4m3:
      return Format{4, 3, true, Top::one_nan};
    case Type::e5m2:
      return Format{5, 2, true, Top::ieee};
    case Type::e2m3:
      return Format{2, 3, true, Top::all_finite};
    case Type::e3m2:
      return Format{3, 2, true, Top::all_finite};
    case Type::e2m1:
      return Format{2, 1, true, Top::all_finite};
    case Type::ue4m3:
      return Format{4, 3, false, Top::one_nan};
    default:
      return std::nullopt;  // every other type is handled by the callers
  }
}

double decode_float(const Format& format, std::uint64_t raw) {
  const std::uint64_t magnitude = raw & format.all_ones();
  const double sign = (raw & format.sign_bit()) != 0 ? -1.0 : 1.0;
  if (format.top == Top::ieee && magnitude >= format.infinity()) {
    return magnitude == format.infinity() ? sign * std::numeric_limits<double>::infinity()
                                          : std::numeric_limits<double>::quiet_NaN();
  }
  if (format.top == Top::one_nan && magnitude == format.all_ones()) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  const int exponent = static_cast<int>(magnitude >> format.mantissa_bits);
  const std::uint64_t one = std::uint64_t{1} << format.mantissa_bits;
  const std::uint64_t fraction = magnitude & (one - 1);
  const std::uint64_t significand = exponent == 0 ? fraction : fraction | one;
  const int scale = (exponent == 0 ? 1 : exponent) - format.bias() - format.mantissa_bits;
  return sign * std::ldexp(static_cast<double>(significand), scale);
}

std::uint64_t encode_float(const Format& format, double value) {
  if (std::isnan(value)) return format.top == Top::all_finite ? format.largest() : format.nan();
  const std::uint64_t sign = std::signbit(value) ? format.sign_bit() : 0;
  if (std::signbit(value) && !format.is_signed) return 0;
  const std::uint64_t over = format.top == Top::ieee ? format.infinity() : format.largest();
  const double magnitude = std::fabs(value);
  if (magnitude == 0) return sign;
  if (std::isinf(magnitude)) return sign | over;
  const int least = 1 - format.bias();
  const int exponent = std::max(std::ilogb(magnitude), least);
  // nearbyint rounds to nearest even. The hidden bit of a normal number, and a carry into the next
  // binade, fall out of the addition below.
  const double steps = std::nearbyint(std::ldexp(magnitude, format.mantissa_bits - exponent));
  const std::uint64_t code =
      (static_cast<std::uint64_t>(exponent - least) << format.mantissa_bits) +
      static_cast<std::uint64_t>(steps);
  return sign | (code > format.largest() ? over : code);
}

std::uint64_t encode_integer(Type type, double value) {
  const int width = storage_bits(type);
  const bool negative_allowed = is_signed(type);
  const double high = std::ldexp(1.0, negative_allowed ? width - 1 : width);
  const double low = negative_allowed ? -high : 0.0;
  if (!(value >= low && value < high) || value != std::trunc(value)) {
    throw Error(ErrorKind::user, "array: " + std::to_string(value) + " is no value of type " +
                                     std::string(name(type)));
  }
  const std::uint64_t mask = width == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1;
  if (value < 0) return static_cast<std::uint64_t>(static_cast<std::int64_t>(value)) & mask;
  return static_cast<std::uint64_t>(value);
}

double decode_integer(Type type, std::uint64_t raw) {
  const int width = storage_bits(type);
  if (width < 64) raw &= (std::uint64_t{1} << width) - 1;
  if (!is_signed(type)) return static_cast<double>(raw);
  const int unused = 64 - width;
  return static_cast<double>(static_cast<std::int64_t>(raw << unused) >> unused);
}

}  // namespace

double decode(Type type, std::uint64_t bits) {
  if (std::optional<Format> format = format_of(type)) return decode_float(*format, bits);
  if (type == Type::f32 || type == Type::tf32) {
    return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  }
  if (type == Type::f64) return std::bit_cast<double>(bits);
  if (type == Type::ue8m0) {
    return (bits & 255) == 255 ? std::numeric_limits<double>::quiet_NaN()
                               : std::ldexp(1.0, static_cast<int>(bits & 255) - 127);
  }
  return decode_integer(type, bits);
}

std::uint64_t encode(Type type, double value) {
  if (std::optional<Format> format = format_of(type)) return encode_float(*format, value);
  if (type == Type::f32) return std::bit_cast<std::uint32_t>(static_cast<float>(value));
  if (type == Type::f64) return std::bit_cast<std::uint64_t>(value);
  if (type == Type::tf32) {
    return encode_float({8, 10, true, Top::ieee}, value) << 13;
  }
  if (type == Type::ue8m0) {
    if (!(value > 0)) return std::isnan(value) ? 255 : 0;
    if (std::isinf(value)) return 254;
    int exponent = 0;
    const double half = std::frexp(value, &exponent);             // in [0.5, 1)
    const int nearest = exponent - (half >= 0.75 ? 0 : 1) + 127;  // halfway between powers: up
    return static_cast<std::uint64_t>(std::min(std::max(nearest, 0), 254));
  }
  return encode_integer(type, value);
}

}  // namespace tilewright
