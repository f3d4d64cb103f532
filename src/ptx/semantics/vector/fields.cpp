// SPDX-License-Identifier: Apache-2.0
// Bit fields, counts and searches of bits.
#include "ptx/semantics/vector/lanes.h"

namespace tilewright::ptx::semantics::TW_ISA {
namespace {

template <class T>
constexpr u32 kWidth = 8 * sizeof(T);

template <class T>
struct ExtractField {
  TW_LANE static T apply(T a, u32 b, u32 c) {
    using U = Store<T>;
    constexpr u32 kTop = kWidth<T> - 1;
    const u32 pos = b & 0xff;
    const u32 length = c & 0xff;
    const u32 end = pos + length;  // exclusive
    const U bits = static_cast<U>(a);
    const u32 sign_at = end - 1 < kTop ? end - 1 : kTop;
    const bool negative = static_cast<T>(-1) < static_cast<T>(0) && length != 0 &&
                          ((bits >> (sign_at & kTop)) & 1) != 0;
    const U shifted = pos <= kTop ? bits >> (pos & kTop) : U{0};
    // Bits of the result that come from `a`: fewer than length where the field leaves the register.
    const u32 inside = pos > kTop ? 0 : end <= kTop ? length : kTop + 1 - pos;
    const U taken = inside > kTop ? ~U{0} : (U{1} << (inside & kTop)) - 1;
    return static_cast<T>((shifted & taken) | (negative ? ~taken : U{0}));
  }
};

template <class T>
void insert_field(const LaneArgs& args) {
  if (args.mask != kAllLanes) return masked<Store<T>>(args, insert_field<T>);
  const Store<T>* a = source<T>(args, 0);
  const Store<T>* b = source<T>(args, 1);
  const u32* c = source<u32>(args, 2);
  const u32* d = source<u32>(args, 3);
  Store<T>* out = target<T>(args);
  constexpr u32 kTop = kWidth<T> - 1;
  TW_INDEPENDENT
  for (int i = 0; i < kLanes; ++i) {
    const u32 pos = c[i] & 0xff;
    const u32 length = d[i] & 0xff;
    const T ones =
        length > kTop ? static_cast<T>(~T{0}) : static_cast<T>((T{1} << (length & kTop)) - 1);
    const T field = pos > kTop ? T{0} : static_cast<T>(ones << (pos & kTop));
    out[i] = (b[i] & ~field) | ((a[i] << (pos & kTop)) & field);
  }
}

TW_LANE u32 leading_zeros(u32 a) { return a == 0 ? 32u : static_cast<u32>(__builtin_clz(a)); }
TW_LANE u32 leading_zeros(u64 a) { return a == 0 ? 64u : static_cast<u32>(__builtin_clzll(a)); }

template <class T, bool ShiftAmount>
struct FindLeading {
  TW_LANE static u32 apply(T a) {
    using U = Store<T>;
    const U bits = static_cast<U>(a < T{0} ? static_cast<T>(~a) : a);
    const u32 zeros = leading_zeros(bits);
    if (bits == 0) return 0xffffffffu;
    return ShiftAmount ? zeros : kWidth<T> - 1 - zeros;
  }
};
template <class T>
struct Clz {
  TW_LANE static u32 apply(T a) { return leading_zeros(a); }
};
struct Popc32 {
  TW_LANE static u32 apply(u32 a) {
    a -= (a >> 1) & 0x55555555u;
    a = (a & 0x33333333u) + ((a >> 2) & 0x33333333u);
    return (((a + (a >> 4)) & 0x0f0f0f0fu) * 0x01010101u) >> 24;
  }
};
struct Popc64 {
  TW_LANE static u32 apply(u64 a) {
    return Popc32::apply(static_cast<u32>(a)) + Popc32::apply(static_cast<u32>(a >> 32));
  }
};
struct Brev32 {
  TW_LANE static u32 apply(u32 a) {
    a = ((a >> 1) & 0x55555555u) | (a & 0x55555555u) << 1;
    a = ((a >> 2) & 0x33333333u) | (a & 0x33333333u) << 2;
    a = ((a >> 4) & 0x0f0f0f0fu) | (a & 0x0f0f0f0fu) << 4;
    a = ((a >> 8) & 0x00ff00ffu) | (a & 0x00ff00ffu) << 8;
    return a >> 16 | a << 16;
  }
};
struct Brev64 {
  TW_LANE static u64 apply(u64 a) {
    return static_cast<u64>(Brev32::apply(static_cast<u32>(a))) << 32 |
           Brev32::apply(static_cast<u32>(a >> 32));
  }
};

template <bool Clamps>
struct BitMask {
  TW_LANE static u32 apply(u32 a, u32 b) {
    const u32 sum = (a & 31) + (b & 31);
    const u32 from = Clamps && a >= 32 ? 0u : ~0u << (a & 31);
    const bool overflows = sum >= 32 || (Clamps && (a >= 32 || b >= 32));
    return from & ~(overflows ? 0u : ~0u << (sum & 31));
  }
};
template <class T, bool Clamps>
struct SizeExtend {
  TW_LANE static T apply(T a, u32 b) {
    const u32 n = b & 31;
    const bool whole = Clamps && b >= 32;
    const u32 above = whole ? 0u : ~0u << n;
    const u32 bits = static_cast<u32>(a);
    const bool negative = static_cast<T>(-1) < static_cast<T>(0) && n != 0 && !whole &&
                          ((bits >> ((n - 1) & 31)) & 1) != 0;
    return static_cast<T>((bits & ~above) | (negative ? above : 0u));
  }
};

/// fns d, mask, base, n: the place of the n-th set bit from `base` upwards, downwards for negative
/// n.
struct FindNthSet {
  TW_LANE static u32 apply(u32 mask, u32 base, s32 n) {
    if (base > 31) return 0xffffffffu;
    if (n == 0) return (mask >> base & 1) != 0 ? base : 0xffffffffu;
    const s32 step = n > 0 ? 1 : -1;
    u32 left = n > 0 ? static_cast<u32>(n) : 0u - static_cast<u32>(n);
    for (s32 at = static_cast<s32>(base); at >= 0 && at < 32; at += step) {
      if ((mask >> at & 1) != 0 && --left == 0) return static_cast<u32>(at);
    }
    return 0xffffffffu;
  }
};

LaneFn extract_field(Type type) {
  switch (type) {
    case Type::u32:
      return map3<ExtractField<u32>, u32, u32, u32, u32>;
    case Type::s32:
      return map3<ExtractField<s32>, s32, s32, u32, u32>;
    case Type::u64:
      return map3<ExtractField<u64>, u64, u64, u32, u32>;
    case Type::s64:
      return map3<ExtractField<s64>, s64, s64, u32, u32>;
    default:
      return nullptr;
  }
}
template <bool ShiftAmount>
LaneFn find_leading(Type type) {
  switch (type) {
    case Type::u32:
      return map1<FindLeading<u32, ShiftAmount>, u32, u32>;
    case Type::s32:
      return map1<FindLeading<s32, ShiftAmount>, u32, s32>;
    case Type::u64:
      return map1<FindLeading<u64, ShiftAmount>, u32, u64>;
    case Type::s64:
      return map1<FindLeading<s64, ShiftAmount>, u32, s64>;
    default:
      return nullptr;
  }
}
LaneFn size_extend(const Spec& spec) {
  const bool clamps = spec.mode == Mode::clamp;
  if (!clamps && spec.mode != Mode::wrap) return nullptr;
  if (spec.types[0] == Type::u32) {
    return clamps ? map2<SizeExtend<u32, true>, u32, u32, u32>
                  : map2<SizeExtend<u32, false>, u32, u32, u32>;
  }
  return clamps ? map2<SizeExtend<s32, true>, s32, s32, u32>
                : map2<SizeExtend<s32, false>, s32, s32, u32>;
}
}  // namespace

LaneFn find_fields(const Spec& spec) {
  const Type type = spec.types[0];
  const bool is64 = bits(type) == 64;
  switch (spec.op) {
    case LaneOp::bfe:
      return extract_field(type);
    case LaneOp::bfi:
      return is64 ? insert_field<u64> : insert_field<u32>;
    case LaneOp::bfind:
      return spec.has(kShiftamt) ? find_leading<true>(type) : find_leading<false>(type);
    case LaneOp::bmsk:
      return spec.mode == Mode::clamp  ? map2<BitMask<true>, u32, u32, u32>
             : spec.mode == Mode::wrap ? map2<BitMask<false>, u32, u32, u32>
                                       : nullptr;
    case LaneOp::szext:
      return size_extend(spec);
    case LaneOp::brev:
      return is64 ? map1<Brev64, u64, u64> : map1<Brev32, u32, u32>;
    case LaneOp::popc:
      return is64 ? map1<Popc64, u32, u64> : map1<Popc32, u32, u32>;
    case LaneOp::clz:
      return is64 ? map1<Clz<u64>, u32, u64> : map1<Clz<u32>, u32, u32>;
    case LaneOp::fns:
      return map3<FindNthSet, u32, u32, u32, s32>;
    default:
      return nullptr;
  }
}

}  // namespace tilewright::ptx::semantics::TW_ISA
