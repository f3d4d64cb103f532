// SPDX-License-Identifier: Apache-2.0
// lgamma in f32, computed in f64; polynomials by scripts/minimax.py.
#pragma once

#include "lang/maths_f64.h"
#include "lang/maths_log.h"
#include "lang/maths_number.h"

namespace tilewright::lang {

constexpr double kStirling[] = {0x1.5555555555545p-4,  -0x1.6c16c16b2d306p-9,
                                0x1.a019fa34cd27cp-11, -0x1.380d075b46bcap-11,
                                0x1.b68cdfc361173p-11, -0x1.ac40832862234p-10};
constexpr double kSinPi[] = {0x1.921fb54442d17p+1,  -0x1.4abbce625bd26p+2, 0x1.466bc6774f2c4p+1,
                             -0x1.32d2cce0c22a0p-1, 0x1.507832039c62fp-4,  -0x1.e30608be6abfdp-8,
                             0x1.e897c379de654p-12, -0x1.61ffd026136d9p-16};

/// log|gamma(x)| by Stirling's series for v = |x| + 8 (or |x| from 8 on), gamma's recurrence down
/// to |x|, and Euler's reflection for x < 0. In f64, so that the zeros of lgamma keep their digits.
template <class N>
N lgamma_f32(const N& x) {
  using D = F64<N>;
  N magnitude = abs(x);
  D w = to_f64(magnitude);
  auto small = magnitude < 8.0f;
  // w (w + 1) ... (w + 7), in pairs w (w + 7), (w + 1) (w + 6), ...
  D pair = fma(w, w, w * 7.0);
  D product = pair * (pair + 6.0) * ((pair + 10.0) * (pair + 12.0));
  D v = select(small, w + 8.0, w);
  D inverse = literal<D>(1.0) / v;
  D series =
      fma(horner(inverse * inverse, kStirling), inverse, 0x1.d67f1c864beb5p-1 /* log(2 pi) / 2 */);
  D stirling = fma(v - 0.5, log_normal_f64(v), series - v);
  D below = select(small, product, literal<D>(1.0));
  D f = w - ((w + 0x1.8p+52) - 0x1.8p+52);  // to the nearest integer; any |x| < 2^51
  D sine = abs(f * horner(f * f, kSinPi));
  auto negative = x < 0.0f;
  D reflected = below * 0x1.921fb54442d18p+1 / (w * sine);
  D log_rest = log_normal_f64(select(negative, reflected, below));
  N result = to_f32(select(negative, log_rest - stirling, stirling - log_rest));
  auto pole = magnitude == 0.0f || magnitude == kInfinity ||
              (negative && (f == 0.0 || magnitude >= 0x1p+23f));
  N at_zero = select(x == 1.0f || x == 2.0f, literal<N>(0.0f), result);
  return select(pole, literal<N>(kInfinity), at_zero);
}

}  // namespace tilewright::lang
