// SPDX-License-Identifier: Apache-2.0
// log, log2 and log1p in f32; polynomials by scripts/minimax.py.
#pragma once

#include "lang/maths_exp.h"
#include "lang/maths_number.h"

#include <limits>

namespace tilewright::lang {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kLog[] = {-0x1.000000p-1f, 0x1.5555a6p-2f,  -0x1.000024p-2f,
                          0x1.99685ep-3f,  -0x1.54f234p-3f, 0x1.289776p-3f,
                          -0x1.0d9008p-3f, 0x1.abf990p-4f,  -0x1.6fecb8p-5f};
constexpr float kLog2[] = {-0x1.715470p-1f, 0x1.ec7096p-2f,  -0x1.715a74p-2f,
                           0x1.277e3ap-2f,  -0x1.eabcfap-3f, 0x1.a305aap-3f,
                           -0x1.8748d6p-3f, 0x1.7d474cp-3f,  -0x1.c2622cp-4f};

/// x = m 2^exponent.
template <class N>
struct Split {
  N m, exponent;
};

/// Pre: x is a positive number. Post: m is in [from, 2 from), where `from_bits` are the bits of
/// `from`.
template <class N>
Split<N> split(const N& x, std::int32_t from_bits) {
  auto tiny = x < 0x1p-126f;
  N normal = select(tiny, x * 0x1p+23f, x);
  auto bits = as_s32(normal);
  auto power = (bits - from_bits) & std::int32_t{-0x800000};
  N bias = select(tiny, literal<N>(-23.0f), 0.0f);
  return {as_f32(bits - power), fma(to_f32(power), 0x1p-23f, bias)};
}

/// `result`, or the logarithm of an x that is not a positive number.
template <class N>
N log_special(const N& x, const N& result) {
  N at_end = fma(x, kInfinity, kInfinity);  // +inf, or NaN of x < 0 and NaN
  return select(x == 0.0f, literal<N>(-kInfinity),
                select(as_u32(x) >= 0x7f800000u, at_end, result));
}

template <class N>
N log_f32(const N& x) {
  Split<N> s = split(x, 0x3f400000);  // m from 0.75
  N f = s.m - 1.0f;
  N log_m = fma(f * f, horner(f, kLog), f);
  return log_special(x, fma(s.exponent, kLn2High, log_m));
}

template <class N>
N log2_f32(const N& x) {
  constexpr float kLog2ELow = 0x1.4ae0c0p-26f;  // log2(e) - kLog2E
  Split<N> s = split(x, 0x3f3504f3);            // m from sqrt(1/2)
  N f = s.m - 1.0f;
  N tail = fma(f * f, horner(f, kLog2), f * kLog2ELow);
  return log_special(x, fma(f, kLog2E, tail) + s.exponent);
}

template <class N>
N log1p_f32(const N& x) {
  N u = x + 1.0f;
  auto power = (as_s32(u) - 0x3f400000) & std::int32_t{-0x800000};
  N scale4 = as_f32(0x40800000 - power);   // 4 2^-exponent
  N scaled_x = as_f32(as_s32(x) - power);  // x 2^-exponent; |x| >= 1/4 if the exponent is not 0
  N f = scaled_x + fma(scale4, 0.25f, -1.0f);
  N log_m = fma(f * f, horner(f, kLog), f);
  N result = fma(to_f32(power) * 0x1p-23f, kLn2High, log_m);
  return select(x == 0.0f, x, log_special(u, result));
}

}  // namespace tilewright::lang
