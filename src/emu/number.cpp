// SPDX-License-Identifier: Apache-2.0
// Element values of tensor-core operands as doubles.
#include "emu/number.h"

#include "emu/word.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace tilewright::emu::detail {

namespace {

/// A small float: sign, exponent bits, fraction bits; `ieee`: the top exponent is inf and NaN.
double small_float(std::uint64_t bits, int exponent_bits, int fraction_bits, bool ieee) {
  const std::uint64_t fraction = bits & ((1U << fraction_bits) - 1);
  const int top = (1 << exponent_bits) - 1;
  const int exponent = static_cast<int>(bits >> fraction_bits) & top;
  const bool negative = (bits >> (exponent_bits + fraction_bits) & 1) != 0;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  double v = 0;
  if (ieee && exponent == top) {
    v = fraction != 0 ? NAN : INFINITY;
  } else if (!ieee && exponent == top && fraction == (1U << fraction_bits) - 1) {
    v = NAN;  // e4m3 has one NaN and no infinity
  } else if (exponent == 0) {
    v = std::ldexp(static_cast<double>(fraction), 1 - bias - fraction_bits);
  } else {
    v = std::ldexp(static_cast<double>(fraction + (1U << fraction_bits)),
                   exponent - bias - fraction_bits);
  }
  return negative ? -v : v;
}

std::uint64_t encode_half(double value) {
  const std::uint64_t sign = std::signbit(value) ? 0x8000 : 0;
  const double a = std::abs(value);
  if (std::isnan(value)) return 0x7fff;
  if (a >= 65520.0) return sign | 0x7c00;
  if (a < std::ldexp(1.0, -14)) {
    return sign | static_cast<std::uint64_t>(std::nearbyint(std::ldexp(a, 24)));
  }
  int exponent = 0;
  const double mantissa = std::frexp(a, &exponent);  // [0.5, 1)
  const auto rounded = static_cast<std::uint64_t>(std::nearbyint(std::ldexp(mantissa, 11)));
  // A carry into the next power of two carries into the exponent by itself.
  return sign | ((static_cast<std::uint64_t>(exponent + 14) << 10) + rounded - 1024);
}

Element element_named(ptx::Mod mod) {
  if (mod.id == 0) return {};
  const Type type = ptx::type_of(mod);
  if (type == Type::s4) return {Type::s8, 4};
  if (type == Type::u4) return {Type::u8, 4};
  if (type != Type::none) return {type, bits(type)};
  if (mod == word<"b1">()) return {Type::u8, 1};
  return {};
}

}  // namespace

Element element(const ptx::Opcode& opcode, int i) {
  for (const ptx::Mod slot : opcode.slots) {
    const Element e = element_named(slot);
    if (e.type != Type::none && i-- == 0) return e;
  }
  return {};
}

double decode_number(Element element, std::uint64_t bits) {
  if (element.bits >= 8) return decode_number(element.type, bits);
  const int unused = 8 - element.bits;
  const auto byte = static_cast<std::uint8_t>(bits << unused);  // its sign is the element's
  return element.type == Type::s8 ? static_cast<std::int8_t>(byte) >> unused : byte >> unused;
}

double decode_number(Type type, std::uint64_t bits) {
  switch (type) {
    case Type::f16:
      return small_float(bits, 5, 10, true);
    case Type::bf16:
      return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16));
    case Type::tf32:
      return static_cast<double>(
          std::bit_cast<float>(static_cast<std::uint32_t>(bits) & 0xffffe000U));
    case Type::f32:
      return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    case Type::f64:
      return std::bit_cast<double>(bits);
    case Type::e4m3:
      return small_float(bits, 4, 3, false);
    case Type::e5m2:
      return small_float(bits, 5, 2, true);
    case Type::u8:
      return static_cast<double>(bits & 0xff);
    case Type::s8:
      return static_cast<double>(static_cast<std::int8_t>(bits));
    case Type::s32:
      return static_cast<double>(static_cast<std::int32_t>(bits));
    default:
      return static_cast<double>(bits);
  }
}

std::uint64_t encode_number(Type type, double value, bool saturate) {
  switch (type) {
    case Type::f16:
      return encode_half(value);
    case Type::f32:
      return std::bit_cast<std::uint32_t>(static_cast<float>(value));
    case Type::f64:
      return std::bit_cast<std::uint64_t>(value);
    default:
      break;
  }
  if (saturate) value = std::clamp(value, -2147483648.0, 2147483647.0);
  return static_cast<std::uint32_t>(static_cast<std::int64_t>(value));
}

}  // namespace tilewright::emu::detail
