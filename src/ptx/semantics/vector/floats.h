// SPDX-License-Identifier: Apache-2.0
// Rules that floating-point instructions share: flushing, saturation, canonical NaN, rounding
// modes.
#pragma once

#include "ptx/semantics/vector/lanes.h"

#ifndef __x86_64__
#include <cfenv>
#endif

namespace tilewright::ptx::semantics::TW_ISA {

constexpr u32 kNanF32 = 0x7fffffffu;

TW_LANE u32 as_bits(float x) { return __builtin_bit_cast(u32, x); }
TW_LANE u64 as_bits(double x) { return __builtin_bit_cast(u64, x); }
TW_LANE float as_float(u32 x) { return __builtin_bit_cast(float, x); }
TW_LANE double as_double(u64 x) { return __builtin_bit_cast(double, x); }

/// .ftz: a subnormal becomes a zero of its sign.
TW_LANE float flush(float x) {
  const u32 bits = as_bits(x);
  return as_float((bits & 0x7f800000u) == 0 ? bits & 0x80000000u : bits);
}
/// f32 instructions return one NaN only.
TW_LANE float canonical(float x) { return x != x ? as_float(kNanF32) : x; }
TW_LANE double canonical(double x) { return x; }
/// .sat: to [0, 1], NaN to +0.
TW_LANE float saturate(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }

template <class T>
TW_LANE bool negative(T x) {
  return (as_bits(x) >> (8 * sizeof(T) - 1)) != 0;
}
/// The smaller or greater one, -0 below +0; one NaN yields the other operand, or NaN with .NaN.
template <class T, bool Greater, bool KeepsNan>
TW_LANE T extremum(T a, T b) {
  const bool first =
      Greater ? (a > b || (a == b && negative(b))) : (a < b || (a == b && negative(a)));
  const T ordered = first ? a : b;
  if (KeepsNan) return canonical(a != a ? a : b != b ? b : ordered);
  return canonical(a != a ? b : b != b ? a : ordered);
}
/// What a result passes through, and what sources do.
template <bool Ftz, bool Sat>
struct F32Rules {
  TW_LANE static float in(float x) { return Ftz ? flush(x) : x; }
  TW_LANE static float out(float x) {
    if (Ftz) x = flush(x);
    return Sat ? saturate(x) : canonical(x);
  }
};

/// Sets the rounding of this thread's arithmetic; the barriers keep the compiler from moving
/// arithmetic on memory's contents across it.
class RoundingScope {
 public:
  explicit RoundingScope(Rounding mode) {
#ifdef __x86_64__
    asm volatile("stmxcsr %0" : "=m"(saved_) : : "memory");
    const u32 field = mode == Rounding::rz   ? 0x6000u
                      : mode == Rounding::rm ? 0x2000u
                      : mode == Rounding::rp ? 0x4000u
                                             : 0u;
    const u32 changed = (saved_ & ~0x6000u) | field;
    asm volatile("ldmxcsr %0" : : "m"(changed) : "memory");
#else
    saved_ = static_cast<u32>(fegetround());
    fesetround(mode == Rounding::rz   ? FE_TOWARDZERO
               : mode == Rounding::rm ? FE_DOWNWARD
               : mode == Rounding::rp ? FE_UPWARD
                                      : FE_TONEAREST);
    asm volatile("" : : : "memory");
#endif
  }
  ~RoundingScope() {
#ifdef __x86_64__
    asm volatile("ldmxcsr %0" : : "m"(saved_) : "memory");
#else
    asm volatile("" : : : "memory");
    fesetround(static_cast<int>(saved_));
#endif
  }
  RoundingScope(const RoundingScope&) = delete;
  RoundingScope& operator=(const RoundingScope&) = delete;

 private:
  u32 saved_ = 0;
};

template <LaneFn Fn, Rounding Mode>
void rounded(const LaneArgs& args) {
  const RoundingScope scope(Mode);
  Fn(args);
}
/// `Fn` rounds to nearest; the same under another rounding mode.
template <LaneFn Fn>
LaneFn with_rounding(Rounding mode) {
  switch (mode) {
    case Rounding::none:
    case Rounding::rn:
      return Fn;
    case Rounding::rz:
      return rounded<Fn, Rounding::rz>;
    case Rounding::rm:
      return rounded<Fn, Rounding::rm>;
    case Rounding::rp:
      return rounded<Fn, Rounding::rp>;
    default:
      return nullptr;
  }
}

/// The exact sum of two doubles rounded to odd: rounding it again to two bits fewer
/// or less rounds once.
/// Pre: round to nearest.
TW_LANE double add_to_odd(double a, double b) {
  const double sum = a + b;
  const double b_part = sum - a;
  const double error = (a - (sum - b_part)) + (b - b_part);
  const u64 bits = as_bits(sum);
  // An even inexact sum moves one step towards the exact value, which is odd. (Written without
  // branches and one-bit values, which would keep loops from becoming vector code.)
  const bool inexact = (error != 0.0) & ((bits & 0x7ff0000000000000) != 0x7ff0000000000000);
  const u64 step = inexact ? ~bits & 1 : 0;
  const bool up = (error > 0.0) == (sum > 0.0);
  return as_double(up ? bits + step : bits - step);
}
/// The same of floats.
TW_LANE float add_to_odd(float a, float b) {
  const float sum = a + b;
  const float b_part = sum - a;
  const float error = (a - (sum - b_part)) + (b - b_part);
  const u32 bits = as_bits(sum);
  const bool inexact = (error != 0.0f) & ((bits & 0x7f800000u) != 0x7f800000u);
  const u32 step = inexact ? ~bits & 1 : 0;
  const bool up = (error > 0.0f) == (sum > 0.0f);
  return as_float(up ? bits + step : bits - step);
}
/// `x` to float, rounded to odd.
TW_LANE float to_odd(double x) {
  const float near = static_cast<float>(x);
  const u32 bits = as_bits(near);
  const double back = static_cast<double>(near);
  const bool inexact = (back != x) & (x == x);
  const u32 step = inexact ? ~bits & 1 : 0;
  const bool up = (x > 0.0 ? x : -x) > (back > 0.0 ? back : -back);
  return as_float(up ? bits + step : bits - step);
}

/// a * b + c rounded once: to nearest, or (`Directed`) in the directed mode that is set.
template <bool Directed>
TW_LANE float fused(float a, float b, float c) {
#if defined(__FMA__) || defined(__aarch64__)
  return __builtin_fmaf(a, b, c);
#else
  // The product is exact in double. To nearest, the sum is rounded to odd first; in the directed
  // modes rounding twice the same way is rounding once.
  const double product = static_cast<double>(a) * static_cast<double>(b);
  const double addend = static_cast<double>(c);
  return static_cast<float>(Directed ? product + addend : add_to_odd(product, addend));
#endif
}
template <bool Directed>
TW_LANE double fused(double a, double b, double c) {
  return __builtin_fma(a, b, c);
}

}  // namespace tilewright::ptx::semantics::TW_ISA
