// SPDX-License-Identifier: Apache-2.0
// exp and log in f64, and what the f32 functions borrow from f64; polynomials by
// scripts/minimax.py.
#pragma once

#include "lang/maths_number.h"

#include <limits>
#include <utility>

namespace tilewright::lang {

/// Host<float> to Host<double>; a Value stays a Value.
template <class N>
using F64 = decltype(to_f64(std::declval<const N&>()));

constexpr double kRoundToInteger64 = 0x1.8p+52;
constexpr double kLn2 = 0x1.62e42fefa39efp-1;
constexpr double kLn2High64 = 0x1.62e42fefa3p-1;  // 41 bits: times an exponent it is exact
constexpr double kLn2Low64 = 0x1.3de6af278ece6p-42;
constexpr double kLogF64[] = {0x1.5555555555593p-1, 0x1.999999997f96cp-2, 0x1.2492494236854p-2,
                              0x1.c71c51cb5dc32p-3, 0x1.74664cb9c6eb6p-3, 0x1.39a039760ef1ap-3,
                              0x1.2f15b1560ef05p-3};
constexpr double kExpF64[] = {0x1.000000000000ap-1,  0x1.55555555554f9p-3,  0x1.55555555507f7p-5,
                              0x1.1111111127e8ap-7,  0x1.6c16c18449b77p-10, 0x1.a01a0129a7774p-13,
                              0x1.a01999b1416dcp-16, 0x1.71df2658a5804p-19, 0x1.28adcb42f6205p-22,
                              0x1.ad7eaae755763p-26};

/// x = m 2^exponent with m in [sqrt(1/2), sqrt(2)). Pre: x is positive and normal.
template <class D>
struct Split64 {
  D m, exponent;
};

template <class D>
Split64<D> split64(const D& x) {
  auto bits = as_s64(x);
  auto power = (bits - std::int64_t{0x3fe6a09e667f3bcd}) & ~((std::int64_t{1} << 52) - 1);
  return {as_f64(bits - power), to_f64(to_s32(power >> 52))};
}

/// log(x). Pre: x is positive and normal.
template <class D>
D log_normal_f64(const D& x, double bias = 0) {
  Split64<D> split = split64(x);
  D exponent = bias == 0 ? split.exponent : split.exponent + bias;
  D f = split.m - 1.0;
  D s = f / (f + 2.0);
  D z = s * s;
  D half_square = f * f * 0.5;
  D correction = fma(s, fma(z, horner(z, kLogF64), half_square), exponent * kLn2Low64);
  return fma(exponent, kLn2High64, f - (half_square - correction));
}

template <class D>
D log_f64(const D& x) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  auto tiny = x < 0x1p-1022;
  D normal = select(tiny, x * 0x1p+54, x);
  D result = log_normal_f64(normal) - select(tiny, literal<D>(54 * kLn2), 0.0);
  D at_end = fma(x, kInf, kInf);
  return select(x == 0.0, literal<D>(-kInf), select(x > 0.0 && x < kInf, result, at_end));
}

template <class D>
D exp_f64(const D& given) {
  constexpr double kRound = kRoundToInteger64 + 2046;  // twice the exponent's bias
  D bounded = min(max(given, -746.0), 710.0);
  D x = select(given == given, bounded, given);
  D rounded = fma(x, 0x1.71547652b82fep+0, kRound);
  D n = rounded - kRound;
  D r = fma(n, -kLn2Low64, fma(n, -kLn2High64, x));
  D p = fma(r * r, horner(r, kExpF64), r) + 1.0;
  auto exponents = as_s64(rounded);
  auto half = exponents >> 1;
  return p * as_f64(half << 52) * as_f64((exponents - half) << 52);
}

}  // namespace tilewright::lang
