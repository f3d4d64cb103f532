// SPDX-License-Identifier: Apache-2.0
// What the tables of cvt share: how lanes are read, and how integers and floats become each other.
#pragma once

#include "ptx/semantics/vector/formats.h"

namespace tilewright::ptx::semantics::TW_ISA {

template <class T>
struct Native {
  using Element = Store<T>;
  using Value = T;
  TW_LANE static T load(Element bits) { return get<T>(bits); }
};
template <class F>
struct Narrow {
  using Element = u32;
  using Value = float;
  TW_LANE static float load(u32 bits) { return decode<F>(bits); }
};

/// d = Op::apply(load(a)); Op returns the element to store.
template <class Load, class Op>
void convert(const LaneArgs& args) {
  using From = typename Load::Element;
  using To = decltype(Op::apply(typename Load::Value{}));
  const From* a = static_cast<const From*>(__builtin_assume_aligned(args.src[0], 128));
  if (args.mask != kAllLanes) return masked<To>(args, convert<Load, Op>);
  To* out = static_cast<To*>(__builtin_assume_aligned(args.dst[0], 128));
  TW_INDEPENDENT
  for (int i = 0; i < kLanes; ++i)
    out[i] = Op::apply(Load::load(a[i]));
}

template <class T>
struct Limits {
  static constexpr bool kSigned = static_cast<T>(-1) < static_cast<T>(0);
  static constexpr int kDigits = 8 * static_cast<int>(sizeof(T)) - (kSigned ? 1 : 0);
  static constexpr T kMax =
      static_cast<T>(kDigits == 64 ? ~u64{0} : (u64{1} << (kDigits & 63)) - 1);
  static constexpr T kMin = kSigned ? static_cast<T>(-kMax - 1) : T{0};
  /// 2^kDigits, one above kMax.
  static constexpr double kAbove =
      kDigits == 64 ? 18446744073709551616.0 : static_cast<double>(u64{1} << (kDigits & 63));
};

template <Rounding R>
TW_LANE float integral(float x) {
  if constexpr (R == Rounding::rni) return __builtin_rintf(x);
  if constexpr (R == Rounding::rzi) return __builtin_truncf(x);
  if constexpr (R == Rounding::rmi) return __builtin_floorf(x);
  if constexpr (R == Rounding::rpi) return __builtin_ceilf(x);
  return x;
}
template <Rounding R>
TW_LANE double integral(double x) {
  if constexpr (R == Rounding::rni) return __builtin_rint(x);
  if constexpr (R == Rounding::rzi) return __builtin_trunc(x);
  if constexpr (R == Rounding::rmi) return __builtin_floor(x);
  if constexpr (R == Rounding::rpi) return __builtin_ceil(x);
  return x;
}

template <class D, Rounding R, bool Ftz>
struct ToInteger {
  template <class F>
  TW_LANE static Store<D> apply(F x) {
    using L = Limits<D>;
    if constexpr (Ftz) x = static_cast<F>(flush(static_cast<float>(x)));
    const F whole = integral<R>(x);
    const bool below = whole < static_cast<F>(L::kMin);
    const bool above = whole >= static_cast<F>(L::kAbove);
    const bool nan = x != x;
    D value = static_cast<D>(below || above || nan ? F{0} : whole);
    value = below ? L::kMin : above ? L::kMax : value;
    // The manual's value for NaN: 0 unless a 64-bit type takes part.
    constexpr D kNan =
        sizeof(F) == 8 || sizeof(D) == 8 ? static_cast<D>(u64{1} << (8 * sizeof(D) - 1)) : D{0};
    return put<D>(nan ? kNan : value);
  }
};

template <class D, bool Saturates>
struct ToOtherInteger {
  template <class S>
  TW_LANE static Store<D> apply(S a) {
    if constexpr (Saturates) {
      using L = Limits<D>;
      if constexpr (Limits<S>::kSigned) {
        if (static_cast<s64>(a) < static_cast<s64>(L::kMin)) return put<D>(L::kMin);
        if (a > 0 && static_cast<u64>(a) > static_cast<u64>(L::kMax)) return put<D>(L::kMax);
      } else {
        if (static_cast<u64>(a) > static_cast<u64>(L::kMax)) return put<D>(L::kMax);
      }
    }
    return put<D>(static_cast<D>(a));
  }
};

TW_LANE double saturate(double x) { return x > 0.0 ? (x < 1.0 ? x : 1.0) : 0.0; }

/// An integer in the mode that is set; zero is +0 in every mode.
template <class F, bool Sat>
struct IntegerTo {
  template <class S>
  TW_LANE static Store<F> apply(S a) {
    const F x = a == 0 ? F{0} : static_cast<F>(a);
    return put<F>(Sat ? saturate(x) : x);
  }
};

/// A 64-bit integer as a double whose low bit is set if bits were lost: good for 32 bits of
/// precision.
template <class S>
TW_LANE double integer_to_odd(S a) {
  if constexpr (sizeof(S) < 8) {
    return static_cast<double>(a);
  } else {
    const bool negative = a < S{0};
    const u64 magnitude = negative ? u64{0} - static_cast<u64>(a) : static_cast<u64>(a);
    const bool large = (magnitude >> 48) != 0;
    const u64 kept = large ? magnitude >> 16 | ((magnitude & 0xffff) != 0 ? 1u : 0u) : magnitude;
    const double x = static_cast<double>(static_cast<s64>(kept)) * (large ? 65536.0 : 1.0);
    return negative ? -x : x;
  }
}

/// .relu: what is negative becomes +0; NaN stays.
TW_LANE float relu(float x) { return x > 0.0f || x != x ? x : 0.0f; }

/// To f16, bf16 or a narrower format.
template <class F, Rounding R, bool Satfinite = false, bool Relu = false, bool Sat = false,
          bool Ftz = false>
struct ToNarrow {
  TW_LANE static u32 apply(float x) {
    if (Ftz) x = flush(x);
    if (Relu) x = relu(x);
    if (Sat) x = saturate(x);
    return encode<F, R, Satfinite>(x);
  }
  TW_LANE static u32 apply(double x) { return apply(to_odd(x)); }
  template <class S>
  TW_LANE static u32 apply(S a) {
    return apply(to_odd(integer_to_odd(a)));
  }
};
template <Rounding R, bool Satfinite, bool Relu>
struct ToTf32 {
  TW_LANE static u32 apply(float x) { return encode_tf32<R, Satfinite>(Relu ? relu(x) : x); }
};
/// Rounded to an integer in the format itself.
template <class F, Rounding R, bool Sat>
struct NarrowIntegral {
  TW_LANE static u32 apply(float x) {
    const float whole = integral<R>(x);
    return encode<F, Rounding::rn, false>(Sat ? saturate(whole) : whole);
  }
};
/// f32 and f64 results, the conversion rounding in the mode that is set.
template <Rounding R, bool Ftz, bool Sat>
struct ToF32 {
  template <class S>
  TW_LANE static u32 apply(S a) {
    float x = static_cast<float>(a);
    if (Ftz) x = flush(x);
    x = integral<R>(x);
    return as_bits(Sat ? saturate(x) : canonical(x));
  }
};
template <Rounding R, bool Ftz, bool Sat>
struct ToF64 {
  template <class S>
  TW_LANE static u64 apply(S a) {
    if (Ftz) a = static_cast<S>(flush(static_cast<float>(a)));
    const double x = integral<R>(static_cast<double>(a));
    return as_bits(Sat ? saturate(x) : x);
  }
};

LaneFn find_convert_float(const Spec& spec);
LaneFn find_convert_packed(const Spec& spec);

}  // namespace tilewright::ptx::semantics::TW_ISA
