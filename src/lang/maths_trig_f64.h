// SPDX-License-Identifier: Apache-2.0
// sin and cos in f64 with full range reduction; polynomials by scripts/minimax.py.
#pragma once

#include "lang/maths_f64.h"
#include "lang/maths_number.h"

#include <array>
#include <utility>

namespace tilewright::lang {

constexpr double kSinF64[] = {-0x1.5555555555555p-3, 0x1.1111111111069p-7,   -0x1.a01a019ffe514p-13,
                              0x1.71de3a33a2d31p-19, -0x1.ae642c4c95a14p-26, 0x1.6109b9738c42ep-33,
                              -0x1.9ffb30e758d3ep-41};
constexpr double kCosF64[] = {0x1.555555555554bp-5,  -0x1.6c16c16c15005p-10,
                              0x1.a01a019c8c7c6p-16, -0x1.27e4f7ef0d211p-22,
                              0x1.1ee9d9c80f899p-29, -0x1.8fa555f87781cp-37};

/// 64 zero bits, then 1 / (2 pi) from the digit 1/2 on.
constexpr std::uint64_t kTurnsF64[] = {
    0x00000000'00000000, 0x28be60db'9391054a, 0x7f09d5f4'7d4d3770, 0x36d8a566'4f10e410,
    0x7f9458ea'f7aef158, 0x6dc91b8e'909374b8, 0x01924bba'82746487, 0x3f877ac7'2c4a69cf,
    0xba208d7d'4baed121, 0x3a671c09'ad17df90, 0x4e64758e'60d4ce7d, 0x272117e2'ef7e4a0e,
    0xc7fe25ff'f7816603, 0xfbcbc462'd6829b47, 0xdb4d9fb3'c9f2c26d, 0xd3d18fd9'a797fa8b,
    0x5d49eeb1'faf97c5e, 0xcf41ce7d'e294a4ba, 0x9afed7ec'47e35742, 0x1580cc11'bf1edaea};

/// A number as an unevaluated sum, and the quadrant that it is in, of which two bits count.
template <class D, class I>
struct Reduced64 {
  D high, low;
  I quadrant;
};

/// Four words of the table from `word` on: five steps, each by a bit of the index.
template <class D, class U>
auto four_words(const D& x, const U& word) {
  using W = decltype(word64(x, 0));
  auto words = [&]<std::size_t... I>(std::index_sequence<I...>) {
    auto last = (word & 16u) != 0u;
    return std::array<W, 19>{
        (I < 4 ? select(last, word64(x, kTurnsF64[I < 4 ? I + 16 : I]), word64(x, kTurnsF64[I]))
               : word64(x, kTurnsF64[I]))...};
  }
  (std::make_index_sequence<19>());
  auto half = [&]<std::size_t... I>(const auto& from, unsigned step, std::index_sequence<I...>) {
    auto skip = (word & step) != 0u;
    return std::array<W, sizeof...(I)>{select(skip, from[I + step], from[I])...};
  };
  auto eight = half(words, std::integral_constant<unsigned, 8>(), std::make_index_sequence<11>());
  auto four = half(eight, std::integral_constant<unsigned, 4>(), std::make_index_sequence<7>());
  auto two = half(four, std::integral_constant<unsigned, 2>(), std::make_index_sequence<5>());
  return half(two, std::integral_constant<unsigned, 1>(), std::make_index_sequence<4>());
}

/// For 2^20 <= |x|: x times the 192 bits of 1 / (2 pi) that matter for it, as 128 bits of a turn
/// (the algorithm of Payne and Hanek). No f64 is closer to a multiple of pi/2 than 2^-62, so that
/// 64 bits are left in the worst case. Infinities and NaN give NaN.
template <class D>
auto reduce_large_f64(const D& x) {
  auto bits = as_u64(x);
  auto position = to_u32(bits >> 52 & std::uint64_t{2047}) - 1011u;
  auto words = four_words(x, position >> 6);
  auto shift = position & 63u;
  auto window = [&](std::size_t i) {
    return (words[i] << shift) | (words[i + 1] >> (64u - shift));
  };
  auto significand = (bits & ((std::uint64_t{1} << 52) - 1)) | (std::uint64_t{1} << 52);
  auto middle = window(1);
  auto carried = mul_hi(significand, window(2));
  auto low = significand * middle + carried;
  auto zero = word64(x, 0);
  auto carry = select(low < carried, word64(x, 1), zero);
  auto turns = significand * window(0) + mul_hi(significand, middle) + carry;
  auto whole = (turns + (std::uint64_t{1} << 61)) >> 62;
  auto rest = turns - (whole << 62);
  auto below = (rest >> 63) != std::uint64_t{0};
  auto rest_low = select(below, zero - low, low);
  auto borrow = select(below && low != std::uint64_t{0}, word64(x, 1), zero);
  auto rest_high = select(below, zero - rest - borrow, rest);
  D upper = to_f64(rest_high >> 10 << 10);
  D lower = to_f64((rest_high << 54) | (rest_low >> 10)) * 0x1p-54;
  D sum = upper + lower;
  D error = lower - (sum - upper);
  constexpr double kTurn = 0x1.921fb54442d18p-62;  // 2 pi 2^-64 in two parts
  constexpr double kTurnLow = 0x1.1a62633145c07p-116;
  D high = sum * kTurn;
  D rounding = fma(sum, kTurn, -high) + fma(sum, kTurnLow, error * kTurn);
  auto negative = x < 0.0;
  auto flip = (negative && !below) || (!negative && below);
  auto quadrant = to_s32(whole);
  D signed_high = select(flip, -high, high);
  return Reduced64<D, decltype(quadrant)>{fma(x, 0.0, signed_high),
                                          select(flip, -rounding, rounding),
                                          select(negative, -quadrant, quadrant)};
}

/// x = quadrant pi/2 + high + low with |high| <= pi/4.
template <class D>
auto reduce_f64(const D& x) {
  D rounded = fma(x, 0x1.45f306dc9c883p-1, kRoundToInteger64);
  D n = rounded - kRoundToInteger64;
  // pi/2 in three parts. The first product cancels exactly, the second with its error.
  D first = fma(n, -0x1.921fb54442d18p+0, x);
  D product = n * 0x1.1a62633145c07p-54;
  D product_low = fma(n, 0x1.1a62633145c07p-54, -product);
  D near = first - product;
  D near_low = fma(n, 0x1.f1976b7ed8fbcp-110, (first - near) - product - product_low);
  auto near_quadrant = to_s32(as_s64(rounded));
  auto high = cell(near);
  auto low = cell(near_low);
  auto quadrant = cell(near_quadrant);
  rarely(abs(x) >= 0x1p+20, [&] {
    auto far = reduce_large_f64(x);
    high = far.high;
    low = far.low;
    quadrant = far.quadrant;
  });
  return Reduced64<D, decltype(near_quadrant)>{high, low, quadrant};
}

/// sin(quadrant pi/2 + high + low).
template <class D, class I>
D sin_of_quadrant_f64(const D& high, const D& low, const I& quadrant) {
  D z = high * high;
  D sine = high + fma(z * high, horner(z, kSinF64), low * fma(z, -0.5, 1.0));
  D half = z * 0.5;
  D rest = literal<D>(1.0) - half;
  D cosine =
      rest + (((literal<D>(1.0) - rest) - half) + fma(z * z, horner(z, kCosF64), -(high * low)));
  D value = select((quadrant & 1) != 0, cosine, sine);
  return as_f64(as_s64(value) ^ (to_s64(quadrant & 2) << 62));
}

template <class D>
D sin_f64(const D& x) {
  auto reduced = reduce_f64(x);
  D sine = sin_of_quadrant_f64<D>(reduced.high, reduced.low, reduced.quadrant);
  return select(abs(x) < 0x1p-27, x, sine);
}

template <class D>
D cos_f64(const D& x) {
  auto reduced = reduce_f64(x);
  return sin_of_quadrant_f64<D>(reduced.high, reduced.low, reduced.quadrant + 1);
}

}  // namespace tilewright::lang
