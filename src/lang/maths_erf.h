// SPDX-License-Identifier: Apache-2.0
// erf and erfc in f32; polynomials by scripts/minimax.py.
#pragma once

#include "lang/maths_exp.h"
#include "lang/maths_number.h"

namespace tilewright::lang {

constexpr float kErf[] = {0x1.06eba8p-3f, -0x1.81273ep-2f,  0x1.ce2ce6p-4f, -0x1.b7f71ap-6f,
                          0x1.53f224p-8f, -0x1.a35c64p-11f, 0x1.47cf0ap-14f};
constexpr float kLog2Erfc[] = {-0x1.a0c8bap+0f, -0x1.d5c746p-1f,  -0x1.34733ap-3f,
                               0x1.fc9082p-6f,  -0x1.77af2ap-9f,  -0x1.4526c4p-11f,
                               0x1.259544p-12f, -0x1.71cee2p-15f, 0x1.6d0e04p-19f};

/// Above 1 it is 1 - 2^p(|x|), where the error of ex2.approx, 2^-22, is multiplied by
/// erfc(1) / erf(1) = 0.187.
template <class N>
N erf_f32(const N& x) {
  N magnitude = abs(x);
  N a = min(magnitude, 4.0f, NanMode::propagate);
  N large = literal<N>(1.0f) - exp2_approx(a * horner(a, kLog2Erfc));
  N small = fma(magnitude, horner(magnitude * magnitude, kErf), magnitude);
  return with_sign(select(magnitude < 1.0f, small, large), x);
}

constexpr float kErfc[] = {0x1.6e9828p-3f,   -0x1.2d8830p-3f, 0x1.92eddep-4f,   -0x1.a7e42ep-5f,
                           0x1.4665a4p-6f,   -0x1.2505f4p-8f, -0x1.af3d12p-13f, 0x1.08f480p-11f,
                           -0x1.484798p-14f, -0x1.6fa3dap-15f};

constexpr float kErfSmall[] = {0x1.06eb72p-3f, -0x1.812374p-2f, 0x1.cd943cp-4f, -0x1.ae12dep-6f,
                               0x1.0ade4ap-8f};

/// Above 3/4 e^(-a^2) (1 - q) h(q) with q = (a - 3) / (a + 3) and a = |x|, where the square keeps
/// its low half.
template <class N>
N erfc_f32(const N& x) {
  N a = min(abs(x), 10.1f, NanMode::propagate);  // beyond, less than half a subnormal number
  N square = a * a;
  N tail = -fma(a, a, -square);
  Scaled<N> e = exp_scaled<N>(-square, tail);
  N divisor = a + 3.0f;
  N divisor_low = a - (divisor - 3.0f);
  N dividend = a - 3.0f;
  N inverse = literal<N>(1.0f) / divisor;
  N q_near = dividend * inverse;
  N q_rest = fma(-divisor_low, q_near, fma(-divisor, q_near, dividend));
  N q = fma(q_rest, inverse, q_near);
  N h = horner(q, kErfc);
  N ratio = fma(-h, q, h);
  N upper = Scaled<N>{e.significand * ratio, e.scale_a, e.scale_b}.value();
  N large = select(x < 0.0f, literal<N>(2.0f) - upper, upper);
  N small = literal<N>(1.0f) - fma(x, horner(square, kErfSmall), x);
  return select(a < 0.75f, small, large);
}

}  // namespace tilewright::lang
