// SPDX-License-Identifier: Apache-2.0
// sin, cos and tan in f32 with full range reduction; polynomials by scripts/minimax.py.
#pragma once

#include "lang/maths_exp.h"
#include "lang/maths_number.h"

namespace tilewright::lang {

constexpr float kSin[] = {-0x1.555546p-3f, 0x1.110776p-7f, -0x1.9952c6p-13f};
constexpr float kCos[] = {-0x1.000000p-1f, 0x1.55554ap-5f, -0x1.6c0c28p-10f, 0x1.99e7f2p-16f};
constexpr float kTan[] = {0x1.555560p-2f, 0x1.110d82p-3f,  0x1.bade36p-5f, 0x1.5c96f4p-6f,
                          0x1.6396f6p-7f, 0x1.207398p-14f, 0x1.1f7e32p-8f};

/// Windows of 128 bits into 1 / (2 pi), 32 zero bits before the binary point's digits, from each
/// 32nd bit on: the high halves are 0 to 4, the low ones 2 to 6.
constexpr std::uint64_t kTurns[] = {0x00000000'28be60db, 0x28be60db'9391054a, 0x9391054a'7f09d5f4,
                                    0x7f09d5f4'7d4d3770, 0x7d4d3770'36d8a566, 0x36d8a566'4f10e410,
                                    0x4f10e410'7f9458ea};

/// x mod 2 pi in units of 2^-64 turns, as a wrapping number. Pre: 2^17 <= |x| < infinity.
/// The window holds the digits that meet x's significand: those before give whole turns, and those
/// after less than 2^-72 of one (the algorithm of Payne and Hanek).
template <class N>
auto turns_of_large(const N& x) {
  auto bits = as_u32(x);
  auto position = ((bits >> 23) & 255u) - 118u;  // in the table, of the digit worth 1 ulp of x
  auto word = position >> 5;
  auto shift = position & 31u;
  auto window = [&](int from) {
    auto w = word64(x, kTurns[from]);
    auto w1 = select(word == 1u, word64(x, kTurns[from + 1]), w);
    auto w2 = select(word == 2u, word64(x, kTurns[from + 2]), w1);
    auto w3 = select(word == 3u, word64(x, kTurns[from + 3]), w2);
    return select(word == 4u, word64(x, kTurns[from + 4]), w3);
  };
  auto high = window(0);
  auto low = window(2);
  auto high_digits = (high << shift) | (low >> (64u - shift));
  auto significand = to_u64((bits & 0x7fffffu) | 0x800000u);
  auto turns = significand * high_digits + mul_hi(significand, low << shift);
  return select(x < 0.0f, word64(x, 0) - turns, turns);
}

/// x = quadrant pi/2 + r with |r| <= pi/4; the quadrant counts in its two low bits.
template <class N>
auto quadrant_of(const N& x) {
  constexpr float kTwoOverPi = 0x1.45f306p-1f;
  N rounded = fma(x, kTwoOverPi, kRoundToInteger);
  N n = rounded - kRoundToInteger;
  // pi/2 in three positive parts, so that -0 stays. The first product cancels exactly.
  N r1 = fma(n, -0x1.921fb4p+0f, x);
  N r2 = fma(n, -0x1.4442d0p-24f, r1);
  N r3 = fma(n, -0x1.84698ap-48f, r2);
  auto r = cell(r3);
  auto n_low = as_s32(rounded);
  auto quadrant = cell(n_low);
  rarely(abs(x) >= 0x1p+17f, [&] {
    auto turns = turns_of_large(x);
    auto whole = (turns + (std::uint64_t{1} << 61)) >> 62;
    auto rest = to_f64(as_s64(turns - (whole << 62))) * 0x1.921fb54442d18p-62;  // 2 pi 2^-64
    quadrant = to_s32(whole);
    r = fma(x, 0.0f, to_f32(rest));  // NaN for an infinity
  });
  struct Result {
    N r;
    decltype(n_low) quadrant;
  };
  return Result{r, quadrant};
}

/// sin(quadrant pi/2 + r).
template <class N, class I>
N sin_of_quadrant(const N& r, const I& quadrant) {
  auto odd = (quadrant & 1) != 0;
  N z = r * r;
  N first = select(odd, literal<N>(1.0f), r);
  N p2 = select(odd, fma(z, kCos[3], kCos[2]), kSin[2]);
  N p1 = fma(z, p2, select(odd, literal<N>(kCos[1]), kSin[1]));
  N p0 = fma(z, p1, select(odd, literal<N>(kCos[0]), kSin[0]));
  N sine = fma(p0, fma(z, first, 0.0f), first);  // the 0 turns -0 to 0, for sin(-0) = -0
  return as_f32(as_s32(sine) ^ ((quadrant & 2) << 30));
}

template <class N>
N sin_f32(const N& x) {
  auto reduced = quadrant_of(x);
  return sin_of_quadrant<N>(reduced.r, reduced.quadrant);
}

template <class N>
N cos_f32(const N& x) {
  auto reduced = quadrant_of(x);
  return sin_of_quadrant<N>(reduced.r, reduced.quadrant + 1);
}

template <class N>
N tan_f32(const N& x) {
  auto reduced = quadrant_of(x);
  const N& r = reduced.r;
  N z = r * r;
  N tangent = fma(z * r, horner(z, kTan), r);
  return select((reduced.quadrant & 1) != 0, literal<N>(-1.0f) / tangent, tangent);
}

}  // namespace tilewright::lang
