// SPDX-License-Identifier: Apache-2.0
// Approximate functions: the double-precision value rounded to the type. A GPU's may differ by the
// manual's bound (accuracy.cpp), so no test may compare them bit by bit.
#include "ptx/semantics/vector/formats.h"

namespace tilewright::ptx::semantics::TW_ISA {
namespace {

struct Rcp {
  TW_LANE static double value(double x) { return 1.0 / x; }
};
struct Sqrt {
  TW_LANE static double value(double x) { return __builtin_sqrt(x); }
};
struct Rsqrt {
  TW_LANE static double value(double x) { return 1.0 / __builtin_sqrt(x); }
};
struct Sin {
  TW_LANE static double value(double x) { return __builtin_sin(x); }
};
struct Cos {
  TW_LANE static double value(double x) { return __builtin_cos(x); }
};
// The next three are good to about 2^-50, which vector code reaches where the C library is one call
// a lane: more than enough for one correct rounding to f32 in all but one case of 2^25.

/// 2^x, exact for integers.
TW_LANE double power_of_two(double x) {
  const double limited = x > 1000.0 ? 1000.0 : x < -1000.0 ? -1000.0 : x;
  constexpr double kMagic = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to an integer
  const double shifted = limited + kMagic;
  const double f = (limited - (shifted - kMagic)) * 0.693147180559945309417;  // |f| <= ln(2) / 2
  // The exponential series to f^13 / 13!, whose remainder is below 2^-57.
  double sum = 1.0 / 6227020800.0;
  sum = sum * f + 1.0 / 479001600.0;
  sum = sum * f + 1.0 / 39916800.0;
  sum = sum * f + 1.0 / 3628800.0;
  sum = sum * f + 1.0 / 362880.0;
  sum = sum * f + 1.0 / 40320.0;
  sum = sum * f + 1.0 / 5040.0;
  sum = sum * f + 1.0 / 720.0;
  sum = sum * f + 1.0 / 120.0;
  sum = sum * f + 1.0 / 24.0;
  sum = sum * f + 1.0 / 6.0;
  sum = sum * f + 0.5;
  sum = sum * f + 1.0;
  sum = sum * f + 1.0;
  return sum * as_double((as_bits(shifted) + 1023) << 52);
}
struct Ex2 {
  TW_LANE static double value(double x) { return power_of_two(x); }
};

/// Pre: x is no subnormal double, as no float is.
struct Lg2 {
  TW_LANE static double value(double x) {
    const u64 bits = as_bits(x);
    const u64 mantissa = (bits & 0x000fffffffffffff) | 0x3ff0000000000000;
    const bool large = mantissa > 0x3ff6a09e667f3bcd;  // sqrt(2)
    const double m = as_double(large ? mantissa - 0x0010000000000000 : mantissa);
    const double exponent =
        as_double((bits >> 52) | 0x4330000000000000) -
        (large ? 4503599627371518.0 : 4503599627371519.0);  // 2^52 + 1022 or 1023
    // log(m) = 2 atanh((m - 1) / (m + 1)), the series to s^23: the remainder is below 2^-60.
    const double s = (m - 1.0) / (m + 1.0);
    const double q = s * s;
    double sum = 1.0 / 23.0;
    for (int k = 21; k >= 1; k -= 2)
      sum = sum * q + 1.0 / static_cast<double>(k);
    const double value = exponent + 2.88539008177792681472 * (s * sum);  // 2 / ln(2)
    const double infinity = as_double(0x7ff0000000000000);
    const double checked = x == infinity ? infinity
                           : x > 0.0     ? value
                                         : as_double(0x7ff8000000000000);
    return x == 0.0 ? -infinity : checked;
  }
};

struct Tanh {
  TW_LANE static double value(double x) {
    const double q = x * x;
    const double near_zero =
        x + x * q * (-1.0 / 3.0 + q * (2.0 / 15.0 + q * (-17.0 / 315.0 + q * (62.0 / 2835.0))));
    const double limited = x > 40.0 ? 40.0 : x < -40.0 ? -40.0 : x;
    const double e = power_of_two(limited * 2.88539008177792681472);  // exp(2x)
    const double elsewhere = (e - 1.0) / (e + 1.0);
    return ((x > -0.03) & (x < 0.03)) ? near_zero : elsewhere;
  }
};

template <class Function, bool Ftz>
struct OnF32 {
  TW_LANE static float apply(float x) {
    if (Ftz) x = flush(x);
    float y = static_cast<float>(Function::value(static_cast<double>(x)));
    if (Ftz) y = flush(y);
    return canonical(y);
  }
};
/// Halves by way of float arrays: one loop over all steps would mix widths that GCC does not
/// vectorise.
template <class Function, class F, bool Pair, bool Ftz>
void on_halves(const LaneArgs& args) {
  constexpr unsigned kWarp = kLanes;
  constexpr unsigned kCount = Pair ? 2 * kWarp : kWarp;
  constexpr u32 kExponent = F::kSign - (1u << F::kMan);
  alignas(128) float x[kCount];
  const u32* a = source<u32>(args, 0);
  for (unsigned i = 0; i < kWarp; ++i) {
    const u32 code = a[i] & 0xffff;
    x[i] = decode<F>(Ftz && (code & kExponent) == 0 ? code & F::kSign : code);
  }
  for (unsigned i = kWarp; i < kCount; ++i) {
    const u32 code = a[i - kWarp] >> 16;
    x[i] = decode<F>(Ftz && (code & kExponent) == 0 ? code & F::kSign : code);
  }
  alignas(128) double y[kCount];
  for (unsigned i = 0; i < kCount; ++i)
    y[i] = Function::value(static_cast<double>(x[i]));
  for (unsigned i = 0; i < kCount; ++i)
    x[i] = to_odd(y[i]);
  alignas(128) u32 codes[kCount];
  for (unsigned i = 0; i < kCount; ++i) {
    const u32 code = encode<F, Rounding::rn, false>(x[i]);
    codes[i] = Ftz && (code & kExponent) == 0 ? code & F::kSign : code;
  }
  alignas(128) u32 out[kLanes];
  for (unsigned i = 0; i < kWarp; ++i)
    out[i] = Pair ? codes[i] | codes[i + kCount - kWarp] << 16 : codes[i];
  keep(target<u32>(args), out, args.mask);
}

template <class Function>
LaneFn on_f32(const Spec& spec) {
  if (spec.types[0] != Type::f32) return nullptr;
  return spec.has(kFtz) ? map1<OnF32<Function, true>, float, float>
                        : map1<OnF32<Function, false>, float, float>;
}
template <class Function, class F, bool Pair>
LaneFn on_half(const Spec& spec) {
  return spec.has(kFtz) ? on_halves<Function, F, Pair, true> : on_halves<Function, F, Pair, false>;
}
template <class Function>
LaneFn on_any(const Spec& spec) {
  switch (spec.types[0]) {
    case Type::f32:
      return on_f32<Function>(spec);
    case Type::f16:
      return on_half<Function, F16, false>(spec);
    case Type::f16x2:
      return on_half<Function, F16, true>(spec);
    case Type::bf16:
      return on_half<Function, Bf16, false>(spec);
    case Type::bf16x2:
      return on_half<Function, Bf16, true>(spec);
    default:
      return nullptr;
  }
}

/// rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64 read and write the upper 32 bits alone.
template <class Function>
struct Gross {
  TW_LANE static double upper(double x) {
    const u64 bits = as_bits(x) & 0xffffffff00000000;
    const bool subnormal = (bits & 0x7ff0000000000000) == 0;
    return as_double(subnormal ? bits & 0x8000000000000000 : bits);
  }
  TW_LANE static double apply(double x) { return upper(Function::value(upper(x))); }
};
/// rsqrt.approx.f64
struct RsqrtF64 {
  TW_LANE static double apply(double x) { return Rsqrt::value(x); }
};

template <bool Full, bool Ftz>
struct Divide {
  TW_LANE static float apply(float a, float b) {
    if (Ftz) {
      a = flush(a);
      b = flush(b);
    }
    float quotient = a / b;
    // div.approx multiplies by a reciprocal, which is zero for divisors over 2^126.
    const u32 magnitude = as_bits(b) & 0x7fffffffu;
    if (!Full && magnitude > 0x7e800000u && magnitude < 0x7f800000u) {
      const u32 sign = (as_bits(a) ^ as_bits(b)) & 0x80000000u;
      const bool infinite = (as_bits(a) & 0x7fffffffu) == 0x7f800000u;
      quotient = infinite || a != a ? as_float(kNanF32) : as_float(sign);
    }
    if (Ftz) quotient = flush(quotient);
    return canonical(quotient);
  }
};
template <bool Full>
LaneFn divide(const Spec& spec) {
  if (spec.types[0] != Type::f32) return nullptr;
  return spec.has(kFtz) ? map2<Divide<Full, true>, float, float, float>
                        : map2<Divide<Full, false>, float, float, float>;
}

}  // namespace

LaneFn find_approximate(const Spec& spec) {
  if (!spec.has(kApprox | kFull) || !spec.only(kApprox | kFull | kFtz)) return nullptr;
  if (spec.type_count != 1 || spec.rounding != Rounding::none) return nullptr;
  const bool f64 = spec.types[0] == Type::f64;
  const bool ftz = spec.has(kFtz);
  switch (spec.op) {
    case LaneOp::rcp:
      if (f64) return ftz ? map1<Gross<Rcp>, double, double> : nullptr;
      return on_f32<Rcp>(spec);
    case LaneOp::rsqrt:
      if (f64) return ftz ? map1<Gross<Rsqrt>, double, double> : map1<RsqrtF64, double, double>;
      return on_f32<Rsqrt>(spec);
    case LaneOp::sqrt:
      return on_f32<Sqrt>(spec);
    case LaneOp::sin:
      return on_f32<Sin>(spec);
    case LaneOp::cos:
      return on_f32<Cos>(spec);
    case LaneOp::lg2:
      return on_f32<Lg2>(spec);
    case LaneOp::ex2:
      return on_any<Ex2>(spec);
    case LaneOp::tanh:
      return ftz ? nullptr : on_any<Tanh>(spec);
    case LaneOp::div:
      return spec.has(kFull) ? divide<true>(spec) : divide<false>(spec);
    default:
      return nullptr;
  }
}

}  // namespace tilewright::ptx::semantics::TW_ISA
