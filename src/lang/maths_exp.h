// SPDX-License-Identifier: Apache-2.0
// exp, expm1, sinh, cosh, tanh and sigmoid in f32; polynomials by scripts/minimax.py.
#pragma once

#include "lang/maths_number.h"

namespace tilewright::lang {

/// Adding it rounds a number below 2^22 to an integer, which the low bits of the sum then hold.
constexpr float kRoundToInteger = 0x1.8p+23f;
constexpr float kLog2E = 0x1.715476p+0f;
constexpr float kLn2High = 0x1.62e430p-1f;
constexpr float kLn2Low = -0x1.05c610p-29f;  // ln 2 - kLn2High
constexpr float kExp[] = {0x1.fffffcp-2f, 0x1.55548cp-3f, 0x1.555858p-5f, 0x1.123db4p-7f,
                          0x1.6ac264p-10f};
constexpr float kExpm1[] = {0x1.000000p-1f, 0x1.555554p-3f,  0x1.555416p-5f,
                            0x1.1111fep-7f, 0x1.6dfbd6p-10f, 0x1.a03b02p-13f};

/// A product that is rounded once, however small: `significand` is in [0.5, 2].
template <class N>
struct Scaled {
  N significand, scale_a, scale_b;
  N value() const { return significand * scale_a * scale_b; }
};

/// p times 2 to the low bits of `exponents` less 254, which is split in halves.
template <class N, class I>
Scaled<N> scaled(const N& p, const I& exponents) {
  auto half = exponents >> 1;
  return {p, as_f32(half << 23), as_f32((exponents - half) << 23)};
}

/// e^x 2^Shift. Pre: |x| < 128.
template <int Shift, class N>
Scaled<N> exp_scaled(const N& x) {
  constexpr float kRound = kRoundToInteger + 254 + Shift;  // twice the exponent's bias
  N rounded = fma(x, kLog2E, kRound);
  N n = rounded - kRound;
  N r = fma(n, -kLn2Low, fma(n, -kLn2High, x));
  N p = fma(r * r, horner(r, kExp), r) + 1.0f;
  return scaled(p, as_s32(rounded));
}

/// e^(x + tail), more exact. Pre: |x| < 128, |tail| < 2^-16.
template <class N>
Scaled<N> exp_scaled(const N& x, const N& tail) {
  constexpr float kRound = kRoundToInteger + 254;
  N rounded = fma(x, kLog2E, kRound);
  N n = rounded - kRound;
  N r_high = fma(n, -kLn2High, x);  // exact
  N r_low = fma(n, -kLn2Low, tail);
  N r = r_high + r_low;
  N p = (fma(r * r, horner(r, kExp), r_low) + r_high) + 1.0f;
  return scaled(p, as_s32(rounded));
}

template <class N>
N clamp(const N& x, float low, float high) {
  return min(max(x, low, NanMode::propagate), high, NanMode::propagate);
}

template <class N>
N exp_f32(const N& x) {
  return exp_scaled<0>(clamp(x, -104.0f, 89.0f)).value();
}

template <class N>
N expm1_f32(const N& given) {
  constexpr float kRound = kRoundToInteger + 126;  // the bias less 1: 2^128 has no f32
  N x = clamp(given, -30.0f, 89.0f);
  N magnitude = abs(x);
  N rounded = select(magnitude < 0.41f, literal<N>(kRound), fma(x, kLog2E, kRound));
  N n = rounded - kRound;
  N r = fma(n, -kLn2Low, fma(n, -kLn2High, x));
  N p = fma(r * r, horner(r, kExpm1), r);
  N half_scale = as_f32(as_s32(rounded) << 23);
  N result = fma(half_scale, p, half_scale - 0.5f) * 2.0f;
  return select(magnitude < 0x1p-25f, x, result);  // keeps -0 and subnormal numbers
}

constexpr float kSinh[] = {0x1.555556p-3f, 0x1.1110e0p-7f, 0x1.a022bcp-13f, 0x1.756c20p-19f};

template <class N>
N sinh_f32(const N& x) {
  N magnitude = abs(x);
  N half_exp = exp_scaled<-1>(min(magnitude, 90.0f, NanMode::propagate)).value();
  N large = half_exp - 0.25f / half_exp;
  N z = magnitude * magnitude;
  N small = fma(z * magnitude, horner(z, kSinh), magnitude);
  return with_sign(select(magnitude < 1.0f, small, large), x);
}

template <class N>
N cosh_f32(const N& x) {
  N half_exp = exp_scaled<-1>(min(abs(x), 90.0f, NanMode::propagate)).value();
  return half_exp + 0.25f / half_exp;
}

constexpr float kTanh[] = {-0x1.55553cp-2f, 0x1.110be4p-3f, -0x1.b9623ep-5f, 0x1.6009dcp-6f,
                           -0x1.0460c4p-7f, 0x1.2da254p-9f, -0x1.77d0a4p-12f};

/// Above 1 the errors of ex2.approx and rcp.approx (2^-22 and 1 ulp) are damped by
/// 2 e / (1 + e)^2 <= 0.21, with e = exp(2x): at most 1.9 ulp with every rounding.
template <class N>
N tanh_f32(const N& x) {
  N magnitude = abs(x);
  N e = exp2_approx(magnitude * (2 * kLog2E));
  N large = fma(rcp_approx(e + 1.0f), -2.0f, 1.0f);
  N z = magnitude * magnitude;
  N small = fma(z * magnitude, horner(z, kTanh), magnitude);
  return with_sign(select(magnitude < 1.0f, small, large), x);
}

/// e^x / (1 + e^x) where x < 0, so that tails keep their digits down to subnormal numbers.
template <class N>
N sigmoid_f32(const N& x) {
  N e = exp_scaled<0>(max(-abs(x), -104.0f, NanMode::propagate)).value();
  return select(x < 0.0f, e, 1.0f) / (e + 1.0f);
}

}  // namespace tilewright::lang
