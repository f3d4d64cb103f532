// SPDX-License-Identifier: Apache-2.0
// pow in f64: a logarithm in double-double; polynomials by scripts/minimax.py.
#pragma once

#include "lang/maths_f64.h"
#include "lang/maths_number.h"

#include <limits>

namespace tilewright::lang {

constexpr double kLogTailF64[] = {0x1.9999999999995p-2, 0x1.2492492493193p-2, 0x1.c71c71c5570c7p-3,
                                  0x1.745d184609e5ep-3, 0x1.3b135d7c8c3a6p-3, 0x1.11217d7bda242p-3,
                                  0x1.de13ef75147acp-4, 0x1.ec15d00b3cba8p-4};

/// An unevaluated sum whose first part is the nearest f64.
template <class D>
struct Double64 {
  D high, low;
};

/// log(x) to about 2^-64 of itself, x = m 2^bias too. Pre: x is positive and normal.
template <class D>
Double64<D> log_double_f64(const D& x, const D& bias) {
  Split64<D> split = split64(x);
  D exponent = split.exponent + bias;
  D f = split.m - 1.0;
  D t = split.m + 1.0;
  D t_low = split.m - (t - 1.0);
  D s = f / t;
  D s_low = (fma(-s, t, f) - s * t_low) / t;
  D z = s * s;
  D z_low = fma(s, s, -z) + s * s_low * 2.0;
  D tail = z * horner(z, kLogTailF64);
  D c = tail + 0x1.5555555555555p-1;  // 2/3
  D c_low = (literal<D>(0x1.5555555555555p-1) - c) + tail + 0x1.5555555555555p-55;
  D cube = s * z;
  D cube_low = fma(s, z, -cube) + fma(s, z_low, s_low * z);
  D w = cube * c;
  D w_low = fma(cube, c, -w) + fma(cube, c_low, cube_low * c);
  D twice = s * 2.0;
  D of_m = twice + w;
  D of_m_low = (twice - of_m) + w + fma(s_low, 2.0, w_low);
  D whole = exponent * kLn2High64;  // exact
  D sum = whole + of_m;
  D sum_low = (whole - sum) + of_m + fma(exponent, kLn2Low64, of_m_low);
  D high = sum + sum_low;
  return {high, (sum - high) + sum_low};
}

/// |x|^y for any x but NaN and 1, and any y but NaN and 0.
template <class D>
D power_of_magnitude_f64(const D& magnitude, const D& y) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  auto tiny = magnitude < 0x1p-1022;
  Double64<D> log = log_double_f64<D>(select(tiny, magnitude * 0x1p+54, magnitude),
                                      select(tiny, literal<D>(-54.0), literal<D>(0.0)));
  D at_infinity = select(magnitude == kInf, literal<D>(kInf), log.high);
  D log_high = select(magnitude == 0.0, literal<D>(-kInf), at_infinity);
  D product = y * log_high;
  D product_low = fma(y, log_high, -product) + y * log.low;
  D x = min(max(product, -746.0), 710.0);
  D low = select(x == product, product_low, literal<D>(0.0));
  constexpr double kRound = kRoundToInteger64 + 2046;  // twice the exponent's bias
  D rounded = fma(x, 0x1.71547652b82fep+0, kRound);
  D n = rounded - kRound;
  D r = fma(n, -kLn2Low64, fma(n, -kLn2High64, x)) + low;
  D p = fma(r * r, horner(r, kExpF64), r) + 1.0;
  auto exponents = as_s64(rounded);
  auto half = exponents >> 1;
  return p * as_f64(half << 52) * as_f64((exponents - half) << 52);
}

template <class D>
D pow_f64(const D& x, const D& y) {
  D magnitude = abs(x);
  D plain = power_of_magnitude_f64<D>(magnitude, y);
  D power = select(magnitude == 1.0, literal<D>(1.0), plain);
  auto huge = abs(y) >= 0x1p+53;  // an even integer, or an infinity
  auto truncated = to_s64(select(huge || y != y, literal<D>(0.0), y));
  auto integer = huge || to_f64(truncated) == y;
  auto odd = integer && !huge && (truncated & 1) != 0;
  D signed_power = select(odd && as_s64(x) < 0, -power, power);
  auto no_root = x < 0.0 && magnitude < std::numeric_limits<double>::infinity() && !integer;
  auto invalid = no_root || x != x || y != y;
  D valid = select(invalid, literal<D>(std::numeric_limits<double>::quiet_NaN()), signed_power);
  return select(x == 1.0 || y == 0.0, literal<D>(1.0), valid);
}

}  // namespace tilewright::lang
