// SPDX-License-Identifier: Apache-2.0
// Logic, shifts, byte permutation, dot products of bytes, selection and plain moves.
#include "ptx/semantics/vector/lanes.h"

namespace tilewright::ptx::semantics::TW_ISA {
namespace {

template <class T>
struct And {
  TW_LANE static T apply(T a, T b) { return static_cast<T>(a & b); }
};
template <class T>
struct Or {
  TW_LANE static T apply(T a, T b) { return static_cast<T>(a | b); }
};
template <class T>
struct Xor {
  TW_LANE static T apply(T a, T b) { return static_cast<T>(a ^ b); }
};
template <class T>
struct Not {
  TW_LANE static T apply(T a) { return static_cast<T>(~a); }
};
template <class T>
struct Cnot {
  TW_LANE static T apply(T a) { return a == 0 ? T{1} : T{0}; }
};
template <class T>
struct Move {
  TW_LANE static T apply(T a) { return a; }
};

/// Predicates: F on whole masks.
template <template <class> class F>
void predicate2(const LaneArgs& args) {
  keep_predicate(args, 0, F<u32>::apply(predicate(args, 0), predicate(args, 1)));
}
template <template <class> class F>
void predicate1(const LaneArgs& args) {
  keep_predicate(args, 0, F<u32>::apply(predicate(args, 0)));
}

template <class T>
constexpr u32 kWidth = 8 * sizeof(T);

template <class T>
struct Shl {
  TW_LANE static T apply(T a, u32 n) {
    const Store<T> shifted = static_cast<Store<T>>(a) << (n & (8 * sizeof(Store<T>) - 1));
    return n < kWidth<T> ? static_cast<T>(shifted) : T{0};
  }
};
template <class T>
struct Shr {  // fills with the sign for signed types
  TW_LANE static T apply(T a, u32 n) {
    if constexpr (static_cast<T>(-1) < static_cast<T>(0)) {
      return static_cast<T>(a >> (n < kWidth<T> ? n : kWidth<T> - 1));
    } else {
      return n < kWidth<T> ? static_cast<T>(a >> (n & (kWidth<T> - 1))) : T{0};
    }
  }
};

template <bool Left, bool Wraps>
struct Funnel {
  TW_LANE static u32 apply(u32 low, u32 high, u32 c) {
    const u32 n = Wraps ? c & 31 : c < 32 ? c : 32;
    const u64 both = static_cast<u64>(high) << 32 | low;
    return static_cast<u32>(Left ? both << n >> 32 : both >> n);
  }
};

/// Bytes of {b, a}: nibble i of `selector` picks byte i, bit 3 of it replicates the byte's sign.
TW_LANE u32 permute(u32 a, u32 b, u32 selector) {
  const u64 both = static_cast<u64>(b) << 32 | a;
  u32 result = 0;
  for (u32 i = 0; i < 4; ++i) {
    const u32 nibble = selector >> (4 * i);
    const u32 byte = static_cast<u32>(both >> (8 * (nibble & 7))) & 0xff;
    const u32 sign = (byte & 0x80) != 0 ? 0xffu : 0u;
    result |= ((nibble & 8) != 0 ? sign : byte) << (8 * i);
  }
  return result;
}
struct Permute {
  TW_LANE static u32 apply(u32 a, u32 b, u32 c) { return permute(a, b, c); }
};
/// A mode's selectors for c & 3 == 0..3, 16 bits each from the low end.
constexpr u64 selectors(Mode mode) {
  switch (mode) {
    case Mode::f4e:
      return 0x6543'5432'4321'3210;
    case Mode::b4e:
      return 0x0123'7012'6701'5670;
    case Mode::rc8:
      return 0x3333'2222'1111'0000;
    case Mode::ecl:
      return 0x3333'3222'3211'3210;
    case Mode::ecr:
      return 0x3210'2210'1110'0000;
    case Mode::rc16:
      return 0x3232'1010'3232'1010;
    default:
      return 0;
  }
}
template <Mode M>
struct PermuteMode {
  TW_LANE static u32 apply(u32 a, u32 b, u32 c) {
    return permute(a, b, static_cast<u32>(selectors(M) >> (16 * (c & 3))) & 0xffff);
  }
};

template <class A, class B>
struct Dot4 {
  TW_LANE static u32 apply(u32 a, u32 b, u32 c) {
    for (u32 i = 0; i < 32; i += 8) {
      c += static_cast<u32>(static_cast<s32>(static_cast<A>(a >> i)) *
                            static_cast<s32>(static_cast<B>(b >> i)));
    }
    return c;
  }
};
template <class A, class B, bool High>
struct Dot2 {
  TW_LANE static u32 apply(u32 a, u32 b, u32 c) {
    const u32 bytes = High ? b >> 16 : b;
    c += static_cast<u32>(static_cast<s32>(static_cast<A>(a)) *
                          static_cast<s32>(static_cast<B>(bytes)));
    return c + static_cast<u32>(static_cast<s32>(static_cast<A>(a >> 16)) *
                                static_cast<s32>(static_cast<B>(bytes >> 8)));
  }
};

void lookup3(const LaneArgs& args) {
  if (args.mask != kAllLanes) return masked<u32>(args, lookup3);
  const u32* a = source<u32>(args, 0);
  const u32* b = source<u32>(args, 1);
  const u32* c = source<u32>(args, 2);
  const u32 table = *source<u32>(args, 3);
  u32 term[8];
  for (u32 i = 0; i < 8; ++i)
    term[i] = (table >> i & 1) != 0 ? ~0u : 0u;
  u32* out = target<u32>(args);
  TW_INDEPENDENT
  for (int i = 0; i < kLanes; ++i) {
    const u32 low = (~b[i] & ((~c[i] & term[0]) | (c[i] & term[1]))) |
                    (b[i] & ((~c[i] & term[2]) | (c[i] & term[3])));
    const u32 high = (~b[i] & ((~c[i] & term[4]) | (c[i] & term[5]))) |
                     (b[i] & ((~c[i] & term[6]) | (c[i] & term[7])));
    out[i] = (~a[i] & low) | (a[i] & high);
  }
}
/// lop3.BoolOp d|p, a, b, c, table, q: p = (d != 0) BoolOp q.
template <Bool B>
void lookup3_predicate(const LaneArgs& args) {
  alignas(128) u32 value[kLanes];
  LaneArgs inner = args;
  inner.dst[0] = value;
  inner.mask = kAllLanes;
  lookup3(inner);
  u32 nonzero = 0;
  for (int i = 0; i < kLanes; ++i)
    nonzero |= value[i] != 0 ? kBit[i] : 0u;
  const u32 q = predicate(args, 4);
  if (args.dst[0] != nullptr) keep(target<u32>(args), value, args.mask);
  keep_predicate(args, 1,
                 B == Bool::and_  ? nonzero & q
                 : B == Bool::or_ ? nonzero | q
                                  : nonzero ^ q);
}

template <class T>
void select(const LaneArgs& args) {
  if (args.mask != kAllLanes) return masked<Store<T>>(args, select<T>);
  const Store<T>* a = source<T>(args, 0);
  const Store<T>* b = source<T>(args, 1);
  const u32 p = predicate(args, 2);
  Store<T>* out = target<T>(args);
  TW_INDEPENDENT
  for (int i = 0; i < kLanes; ++i)
    out[i] = (p & kBit[i]) != 0 ? a[i] : b[i];
}
/// slct with an integer c, and with a float c: not negative, where NaN counts as negative.
template <class T>
struct SelectSigned {
  TW_LANE static T apply(T a, T b, s32 c) { return c >= 0 ? a : b; }
};
template <class T, bool Ftz>
struct SelectFloat {
  TW_LANE static T apply(T a, T b, float c) {
    const u32 magnitude = __builtin_bit_cast(u32, c) & 0x7fffffffu;
    return c >= 0.0f || (Ftz && magnitude < 0x00800000u) ? a : b;
  }
};

/// A cache policy is opaque, and no value depends on it.
void create_policy(const LaneArgs& args) {
  if (args.mask != kAllLanes) return masked<u64>(args, create_policy);
  u64* out = target<u64>(args);
  for (int i = 0; i < kLanes; ++i)
    out[i] = 0;
}

template <template <class> class F>
LaneFn logic2(Type type) {
  switch (bits(type)) {
    case 1:
      return predicate2<F>;
    case 16:
    case 32:
      return map2<F<u32>, u32, u32, u32>;
    case 64:
      return map2<F<u64>, u64, u64, u64>;
    default:
      return nullptr;
  }
}
template <template <class> class F>
LaneFn logic1(Type type) {
  switch (bits(type)) {
    case 1:
      return predicate1<F>;
    case 16:
      return map1<F<u16>, u16, u16>;
    case 8:
    case 32:
      return map1<F<u32>, u32, u32>;
    case 64:
      return map1<F<u64>, u64, u64>;
    default:
      return nullptr;
  }
}

LaneFn shift_right(Type type) {
  switch (type) {
    case Type::b16:
    case Type::u16:
      return map2<Shr<u16>, u16, u16, u32>;
    case Type::b32:
    case Type::u32:
      return map2<Shr<u32>, u32, u32, u32>;
    case Type::b64:
    case Type::u64:
      return map2<Shr<u64>, u64, u64, u32>;
    case Type::s16:
      return map2<Shr<s16>, s16, s16, u32>;
    case Type::s32:
      return map2<Shr<s32>, s32, s32, u32>;
    case Type::s64:
      return map2<Shr<s64>, s64, s64, u32>;
    default:
      return nullptr;
  }
}
LaneFn shift_left(Type type) {
  switch (bits(type)) {
    case 16:
      return map2<Shl<u16>, u16, u16, u32>;
    case 32:
      return map2<Shl<u32>, u32, u32, u32>;
    case 64:
      return map2<Shl<u64>, u64, u64, u32>;
    default:
      return nullptr;
  }
}
LaneFn funnel(Mode mode) {
  switch (mode) {
    case Mode::l_clamp:
      return map3<Funnel<true, false>, u32, u32, u32, u32>;
    case Mode::l_wrap:
      return map3<Funnel<true, true>, u32, u32, u32, u32>;
    case Mode::r_clamp:
      return map3<Funnel<false, false>, u32, u32, u32, u32>;
    case Mode::r_wrap:
      return map3<Funnel<false, true>, u32, u32, u32, u32>;
    default:
      return nullptr;
  }
}
LaneFn permutation(Mode mode) {
  switch (mode) {
    case Mode::none:
      return map3<Permute, u32, u32, u32, u32>;
    case Mode::f4e:
      return map3<PermuteMode<Mode::f4e>, u32, u32, u32, u32>;
    case Mode::b4e:
      return map3<PermuteMode<Mode::b4e>, u32, u32, u32, u32>;
    case Mode::rc8:
      return map3<PermuteMode<Mode::rc8>, u32, u32, u32, u32>;
    case Mode::ecl:
      return map3<PermuteMode<Mode::ecl>, u32, u32, u32, u32>;
    case Mode::ecr:
      return map3<PermuteMode<Mode::ecr>, u32, u32, u32, u32>;
    case Mode::rc16:
      return map3<PermuteMode<Mode::rc16>, u32, u32, u32, u32>;
    default:
      return nullptr;
  }
}
template <class A, class B>
LaneFn dot(const Spec& spec) {
  if (spec.op == LaneOp::dp4a) return map3<Dot4<A, B>, u32, u32, u32, u32>;
  return nullptr;
}
template <class A, class B>
LaneFn dot2(const Spec& spec) {
  return spec.has(kHi) ? map3<Dot2<A, B, true>, u32, u32, u32, u32>
                       : map3<Dot2<A, B, false>, u32, u32, u32, u32>;
}
LaneFn dot_product(const Spec& spec) {
  const bool a = spec.types[0] == Type::s32;
  const bool b = spec.types[1] == Type::s32;
  if (spec.op == LaneOp::dp4a) {
    return a ? (b ? dot<s8, s8>(spec) : dot<s8, u8>(spec))
             : (b ? dot<u8, s8>(spec) : dot<u8, u8>(spec));
  }
  return a ? (b ? dot2<s16, s8>(spec) : dot2<s16, u8>(spec))
           : (b ? dot2<u16, s8>(spec) : dot2<u16, u8>(spec));
}
LaneFn lookup(Bool combine) {
  switch (combine) {
    case Bool::none:
      return lookup3;
    case Bool::and_:
      return lookup3_predicate<Bool::and_>;
    case Bool::or_:
      return lookup3_predicate<Bool::or_>;
    case Bool::xor_:
      return nullptr;
  }
  return nullptr;
}
template <class T>
LaneFn select_by_sign(const Spec& spec) {
  if (spec.types[1] == Type::s32) return map3<SelectSigned<T>, T, T, T, s32>;
  return spec.has(kFtz) ? map3<SelectFloat<T, true>, T, T, T, float>
                        : map3<SelectFloat<T, false>, T, T, T, float>;
}

}  // namespace

LaneFn find_bits(const Spec& spec) {
  const Type type = spec.types[0];
  const bool is64 = bits(type) == 64;
  switch (spec.op) {
    case LaneOp::and_:
      return logic2<And>(type);
    case LaneOp::or_:
      return logic2<Or>(type);
    case LaneOp::xor_:
      return logic2<Xor>(type);
    case LaneOp::not_:
      return logic1<Not>(type);
    case LaneOp::cnot:
      return type == Type::pred ? nullptr : logic1<Cnot>(type);
    case LaneOp::mov:
      return logic1<Move>(type);
    case LaneOp::lop3:
      return lookup(spec.combine);
    case LaneOp::shl:
      return shift_left(type);
    case LaneOp::shr:
      return shift_right(type);
    case LaneOp::shf:
      return funnel(spec.mode);
    case LaneOp::prmt:
      return permutation(spec.mode);
    case LaneOp::dp4a:
    case LaneOp::dp2a:
      return dot_product(spec);
    case LaneOp::selp:
      return is64 ? select<u64> : select<u32>;
    case LaneOp::slct:
      return is64 ? select_by_sign<u64>(spec) : select_by_sign<u32>(spec);
    case LaneOp::createpolicy:
      return create_policy;
    default:
      return find_fields(spec);
  }
}

}  // namespace tilewright::ptx::semantics::TW_ISA
