// SPDX-License-Identifier: Apache-2.0
// Integer arithmetic, lane by lane.
#include "ptx/semantics/vector/lanes.h"

namespace tilewright::ptx::semantics::TW_ISA {
namespace {

template <class T>
struct Wider;
template <>
struct Wider<u16> {
  using type = u32;
};
template <>
struct Wider<s16> {
  using type = s32;
};
template <>
struct Wider<u32> {
  using type = u64;
};
template <>
struct Wider<s32> {
  using type = s64;
};
__extension__ typedef unsigned __int128 u128;
__extension__ typedef __int128 s128;
template <>
struct Wider<u64> {
  using type = u128;
};
template <>
struct Wider<s64> {
  using type = s128;
};
template <class T>
using Wide = typename Wider<T>::type;

template <class T>
constexpr bool kSigned = static_cast<T>(-1) < static_cast<T>(0);

/// Arithmetic that wraps: in u64 for 64 bits, else in u32.
template <class T>
using Wrap = Store<T>;
template <class T>
TW_LANE Wrap<T> wrap(T value) {
  return static_cast<Wrap<T>>(value);
}

template <class T>
struct Add {
  TW_LANE static T apply(T a, T b) { return static_cast<T>(wrap(a) + wrap(b)); }
};
template <class T>
struct Sub {
  TW_LANE static T apply(T a, T b) { return static_cast<T>(wrap(a) - wrap(b)); }
};
template <class T>
struct Min {
  TW_LANE static T apply(T a, T b) { return a < b ? a : b; }
};
template <class T>
struct Max {
  TW_LANE static T apply(T a, T b) { return a < b ? b : a; }
};
template <class T>
struct MulLo {
  TW_LANE static T apply(T a, T b) { return static_cast<T>(wrap(a) * wrap(b)); }
};
template <class T>
struct MulHi {
  TW_LANE static T apply(T a, T b) {
    return static_cast<T>((static_cast<Wide<T>>(a) * static_cast<Wide<T>>(b)) >> (8 * sizeof(T)));
  }
};
template <class T>
struct MulWide {
  TW_LANE static Wide<T> apply(T a, T b) {
    return static_cast<Wide<T>>(static_cast<Wide<T>>(a) * static_cast<Wide<T>>(b));
  }
};
template <template <class> class Mul, class T>
struct Mad {
  TW_LANE static auto apply(T a, T b, decltype(Mul<T>::apply(T{}, T{})) c) {
    return Add<decltype(c)>::apply(Mul<T>::apply(a, b), c);
  }
};

TW_LANE s32 clamp_s32(s64 value) {
  constexpr s64 kMax = 0x7fffffff;
  constexpr s64 kMin = -kMax - 1;
  return static_cast<s32>(value > kMax ? kMax : value < kMin ? kMin : value);
}
struct AddSat {
  TW_LANE static s32 apply(s32 a, s32 b) { return clamp_s32(static_cast<s64>(a) + b); }
};
struct SubSat {
  TW_LANE static s32 apply(s32 a, s32 b) { return clamp_s32(static_cast<s64>(a) - b); }
};
struct MadHiSat {
  TW_LANE static s32 apply(s32 a, s32 b, s32 c) {
    return clamp_s32(((static_cast<s64>(a) * b) >> 32) + c);
  }
};

template <class T>
TW_LANE T low24(T value) {  // sign- or zero-extended from 24 bits
  return static_cast<T>(static_cast<T>(wrap(value) << 8) >> 8);
}
template <class T>
struct Mul24Lo {
  TW_LANE static T apply(T a, T b) { return MulLo<T>::apply(low24(a), low24(b)); }
};
template <class T>
struct Mul24Hi {  // bits 47..16 of the 48-bit product
  TW_LANE static T apply(T a, T b) {
    return static_cast<T>((static_cast<Wide<T>>(low24(a)) * static_cast<Wide<T>>(low24(b))) >> 16);
  }
};
struct Mad24HiSat {
  TW_LANE static s32 apply(s32 a, s32 b, s32 c) {
    return clamp_s32(static_cast<s64>(Mul24Hi<s32>::apply(a, b)) + c);
  }
};

template <class T>
struct Sad {
  TW_LANE static T apply(T a, T b, T c) {
    return static_cast<T>(wrap(c) + (a < b ? wrap(b) - wrap(a) : wrap(a) - wrap(b)));
  }
};
template <class T>
struct Neg {
  TW_LANE static T apply(T a) { return static_cast<T>(Wrap<T>{0} - wrap(a)); }
};
template <class T>
struct Abs {
  TW_LANE static T apply(T a) { return a < 0 ? Neg<T>::apply(a) : a; }
};

// Division by zero is unspecified in PTX; machines give all ones, and the dividend as remainder.
template <class T>
struct Div {
  TW_LANE static T apply(T a, T b) {
    if constexpr (sizeof(T) < 8) {  // exact: two 32-bit integers' quotient rounds across no integer
      const double quotient = static_cast<double>(a) / static_cast<double>(b == 0 ? T{1} : b);
      const T whole =
          kSigned<T> && b == static_cast<T>(-1) ? Neg<T>::apply(a) : static_cast<T>(quotient);
      return b == 0 ? static_cast<T>(-1) : whole;
    } else {
      if (b == 0) return static_cast<T>(-1);
      if (kSigned<T> && b == static_cast<T>(-1)) return Neg<T>::apply(a);
      return static_cast<T>(a / b);
    }
  }
};
template <class T>
struct Rem {
  TW_LANE static T apply(T a, T b) {
    if constexpr (sizeof(T) < 8) {
      const T quotient = Div<T>::apply(a, b);
      return b == 0 ? a : static_cast<T>(wrap(a) - wrap(quotient) * wrap(b));
    } else {
      if (b == 0) return a;
      if (kSigned<T> && b == static_cast<T>(-1)) return 0;
      return static_cast<T>(a % b);
    }
  }
};

/// The same operation on both halves of a register.
template <template <class> class F, class H>
struct Halves {
  TW_LANE static u32 apply(u32 a) {
    return both(F<H>::apply(static_cast<H>(a)), F<H>::apply(static_cast<H>(a >> 16)));
  }
  TW_LANE static u32 apply(u32 a, u32 b) {
    return both(F<H>::apply(static_cast<H>(a), static_cast<H>(b)),
                F<H>::apply(static_cast<H>(a >> 16), static_cast<H>(b >> 16)));
  }
  TW_LANE static u32 both(H low, H high) {
    return static_cast<u32>(static_cast<u16>(low)) | static_cast<u32>(static_cast<u16>(high)) << 16;
  }
};

template <template <class> class F, class T>
constexpr LaneFn kUnary = map1<F<T>, T, T>;
template <template <class> class F, class T>
constexpr LaneFn kBinary = map2<F<T>, T, T, T>;
template <template <class> class F, class T>
constexpr LaneFn kMad = map3<Mad<F, T>, T, T, T, T>;

template <template <class> class F>
LaneFn binary(Type type) {
  switch (type) {
    case Type::u16:
      return kBinary<F, u16>;
    case Type::s16:
      return kBinary<F, s16>;
    case Type::u32:
      return kBinary<F, u32>;
    case Type::s32:
      return kBinary<F, s32>;
    case Type::u64:
      return kBinary<F, u64>;
    case Type::s64:
      return kBinary<F, s64>;
    default:
      return nullptr;
  }
}
template <template <class> class F>
LaneFn binary_or_halves(Type type) {
  if (type == Type::u16x2) return map2<Halves<F, u16>, u32, u32, u32>;
  if (type == Type::s16x2) return map2<Halves<F, s16>, u32, u32, u32>;
  return binary<F>(type);
}
template <template <class> class F>
LaneFn mad(Type type) {
  switch (type) {
    case Type::u16:
      return kMad<F, u16>;
    case Type::s16:
      return kMad<F, s16>;
    case Type::u32:
      return kMad<F, u32>;
    case Type::s32:
      return kMad<F, s32>;
    case Type::u64:
      return kMad<F, u64>;
    case Type::s64:
      return kMad<F, s64>;
    default:
      return nullptr;
  }
}
template <class T>
LaneFn wide(LaneOp op) {
  return op == LaneOp::mul ? map2<MulWide<T>, Wide<T>, T, T>
                           : map3<Mad<MulWide, T>, Wide<T>, T, T, Wide<T>>;
}

LaneFn multiply(const Spec& spec) {
  const Type type = spec.types[0];
  if (spec.has(kWide)) {
    switch (type) {
      case Type::u16:
        return wide<u16>(spec.op);
      case Type::s16:
        return wide<s16>(spec.op);
      case Type::u32:
        return wide<u32>(spec.op);
      case Type::s32:
        return wide<s32>(spec.op);
      default:
        return nullptr;
    }
  }
  if (spec.op == LaneOp::mul) {
    if (spec.has(kSat)) return nullptr;
    return spec.has(kHi) ? binary<MulHi>(type) : spec.has(kLo) ? binary<MulLo>(type) : nullptr;
  }
  if (spec.has(kSat)) {
    return spec.has(kHi) && type == Type::s32 ? map3<MadHiSat, s32, s32, s32, s32> : nullptr;
  }
  return spec.has(kHi) ? mad<MulHi>(type) : spec.has(kLo) ? mad<MulLo>(type) : nullptr;
}

template <class T>
LaneFn multiply24(const Spec& spec) {
  if (spec.op == LaneOp::mul24) {
    return spec.has(kHi) ? map2<Mul24Hi<T>, T, T, T> : map2<Mul24Lo<T>, T, T, T>;
  }
  return spec.has(kHi) ? map3<Mad<Mul24Hi, T>, T, T, T, T> : map3<Mad<Mul24Lo, T>, T, T, T, T>;
}

template <template <class> class F>
LaneFn signed_unary(Type type) {
  switch (type) {
    case Type::s16:
      return kUnary<F, s16>;
    case Type::s32:
      return kUnary<F, s32>;
    case Type::s64:
      return kUnary<F, s64>;
    default:
      return nullptr;
  }
}

LaneFn sad(Type type) {
  switch (type) {
    case Type::u16:
      return map3<Sad<u16>, u16, u16, u16, u16>;
    case Type::s16:
      return map3<Sad<s16>, s16, s16, s16, s16>;
    case Type::u32:
      return map3<Sad<u32>, u32, u32, u32, u32>;
    case Type::s32:
      return map3<Sad<s32>, s32, s32, s32, s32>;
    case Type::u64:
      return map3<Sad<u64>, u64, u64, u64, u64>;
    case Type::s64:
      return map3<Sad<s64>, s64, s64, s64, s64>;
    default:
      return nullptr;
  }
}

/// min and max with .relu: negative results become zero (s32, s16x2).
template <template <class> class F>
struct Relu {
  template <class T>
  struct Of {
    TW_LANE static T apply(T a, T b) {
      const T value = F<T>::apply(a, b);
      return value < 0 ? T{0} : value;
    }
  };
};
template <template <class> class F>
LaneFn extremum(const Spec& spec) {
  if (!spec.has(kRelu)) return binary_or_halves<F>(spec.types[0]);
  if (spec.types[0] == Type::s32) return kBinary<Relu<F>::template Of, s32>;
  if (spec.types[0] == Type::s16x2) return map2<Halves<Relu<F>::template Of, s16>, u32, u32, u32>;
  return nullptr;
}

}  // namespace

LaneFn find_integer(const Spec& spec) {
  const Type type = spec.types[0];
  const bool saturates = spec.has(kSat);
  if (spec.rounding != Rounding::none || spec.type_count != 1) return nullptr;
  switch (spec.op) {
    case LaneOp::add:
      if (!spec.only(kSat)) return nullptr;
      if (saturates) return type == Type::s32 ? map2<AddSat, s32, s32, s32> : nullptr;
      return binary_or_halves<Add>(type);
    case LaneOp::sub:
      if (!spec.only(kSat)) return nullptr;
      if (saturates) return type == Type::s32 ? map2<SubSat, s32, s32, s32> : nullptr;
      return binary_or_halves<Sub>(type);
    case LaneOp::mul:
    case LaneOp::mad:
      return spec.only(kLo | kHi | kWide | kSat) ? multiply(spec) : nullptr;
    case LaneOp::mul24:
    case LaneOp::mad24:
      if (saturates) {
        return spec.op == LaneOp::mad24 && spec.has(kHi) && type == Type::s32
                   ? map3<Mad24HiSat, s32, s32, s32, s32>
                   : nullptr;
      }
      if (!spec.only(kLo | kHi)) return nullptr;
      return type == Type::u32   ? multiply24<u32>(spec)
             : type == Type::s32 ? multiply24<s32>(spec)
                                 : nullptr;
    case LaneOp::sad:
      return spec.only(0) ? sad(type) : nullptr;
    case LaneOp::div:
      return spec.only(0) ? binary<Div>(type) : nullptr;
    case LaneOp::rem:
      return spec.only(0) ? binary<Rem>(type) : nullptr;
    case LaneOp::abs:
      return spec.only(0) ? signed_unary<Abs>(type) : nullptr;
    case LaneOp::neg:
      return spec.only(0) ? signed_unary<Neg>(type) : nullptr;
    case LaneOp::min:
      return spec.only(kRelu) ? extremum<Min>(spec) : nullptr;
    case LaneOp::max:
      return spec.only(kRelu) ? extremum<Max>(spec) : nullptr;
    default:
      return nullptr;
  }
}

}  // namespace tilewright::ptx::semantics::TW_ISA
