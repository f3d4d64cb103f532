// SPDX-License-Identifier: Apache-2.0
// lgamma in f64; polynomials by scripts/minimax.py.
#pragma once

#include "lang/maths_f64.h"
#include "lang/maths_number.h"
#include "lang/maths_power_f64.h"

#include <limits>

namespace tilewright::lang {

constexpr double kLgammaF64[] = {
    0x1.b0ee6072093cep-2,  -0x1.9ae6509ea109ep-4,  0x1.0e0c9df293524p-5,   -0x1.95ce223a9d2b8p-7,
    0x1.47974853ac021p-8,  -0x1.145121f955c99p-9,  0x1.dfebcf8cc7fc9p-11,  -0x1.a96a403b80cc9p-12,
    0x1.7ed73413aa789p-13, -0x1.5c86af1fa2478p-14, 0x1.402f01eb3f79ep-15,  -0x1.28511819731b1p-16,
    0x1.13e5742eef0f6p-17, -0x1.0222929fd6834p-18, 0x1.e52eeda634168p-20,  -0x1.cb4955b835e77p-21,
    0x1.b37fd0ffa86bap-22, -0x1.8fb0cd741a1fbp-23, 0x1.776f487a13530p-24,  -0x1.bf21b233ef4c6p-25,
    0x1.c3e8ea5e6487ep-26, -0x1.a942a946b5c7ap-31, -0x1.bc5f4c2f6cd45p-31, -0x1.33d589cb85661p-27,
    0x1.5471cdc1db6f5p-28, 0x1.53b8b848b1916p-29,  -0x1.8062ce76d5f95p-30, -0x1.c2720fe079d11p-31,
    0x1.d41dae6933528p-32};
constexpr double kStirlingF64[] = {
    0x1.5555555555555p-4,  -0x1.6c16c16c10780p-9,  0x1.a01a015b6be28p-11, -0x1.38132e4690655p-11,
    0x1.b91e4ab117994p-11, -0x1.edfd36f3bffc1p-10, 0x1.4203fa5c37481p-8,  0x1.1190817a66193p-10};
constexpr double kSincPiF64[] = {
    0x1.a51a6625307d3p+0,  -0x1.9f9cb402bc46cp-1,  0x1.86a8e4720db2cp-3,
    -0x1.ac6805cf31fd9p-6, 0x1.33816aa2f1fffp-9,   -0x1.3747192a55840p-13,
    0x1.d424067c08ce3p-18, -0x1.0faa8820fbbb6p-22, 0x1.e75de79951159p-28};

/// log|gamma(w)| for w > 2^-60. Up to 3 a polynomial between the zeros at 1 and 2,
/// whose factors are exact; gamma's recurrence brings numbers below 8 there; beyond, Stirling's
/// series.
template <class D>
D lgamma_positive_f64(const D& w) {
  constexpr double kFirst = 8;  // of Stirling's series
  auto below_one = w < 1.0;
  auto recurs = w >= 3.0 && w < kFirst;
  D begin = select(recurs, w - 1.0, select(below_one, w + 1.0, w));
  D factor = select(recurs, begin, literal<D>(1.0));
  auto reduced = cell(begin);
  auto product = cell(factor);
  repeat_while(
      w, [&] { return D(reduced) >= 3.0 && D(reduced) < kFirst; },
      [&] {
        reduced = D(reduced) - 1.0;
        product = D(product) * D(reduced);
      });
  D t = reduced;
  auto small = t < 3.0;
  D logarithm_of = select(small, select(below_one, w, D(product)), w);
  Double64<D> log = log_double_f64<D>(logarithm_of, literal<D>(0.0));
  D factors = select(below_one, w, t - 1.0) * select(below_one, w - 1.0, t - 2.0);
  D near = factors * horner(select(small, t - 2.0, literal<D>(0.0)), kLgammaF64);
  D near_result = select(below_one, near - log.high, near + log.high);
  // (w - 1/2) (log(w) - 1) + (log(2 pi) - 1) / 2 + the series, in double-double up to there
  D rest = log.high - 1.0;
  D rest_low = ((log.high - rest) - 1.0) + log.low;
  D a = w - 0.5;
  D main = a * rest;
  D main_low = fma(a, rest, -main) + a * rest_low;
  D inverse = literal<D>(1.0) / w;
  D series = fma(horner(inverse * inverse, kStirlingF64), inverse, 0x1.acfe390c97d69p-2);
  return select(small, near_result, main + (main_low + series));
}

/// log(pi / (w sin(pi w))), the part of Euler's reflection; infinite where w is an integer.
template <class D>
D reflection_f64(const D& w) {
  D f = abs(w - to_f64(to_s64(w + 0.5)));  // to the nearest integer
  D product = w * f;
  D product_low = fma(w, f, -product);
  D z = f * f;
  D less = z * horner(z, kSincPiF64);
  D sinc = literal<D>(1.0) - less;
  D sinc_low = (literal<D>(1.0) - sinc) - less;
  D all = product * sinc;
  D all_low = fma(product, sinc, -all) + fma(product_low, sinc, product * sinc_low);
  auto integer = f == 0.0;
  D some = select(integer, literal<D>(1.0), all);
  Double64<D> log = log_double_f64<D>(some, literal<D>(0.0));
  D result = -(log.high + (log.low + all_low / some));
  return select(integer, literal<D>(std::numeric_limits<double>::infinity()), result);
}

/// log|gamma(x)|, reflected for x < 0, where the zeros of lgamma keep an absolute error of 2^-49.
template <class D>
D lgamma_f64(const D& x) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  constexpr double kLargest = 0x1.754d9278b51a7p+1014;  // whose lgamma is finite
  constexpr double kIntegers = 0x1p+52;                 // all numbers from here on are
  D w = abs(x);
  auto tiny = w <= 0x1p-60;
  auto far = w >= kIntegers;
  D usual = select(tiny || !(w <= kLargest), literal<D>(1.0), w);
  D positive = lgamma_positive_f64<D>(usual);
  D reflected = reflection_f64<D>(select(far, literal<D>(1.0), usual)) - positive;
  D result = select(x < 0.0, reflected, positive);
  D finite = select(tiny, -log_f64<D>(w), result);
  D at_ends = select(w > kLargest || (x < 0.0 && far), literal<D>(kInf), finite);
  return select(x == x, at_ends, x);
}

}  // namespace tilewright::lang
