// SPDX-License-Identifier: Apache-2.0
// pow, cbrt, hypot and fmod in f32; polynomials by scripts/minimax.py.
#pragma once

#include "lang/maths_arc.h"
#include "lang/maths_exp.h"
#include "lang/maths_f64.h"
#include "lang/maths_log.h"
#include "lang/maths_number.h"

namespace tilewright::lang {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr double kPowLog2[] = {0x1.71547652b824fp+1, 0x1.ec709dc5409d3p-1, 0x1.2776c28e040b4p-1,
                               0x1.a61a333a0b537p-2, 0x1.479494818ce6dp-2, 0x1.21bc546584c02p-2};

/// One step of Newton's method in extended precision from 2^(log2(x) / 3), whose error, 2^-16 by
/// the bound of lg2.approx, it squares.
template <class N>
N cbrt_f32(const N& x) {
  N magnitude = abs(x);
  auto tiny = magnitude < 0x1p-100f;  // else the residual is subnormal
  N a = select(tiny, magnitude * 0x1p+96f, magnitude);
  N y = exp2_approx(log2_approx(a) * (1 / 3.0f));
  N square = y * y;
  N square_low = fma(y, y, -square);
  N residual = fma(-y, square_low, fma(-y, square, a));
  N root = fma(residual * rcp_approx(square), 1 / 3.0f, y);
  N scaled = select(tiny, root * 0x1p-32f, root);
  auto ordinary = magnitude > 0.0f && magnitude < kInfinity;
  return with_sign(select(ordinary, scaled, magnitude), x);
}

/// 2^(y log2(|x|)), for any y but NaN where |x| is not 1.
template <class N>
N power_of_magnitude(const N& magnitude, const N& y) {
  auto a = to_f64(magnitude);
  auto split = split64(a);
  auto s = (split.m - 1.0) / (split.m + 1.0);
  auto finite = fma(s, horner(s * s, kPowLog2), split.exponent);
  constexpr double kInf = std::numeric_limits<double>::infinity();
  auto from_zero = select(magnitude == 0.0f, literal<F64<N>>(-kInf), finite);
  auto log2_a = select(magnitude == kInfinity, literal<F64<N>>(kInf), from_zero);
  auto exponent = min(max(to_f64(y) * log2_a, -160.0), 160.0);
  constexpr double kRound = kRoundToInteger64 + 254;  // twice the exponent's bias
  auto rounded = exponent + kRound;
  N r = to_f32((exponent - (rounded - kRound)) * kLn2);
  N p = fma(r * r, horner(r, kExp), r) + 1.0f;
  return scaled(p, to_s32(as_s64(rounded))).value();
}

template <class N>
N pow_f32(const N& x, const N& y) {
  N magnitude = abs(x);
  N plain = power_of_magnitude(magnitude, y);
  N power = select(magnitude == 1.0f, literal<N>(1.0f), plain);
  auto huge = abs(y) >= 0x1p+24f;  // an even integer, or an infinity
  auto truncated = to_s32(y);
  auto integer = huge || to_f32(truncated) == y;
  auto odd = integer && !huge && (truncated & 1) != 0;
  N signed_power = select(odd && as_s32(x) < 0, -power, power);
  auto no_root = x < 0.0f && magnitude < kInfinity && !integer;
  auto invalid = no_root || x != x || y != y;
  N valid = select(invalid, literal<N>(kNan), signed_power);
  return select(x == 1.0f || y == 0.0f, literal<N>(1.0f), valid);
}

/// In f64, where squares of f32 are exact and neither overflow nor vanish.
template <class N>
N hypot_f32(const N& x, const N& y) {
  auto wide_x = to_f64(x);
  auto wide_y = to_f64(y);
  N length = to_f32(sqrt(fma(wide_x, wide_x, wide_y * wide_y)));
  auto infinite = abs(x) == kInfinity || abs(y) == kInfinity;
  return select(infinite, literal<N>(kInfinity), length);
}

/// Exact: long division in f64, 28 quotient bits a turn. Each remainder has at most 24 bits beyond
/// the divisor's last place, so that the fma does not round.
template <class N>
N fmod_f32(const N& x, const N& y) {
  auto valid = abs(x) < kInfinity && abs(y) > 0.0f;
  auto divisor = to_f64(select(valid, abs(y), literal<N>(1.0f)));
  auto dividend = to_f64(select(valid, abs(x), literal<N>(0.0f)));
  auto rest = cell(dividend);
  auto divisor_bits = as_s64(divisor);
  repeat_while(
      x, [&] { return rest >= divisor; },
      [&] {
        F64<N> a = rest;
        auto lead = to_s32((as_s64(a) - divisor_bits) >> 52) - 28;
        auto power = to_s64(max(lead, 0)) << 52;
        auto multiple = as_f64(divisor_bits + power);
        auto quotient = to_f64(to_s64(a / multiple));
        auto difference = fma(-quotient, multiple, a);
        rest = select(difference < 0.0, difference + multiple, difference);
      });
  F64<N> remainder = rest;
  return select(valid, with_sign(to_f32(remainder), x), literal<N>(kNan));
}

}  // namespace tilewright::lang
