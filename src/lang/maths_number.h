// SPDX-License-Identifier: Apache-2.0
// The number types that the maths functions are written over: Value when traced, Host on the CPU.
#pragma once

#include "lang/tracer.h"
#include "tilewright/control.h"
#include "tilewright/value.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

/// Each function of maths_*.h is a template over `N`, one sequence of operations for both: traced
/// it is PTX, on the host it is what that PTX computes, bit for bit but for the approximations.
namespace tilewright::lang {

/// A number of the host with the operations that PTX has on the type. Integers wrap; a shift by
/// the width or more gives 0 (PTX ISA, shl and shr).
template <class T>
struct Host {
  T v{};
  Host(T value) : v(value) {}  // NOLINT(google-explicit-constructor): literals convert

  friend Host operator+(Host a, Host b) {
    return wrap(a, b, [](auto x, auto y) { return x + y; });
  }
  friend Host operator-(Host a, Host b) {
    return wrap(a, b, [](auto x, auto y) { return x - y; });
  }
  friend Host operator*(Host a, Host b) {
    return wrap(a, b, [](auto x, auto y) { return x * y; });
  }
  friend Host operator/(Host a, Host b) { return a.v / b.v; }
  friend Host operator-(Host a) {
    if constexpr (std::is_floating_point_v<T>) return -a.v;
    return Host(0) - a;
  }
  friend Host operator&(Host a, Host b) { return a.v & b.v; }
  friend Host operator|(Host a, Host b) { return a.v | b.v; }
  friend Host operator^(Host a, Host b) { return a.v ^ b.v; }
  friend Host operator<<(Host a, Host<std::uint32_t> n) {
    using U = std::make_unsigned_t<T>;
    return n.v < 8 * sizeof(T) ? static_cast<T>(static_cast<U>(a.v) << n.v) : T{0};
  }
  friend Host operator>>(Host a, Host<std::uint32_t> n) {
    return static_cast<T>(n.v < 8 * sizeof(T) ? a.v >> n.v : T{0});
  }
  friend Host<bool> operator<(Host a, Host b) { return a.v < b.v; }
  friend Host<bool> operator>(Host a, Host b) { return a.v > b.v; }
  friend Host<bool> operator<=(Host a, Host b) { return a.v <= b.v; }
  friend Host<bool> operator>=(Host a, Host b) { return a.v >= b.v; }
  friend Host<bool> operator==(Host a, Host b) { return a.v == b.v; }
  friend Host<bool> operator!=(Host a, Host b) { return a.v != b.v; }
  friend Host<bool> operator&&(Host a, Host b) { return a.v && b.v; }
  friend Host<bool> operator||(Host a, Host b) { return a.v || b.v; }
  friend Host<bool> operator!(Host a) { return !a.v; }

  friend Host fma(Host a, Host b, Host c) { return std::fma(a.v, b.v, c.v); }
  friend Host sqrt(Host a) { return std::sqrt(a.v); }
  friend Host abs(Host a) { return std::abs(a.v); }
  friend Host min(Host a, Host b, NanMode nan = NanMode::drop) {
    if (a.v != a.v) return nan == NanMode::propagate ? a : b;
    return nan == NanMode::propagate && b.v != b.v ? b : b.v < a.v ? b : a;
  }
  friend Host max(Host a, Host b, NanMode nan = NanMode::drop) {
    if (a.v != a.v) return nan == NanMode::propagate ? a : b;
    return nan == NanMode::propagate && b.v != b.v ? b : b.v > a.v ? b : a;
  }
  friend Host mul_hi(Host a, Host b) {
    static_assert(std::is_same_v<T, std::uint64_t>, "only the 64-bit product is modelled");
    __extension__ using Wide = unsigned __int128;
    return static_cast<T>(static_cast<Wide>(a.v) * b.v >> 64);
  }

 private:
  template <class F>
  static Host wrap(Host a, Host b, F f) {
    if constexpr (std::is_integral_v<T>) {
      using U = std::make_unsigned_t<T>;
      return static_cast<T>(f(static_cast<U>(a.v), static_cast<U>(b.v)));
    } else {
      return f(a.v, b.v);
    }
  }
};

template <class T>
Host<T> select(Host<bool> condition, Host<T> a, std::type_identity_t<Host<T>> b) {
  return condition.v ? a : b;
}

/// The approximations, modelled as the nearest f32 of the exact result.
inline Host<float> exp2_approx(Host<float> x) {
  return static_cast<float>(std::exp2(static_cast<double>(x.v)));
}
inline Host<float> log2_approx(Host<float> x) {
  return static_cast<float>(std::log2(static_cast<double>(x.v)));
}
inline Host<float> rcp_approx(Host<float> x) { return 1.0f / x.v; }
inline Host<float> rsqrt_approx(Host<float> x) {
  return static_cast<float>(1.0 / std::sqrt(static_cast<double>(x.v)));
}

/// A literal where both operands of an operation would be literals.
template <class N, class T>
N literal(T value) {
  if constexpr (std::is_same_v<N, Value>) {
    return constant(std::is_same_v<T, double> ? f64 : std::is_same_v<T, float> ? f32 : s32, value);
  } else {
    return N(value);
  }
}
template <class T>
Host<std::uint64_t> word64(Host<T>, std::uint64_t bits) {
  return bits;
}
inline Value word64(const Value&, std::uint64_t bits) {
  return ValueAccess::constant(u64, static_cast<std::int64_t>(bits));
}

// The same bits as another type.
inline Value as_s32(const Value& x) { return x.bitcast(s32); }
inline Value as_u32(const Value& x) { return x.bitcast(u32); }
inline Value as_f32(const Value& x) { return x.bitcast(f32); }
inline Value as_s64(const Value& x) { return x.bitcast(s64); }
inline Value as_u64(const Value& x) { return x.bitcast(u64); }
inline Value as_f64(const Value& x) { return x.bitcast(f64); }
template <class T>
Host<std::int32_t> as_s32(Host<T> x) {
  return std::bit_cast<std::int32_t>(x.v);
}
template <class T>
Host<std::uint32_t> as_u32(Host<T> x) {
  return std::bit_cast<std::uint32_t>(x.v);
}
template <class T>
Host<float> as_f32(Host<T> x) {
  return std::bit_cast<float>(x.v);
}
template <class T>
Host<std::int64_t> as_s64(Host<T> x) {
  return std::bit_cast<std::int64_t>(x.v);
}
template <class T>
Host<std::uint64_t> as_u64(Host<T> x) {
  return std::bit_cast<std::uint64_t>(x.v);
}
template <class T>
Host<double> as_f64(Host<T> x) {
  return std::bit_cast<double>(x.v);
}

// Conversions: to floats rounded to nearest even, from floats cut towards zero (saturated to s32,
// NaN to 0), among integers cut or extended.
inline Value to_f32(const Value& x) { return x.to(f32); }
inline Value to_f64(const Value& x) { return x.to(f64); }
inline Value to_u64(const Value& x) { return x.to(u64); }
inline Value to_s64(const Value& x) { return x.to(s64); }
inline Value to_s32(const Value& x) { return x.to(s32); }
inline Value to_u32(const Value& x) { return x.to(u32); }
inline Host<std::uint32_t> to_u32(Host<std::uint64_t> x) { return static_cast<std::uint32_t>(x.v); }
template <class T>
Host<float> to_f32(Host<T> x) {
  return static_cast<float>(x.v);
}
template <class T>
Host<double> to_f64(Host<T> x) {
  return static_cast<double>(x.v);
}
template <class T>
Host<std::uint64_t> to_u64(Host<T> x) {
  return static_cast<std::uint64_t>(x.v);
}
template <class T>
Host<std::int64_t> to_s64(Host<T> x) {
  return static_cast<std::int64_t>(x.v);
}
inline Host<std::int32_t> to_s32(Host<std::int64_t> x) { return static_cast<std::int32_t>(x.v); }
inline Host<std::int32_t> to_s32(Host<std::uint64_t> x) { return static_cast<std::int32_t>(x.v); }
inline Host<std::int32_t> to_s32(Host<float> x) {
  if (!(std::abs(x.v) < 0x1p+31f)) return x.v != x.v ? 0 : x.v < 0 ? -0x7fffffff - 1 : 0x7fffffff;
  return static_cast<std::int32_t>(x.v);
}

/// A register that control flow changes: Var, or a variable of the host.
template <class T>
Host<T>& cell(Host<T>& x) {
  return x;
}
inline Var cell(const Value& x) {
  Uniformity group = std::max(x.uniformity(), Tracer::current("maths", {}).divergence());
  return Var(x, group);
}

/// Runs `body` where `condition` holds, behind a branch: for the rare path.
template <class F>
void rarely(const Value& condition, F body) {
  if_(condition, body);
}
template <class F>
void rarely(Host<bool> condition, F body) {
  if (condition.v) body();
}

/// Runs `body` while `condition()` holds; the first argument says where.
template <class C, class F>
void repeat_while(const Value&, C condition, F body) {
  while_(condition, body);
}
template <class T, class C, class F>
void repeat_while(Host<T>, C condition, F body) {
  while (condition().v)
    body();
}

/// `magnitude` with the sign of `x`.
inline Host<float> with_sign(Host<float> magnitude, Host<float> x) {
  return std::copysign(magnitude.v, x.v);
}
inline Value with_sign(const Value& magnitude, const Value& x) {
  return Tracer::current("maths", {}).pure("copysign.f32", f32, {&x, &magnitude}, {});
}

template <std::size_t K, std::size_t Size, class N, class C>
N horner_step(const N& x, const N& higher, const C (&c)[Size]) {
  if constexpr (K == 0) {
    return fma(x, higher, c[0]);
  } else {
    return horner_step<K - 1>(x, fma(x, higher, c[K]), c);
  }
}
/// c[0] + c[1] x + ... by Horner's rule, one fma a step.
template <std::size_t Size, class N, class C>
N horner(const N& x, const C (&c)[Size]) {
  static_assert(Size >= 2, "a constant needs no polynomial");
  return horner_step<Size - 2>(x, literal<N>(c[Size - 1]), c);
}

}  // namespace tilewright::lang
