// SPDX-License-Identifier: Apache-2.0
// What atomic operations compute from the old value, the operand and, for cas, the new value.
#pragma once

#include "emu/atomics.h"

#include <bit>
#include <cmath>
#include <type_traits>

namespace tilewright::emu::detail {

/// f16, bf16 and their pairs.
bool is_half(Type type);
std::uint64_t combine_half(AtomOp op, Type type, std::uint64_t a, std::uint64_t b);

inline float flushed(float v) {
  return std::bit_cast<std::uint32_t>(v) << 1 < 0x0100'0000U ? std::copysign(0.0F, v) : v;
}

/// A sum of floating-point numbers, as bits.
template <class T>
T float_sum(T a, T b, bool flush) {
  if constexpr (sizeof(T) == 8) {
    return std::bit_cast<T>(std::bit_cast<double>(a) + std::bit_cast<double>(b));
  } else {
    const auto x = std::bit_cast<float>(a), y = std::bit_cast<float>(b);
    return std::bit_cast<T>(flush ? flushed(flushed(x) + flushed(y)) : x + y);
  }
}

/// Returns each(f), where f(old, operand, new value) is the result on elements of type T. `flush`:
/// f32 subnormals become zero, as in global memory. Pre: T is as wide as `type`, or wider.
template <class T, class Each>
auto with_operation(AtomOp op, Type type, bool flush, Each each) {
  using Signed = std::make_signed_t<T>;
  if (is_half(type) && op != AtomOp::exch && op != AtomOp::cas) {
    return each([=](T a, T b, T) { return static_cast<T>(combine_half(op, type, a, b)); });
  }
  const bool by_sign = is_integer(type) && is_signed(type);
  switch (op) {
    case AtomOp::add:
      if (is_float(type)) return each([=](T a, T b, T) { return float_sum(a, b, flush); });
      return each([](T a, T b, T) { return static_cast<T>(a + b); });
    case AtomOp::inc:
      return each([](T a, T b, T) { return a >= b ? T{0} : static_cast<T>(a + 1); });
    case AtomOp::dec:
      return each([](T a, T b, T) { return a == 0 || a > b ? b : static_cast<T>(a - 1); });
    case AtomOp::min:
      if (!by_sign) return each([](T a, T b, T) { return a < b ? a : b; });
      return each(
          [](T a, T b, T) { return static_cast<Signed>(a) < static_cast<Signed>(b) ? a : b; });
    case AtomOp::max:
      if (!by_sign) return each([](T a, T b, T) { return a < b ? b : a; });
      return each(
          [](T a, T b, T) { return static_cast<Signed>(a) < static_cast<Signed>(b) ? b : a; });
    case AtomOp::and_:
      return each([](T a, T b, T) { return a & b; });
    case AtomOp::or_:
      return each([](T a, T b, T) { return a | b; });
    case AtomOp::xor_:
      return each([](T a, T b, T) { return a ^ b; });
    case AtomOp::exch:
      return each([](T, T b, T) { return b; });
    case AtomOp::cas:
      return each([](T a, T b, T c) { return a == b ? c : a; });
    case AtomOp::none:
      break;
  }
  return each([](T a, T, T) { return a; });
}

}  // namespace tilewright::emu::detail
