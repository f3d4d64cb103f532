// SPDX-License-Identifier: Apache-2.0
// Exact f32 and f64 arithmetic, lane by lane, in every rounding mode.
#include "ptx/semantics/vector/floats.h"

namespace tilewright::ptx::semantics::TW_ISA {
namespace {

struct F64Rules {
  TW_LANE static double in(double x) { return x; }
  TW_LANE static double out(double x) { return x; }
};

template <class R, class T>
struct Add {
  TW_LANE static T apply(T a, T b) { return R::out(R::in(a) + R::in(b)); }
};
template <class R, class T>
struct Sub {
  TW_LANE static T apply(T a, T b) { return R::out(R::in(a)-R::in(b)); }
};
template <class R, class T>
struct Mul {
  TW_LANE static T apply(T a, T b) { return R::out(R::in(a)*R::in(b)); }
};
template <class R, class T>
struct Div {
  TW_LANE static T apply(T a, T b) { return R::out(R::in(a) / R::in(b)); }
};
template <class R, class T>
struct Rcp {
  TW_LANE static T apply(T a) { return R::out(T{1} / R::in(a)); }
};
template <class R, class T>
struct Sqrt {
  TW_LANE static T apply(T a) {
    if constexpr (sizeof(T) == 4) return R::out(__builtin_sqrtf(R::in(a)));
    return R::out(static_cast<T>(__builtin_sqrt(static_cast<double>(R::in(a)))));
  }
};
template <class R, class T>
struct FmaNearest {
  TW_LANE static T apply(T a, T b, T c) {
    return R::out(fused<false>(R::in(a), R::in(b), R::in(c)));
  }
};
template <class R, class T>
struct FmaDirected {
  TW_LANE static T apply(T a, T b, T c) {
    return R::out(fused<true>(R::in(a), R::in(b), R::in(c)));
  }
};

template <template <class, class> class F, class R, class T>
constexpr LaneFn kUnary = map1<F<R, T>, T, T>;
template <template <class, class> class F, class R, class T>
constexpr LaneFn kBinary = map2<F<R, T>, T, T, T>;

template <template <class, class> class F>
LaneFn unary(const Spec& spec) {
  if (spec.types[0] == Type::f64) {
    return spec.only(0) ? with_rounding<kUnary<F, F64Rules, double>>(spec.rounding) : nullptr;
  }
  if (!spec.only(kFtz)) return nullptr;
  return spec.has(kFtz) ? with_rounding<kUnary<F, F32Rules<true, false>, float>>(spec.rounding)
                        : with_rounding<kUnary<F, F32Rules<false, false>, float>>(spec.rounding);
}
template <template <class, class> class F>
LaneFn binary(const Spec& spec) {
  if (spec.types[0] == Type::f64) {
    return spec.only(0) ? with_rounding<kBinary<F, F64Rules, double>>(spec.rounding) : nullptr;
  }
  switch (spec.flags) {
    case 0:
      return with_rounding<kBinary<F, F32Rules<false, false>, float>>(spec.rounding);
    case kFtz:
      return with_rounding<kBinary<F, F32Rules<true, false>, float>>(spec.rounding);
    case kSat:
      return with_rounding<kBinary<F, F32Rules<false, true>, float>>(spec.rounding);
    case kFtz | kSat:
      return with_rounding<kBinary<F, F32Rules<true, true>, float>>(spec.rounding);
    default:
      return nullptr;
  }
}
template <class R, class T>
LaneFn fma_rounded(Rounding mode) {
  switch (mode) {
    case Rounding::none:
    case Rounding::rn:
      return map3<FmaNearest<R, T>, T, T, T, T>;
    default:
      return with_rounding<map3<FmaDirected<R, T>, T, T, T, T>>(mode);
  }
}
LaneFn multiply_add(const Spec& spec) {
  if (spec.types[0] == Type::f64) {
    return spec.only(0) ? fma_rounded<F64Rules, double>(spec.rounding) : nullptr;
  }
  switch (spec.flags) {
    case 0:
      return fma_rounded<F32Rules<false, false>, float>(spec.rounding);
    case kFtz:
      return fma_rounded<F32Rules<true, false>, float>(spec.rounding);
    case kSat:
      return fma_rounded<F32Rules<false, true>, float>(spec.rounding);
    case kFtz | kSat:
      return fma_rounded<F32Rules<true, true>, float>(spec.rounding);
    default:
      return nullptr;
  }
}

/// neg and abs work on the sign bit, NaN included.
template <class T, bool Ftz, bool Negates>
struct ChangeSign {
  TW_LANE static T apply(T a) {
    constexpr T kSign = T{1} << (8 * sizeof(T) - 1);
    if constexpr (Ftz) a = as_bits(flush(as_float(a)));
    return Negates ? a ^ kSign : a & ~kSign;
  }
};
template <bool Negates>
LaneFn change_sign(const Spec& spec) {
  if (spec.types[0] == Type::f64) {
    return spec.only(0) ? map1<ChangeSign<u64, false, Negates>, u64, u64> : nullptr;
  }
  if (!spec.only(kFtz)) return nullptr;
  return spec.has(kFtz) ? map1<ChangeSign<u32, true, Negates>, u32, u32>
                        : map1<ChangeSign<u32, false, Negates>, u32, u32>;
}

template <bool Greater, bool KeepsNan, bool Ftz, bool Xorsign>
struct ExtremumF32 {
  TW_LANE static float apply(float a, float b) {
    if (Ftz) {
      a = flush(a);
      b = flush(b);
    }
    if constexpr (!Xorsign) return extremum<float, Greater, KeepsNan>(a, b);
    const u32 sign = (as_bits(a) ^ as_bits(b)) & 0x80000000u;
    const float magnitude = extremum<float, Greater, KeepsNan>(as_float(as_bits(a) & 0x7fffffffu),
                                                               as_float(as_bits(b) & 0x7fffffffu));
    return magnitude != magnitude ? magnitude : as_float(as_bits(magnitude) | sign);
  }
};
template <bool Greater>
struct ExtremumF64 {
  TW_LANE static double apply(double a, double b) { return extremum<double, Greater, false>(a, b); }
};
template <bool Greater, bool KeepsNan>
LaneFn extremum_f32(const Spec& spec) {
  const bool ftz = spec.has(kFtz);
  if (spec.has(kXorsignAbs)) {
    return ftz ? map2<ExtremumF32<Greater, KeepsNan, true, true>, float, float, float>
               : map2<ExtremumF32<Greater, KeepsNan, false, true>, float, float, float>;
  }
  return ftz ? map2<ExtremumF32<Greater, KeepsNan, true, false>, float, float, float>
             : map2<ExtremumF32<Greater, KeepsNan, false, false>, float, float, float>;
}
template <bool Greater, bool KeepsNan, bool Ftz, bool Abs>
struct ExtremumOfThree {
  TW_LANE static float in(float x) {
    if (Ftz) x = flush(x);
    return Abs ? as_float(as_bits(x) & 0x7fffffffu) : x;
  }
  TW_LANE static float apply(float a, float b, float c) {
    const float first = extremum<float, Greater, KeepsNan>(in(a), in(b));
    return extremum<float, Greater, KeepsNan>(first, in(c));
  }
};
template <bool Greater, bool KeepsNan, bool Ftz>
LaneFn extremum_of_three(bool magnitudes) {
  return magnitudes
             ? map3<ExtremumOfThree<Greater, KeepsNan, Ftz, true>, float, float, float, float>
             : map3<ExtremumOfThree<Greater, KeepsNan, Ftz, false>, float, float, float, float>;
}
template <bool Greater>
LaneFn find_extremum_of_three(const Spec& spec) {
  if (spec.types[0] != Type::f32 || !spec.only(kFtz | kNan | kAbs)) return nullptr;
  const bool abs = spec.has(kAbs);
  if (spec.has(kNan)) {
    return spec.has(kFtz) ? extremum_of_three<Greater, true, true>(abs)
                          : extremum_of_three<Greater, true, false>(abs);
  }
  return spec.has(kFtz) ? extremum_of_three<Greater, false, true>(abs)
                        : extremum_of_three<Greater, false, false>(abs);
}
template <bool Greater>
LaneFn find_extremum(const Spec& spec) {
  if (spec.sources == 3) return find_extremum_of_three<Greater>(spec);
  if (spec.types[0] == Type::f64) {
    return spec.only(0) ? map2<ExtremumF64<Greater>, double, double, double> : nullptr;
  }
  if (!spec.only(kFtz | kNan | kXorsignAbs)) return nullptr;
  return spec.has(kNan) ? extremum_f32<Greater, true>(spec) : extremum_f32<Greater, false>(spec);
}

/// copysign d, a, b: the magnitude of b with the sign of a.
template <class T>
struct CopySign {
  TW_LANE static T apply(T a, T b) {
    constexpr T kSign = T{1} << (8 * sizeof(T) - 1);
    return (a & kSign) | (b & ~kSign);
  }
};

template <class T, Mode M>
void test_property(const LaneArgs& args) {
  const T* a = source<T>(args, 0);
  constexpr T kExponent = sizeof(T) == 4 ? T{0x7f800000} : static_cast<T>(0x7ff0000000000000);
  constexpr T kMantissa = (sizeof(T) == 4 ? T{0x00800000} : static_cast<T>(0x0010000000000000)) - 1;
  u32 mask = 0;
  for (int i = 0; i < kLanes; ++i) {
    const T exponent = a[i] & kExponent;
    const T mantissa = a[i] & kMantissa;
    const bool holds = M == Mode::finite       ? exponent != kExponent
                       : M == Mode::infinite   ? exponent == kExponent && mantissa == 0
                       : M == Mode::number     ? exponent != kExponent || mantissa == 0
                       : M == Mode::notanumber ? exponent == kExponent && mantissa != 0
                       : M == Mode::normal
                           ? exponent != kExponent && (exponent != 0 || mantissa == 0)
                           : exponent == 0 && mantissa != 0;
    mask |= holds ? kBit[i] : 0u;
  }
  keep_predicate(args, 0, mask);
}
template <class T>
LaneFn find_test(Mode mode) {
  switch (mode) {
    case Mode::finite:
      return test_property<T, Mode::finite>;
    case Mode::infinite:
      return test_property<T, Mode::infinite>;
    case Mode::number:
      return test_property<T, Mode::number>;
    case Mode::notanumber:
      return test_property<T, Mode::notanumber>;
    case Mode::normal:
      return test_property<T, Mode::normal>;
    case Mode::subnormal:
      return test_property<T, Mode::subnormal>;
    default:
      return nullptr;
  }
}

}  // namespace

LaneFn find_float(const Spec& spec) {
  const Type type = spec.types[0];
  if ((type != Type::f32 && type != Type::f64) || spec.type_count != 1) return nullptr;
  if (spec.has(kApprox | kFull)) return nullptr;
  const bool f64 = type == Type::f64;
  switch (spec.op) {
    case LaneOp::add:
      return binary<Add>(spec);
    case LaneOp::sub:
      return binary<Sub>(spec);
    case LaneOp::mul:
      return binary<Mul>(spec);
    case LaneOp::div:
      return spec.rounding == Rounding::none || spec.has(kSat) ? nullptr : binary<Div>(spec);
    case LaneOp::rcp:
      return spec.rounding == Rounding::none ? nullptr : unary<Rcp>(spec);
    case LaneOp::sqrt:
      return spec.rounding == Rounding::none ? nullptr : unary<Sqrt>(spec);
    case LaneOp::mad:
    case LaneOp::fma:
      return multiply_add(spec);
    case LaneOp::neg:
      return change_sign<true>(spec);
    case LaneOp::abs:
      return change_sign<false>(spec);
    case LaneOp::min:
      return find_extremum<false>(spec);
    case LaneOp::max:
      return find_extremum<true>(spec);
    case LaneOp::copysign:
      if (!spec.only(0)) return nullptr;
      return f64 ? map2<CopySign<u64>, u64, u64, u64> : map2<CopySign<u32>, u32, u32, u32>;
    case LaneOp::testp:
      return f64 ? find_test<u64>(spec.mode) : find_test<u32>(spec.mode);
    default:
      return nullptr;
  }
}

}  // namespace tilewright::ptx::semantics::TW_ISA
