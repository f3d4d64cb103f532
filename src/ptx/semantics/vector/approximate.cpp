// SPDX-License-Identifier: Apache-2.0
// Approximate functions: the double-precision value rounded to the type. A GPU's may differ by the
// manual's bound (accuracy.cpp), so no test may compare them bit by bit.
#include "ptx/semantics/vector/formats.h"

namespace tilewright::ptx::semantics::TW_ISA {
namespace {

struct Rcp {
  static double value(double x) { return 1.0 / x; }
};
struct Sqrt {
  static double value(double x) { return __builtin_sqrt(x); }
};
struct Rsqrt {
  static double value(double x) { return 1.0 / __builtin_sqrt(x); }
};
struct Sin {
  static double value(double x) { return __builtin_sin(x); }
};
struct Cos {
  static double value(double x) { return __builtin_cos(x); }
};
struct Lg2 {
  static double value(double x) { return __builtin_log2(x); }
};
struct Ex2 {
  static double value(double x) { return __builtin_exp2(x); }
};
struct Tanh {
  static double value(double x) { return __builtin_tanh(x); }
};

template <class Function, bool Ftz>
struct OnF32 {
  static float apply(float x) {
    if (Ftz) x = flush(x);
    float y = static_cast<float>(Function::value(static_cast<double>(x)));
    if (Ftz) y = flush(y);
    return canonical(y);
  }
};
template <class Function, class F, bool Pair, bool Ftz>
struct OnHalf {
  static u32 half(u32 code) {
    constexpr u32 kExponent = F::kSign - (1u << F::kMan);
    if (Ftz && (code & kExponent) == 0) code &= F::kSign;
    const u32 result = encode<F, Rounding::rn, false>(
        to_odd(Function::value(static_cast<double>(decode<F>(code)))));
    return Ftz && (result & kExponent) == 0 ? result & F::kSign : result;
  }
  static u32 apply(u32 a) {
    return Pair ? half(a & 0xffff) | half(a >> 16) << 16 : half(a & 0xffff);
  }
};

template <class Function>
LaneFn on_f32(const Spec& spec) {
  if (spec.types[0] != Type::f32) return nullptr;
  return spec.has(kFtz) ? map1<OnF32<Function, true>, float, float>
                        : map1<OnF32<Function, false>, float, float>;
}
template <class Function, class F, bool Pair>
LaneFn on_half(const Spec& spec) {
  return spec.has(kFtz) ? map1<OnHalf<Function, F, Pair, true>, u32, u32>
                        : map1<OnHalf<Function, F, Pair, false>, u32, u32>;
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
  static double upper(double x) {
    const u64 bits = as_bits(x) & 0xffffffff00000000;
    const bool subnormal = (bits & 0x7ff0000000000000) == 0;
    return as_double(subnormal ? bits & 0x8000000000000000 : bits);
  }
  static double apply(double x) { return upper(Function::value(upper(x))); }
};
/// rsqrt.approx.f64
struct RsqrtF64 {
  static double apply(double x) { return Rsqrt::value(x); }
};

template <bool Full, bool Ftz>
struct Divide {
  static float apply(float a, float b) {
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
