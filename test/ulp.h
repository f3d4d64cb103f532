// SPDX-License-Identifier: Apache-2.0
// The distance of an f32 or f64 result from the exact one.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace tilewright::test {

/// Units in the last place of `exact` (at least of the smallest subnormal number) between `got` and
/// it; none if both overflow. An overflow otherwise counts as 2^128; a NaN, infinity or zero that
/// should be something else, or a zero's wrong sign, as infinity.
inline double ulp_error(float got, double exact) {
  constexpr double kWrong = std::numeric_limits<double>::infinity();
  auto nearest = static_cast<float>(exact);
  if (std::isnan(exact) || std::isnan(got))
    return std::isnan(exact) == std::isnan(got) ? 0 : kWrong;
  if (std::isinf(nearest) && got == nearest) return 0;
  if (std::isinf(exact)) return kWrong;
  if (std::signbit(got) != std::signbit(nearest)) return kWrong;
  if (exact == 0) return got == 0 ? 0 : kWrong;
  double value = std::isinf(got) ? std::copysign(0x1p+128, exact) : static_cast<double>(got);
  int exponent = std::clamp(std::ilogb(exact), -126, 127);
  return std::ldexp(std::abs(value - exact), 23 - exponent);
}

/// The same for an f64 result and a finite one that is exact to more digits.
inline double ulp_error_f64(double got, long double exact) {
  int exponent = std::max(std::ilogb(static_cast<double>(exact)), -1022);
  return static_cast<double>(std::abs(static_cast<long double>(got) - exact) *
                             std::ldexp(1.0L, 52 - exponent));
}

/// How many f32 numbers `got` is away from the one nearest to `exact`: CUDA's measure of an error.
inline std::int64_t f32_steps(float got, double exact) {
  auto order = [](float x) {
    auto bits = std::bit_cast<std::int32_t>(x);
    return bits < 0 ? std::int64_t{-1} * (bits & 0x7fffffff) : std::int64_t{bits};
  };
  if (std::isnan(exact) || std::isnan(got)) return 0;
  return std::abs(order(got) - order(static_cast<float>(exact)));
}

}  // namespace tilewright::test
