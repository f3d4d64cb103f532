// SPDX-License-Identifier: Apache-2.0
// asin, acos, atan and atan2 in f32; polynomials by scripts/minimax.py.
#pragma once

#include "lang/maths_log.h"
#include "lang/maths_number.h"

namespace tilewright::lang {

constexpr float kPi = 0x1.921fb6p+1f;
constexpr float kHalfPi = 0x1.921fb6p+0f;
constexpr float kHalfPiLow = -0x1.777a5cp-25f;  // pi/2 - kHalfPi
constexpr float kAsin[] = {0x1.5555c8p-3f, 0x1.330208p-4f, 0x1.747b46p-5f, 0x1.8c43f6p-6f,
                           0x1.595572p-5f};
constexpr float kAtan[] = {-0x1.55553ep-2f, 0x1.9991e4p-3f,  -0x1.24208cp-3f,
                           0x1.c08d1cp-4f,  -0x1.580e22p-4f, 0x1.da4cecp-5f,
                           -0x1.fdfe18p-6f, 0x1.65071cp-7f,  -0x1.d5b718p-10f};

/// asin(s) where s = |x|, or sqrt((1 - |x|) / 2) if |x| > 1/2: then pi/2 - asin(|x|) is its double.
template <class N>
struct ArcSine {
  N magnitude;
  N angle;
};

template <class N>
ArcSine<N> arc_sine(const N& x) {
  N magnitude = abs(x);
  N half_rest = fma(magnitude, -0.5f, 0.5f);
  auto large = magnitude > 0.5f;
  N z = select(large, half_rest, magnitude * magnitude);
  N s = select(large, sqrt(half_rest), magnitude);
  return {magnitude, fma(z * s, horner(z, kAsin), s)};
}

template <class N>
N asin_f32(const N& x) {
  ArcSine<N> arc = arc_sine(x);
  N large = fma(arc.angle, -2.0f, kHalfPiLow) + kHalfPi;
  return with_sign(select(arc.magnitude > 0.5f, large, arc.angle), x);
}

template <class N>
N acos_f32(const N& x) {
  ArcSine<N> arc = arc_sine(x);
  auto large = arc.magnitude > 0.5f;
  N angle = with_sign(arc.angle, x);
  N base = select(large, select(x < 0.0f, literal<N>(kPi), 0.0f), kHalfPi);
  return fma(angle, select(large, literal<N>(2.0f), -1.0f), base);
}

/// atan(u) for u in [0, 1].
template <class N>
N arc_tangent(const N& u) {
  N z = u * u;
  return fma(z * u, horner(z, kAtan), u);
}

template <class N>
N atan_f32(const N& x) {
  N magnitude = abs(x);
  auto large = magnitude > 1.0f;
  N angle = arc_tangent<N>(select(large, literal<N>(1.0f) / magnitude, magnitude));
  return with_sign(select(large, literal<N>(kHalfPi) - angle, angle), x);
}

template <class N>
N atan2_f32(const N& y, const N& x) {
  N ay = abs(y);
  N ax = abs(x);
  N larger = max(max(ay, ax), 0x1p-149f);  // so that 0 / 0 is 0
  N smaller = min(ay, ax);
  N ratio = select(smaller == kInfinity, literal<N>(1.0f), smaller / larger);
  N octant = arc_tangent(ratio);
  N quadrant = select(ay > ax, literal<N>(kHalfPi) - octant, octant);
  N angle = select(as_s32(x) < 0, literal<N>(kPi) - quadrant, quadrant);
  N sum = ax + ay;
  return select(sum == sum, with_sign(angle, y), sum);
}

}  // namespace tilewright::lang
