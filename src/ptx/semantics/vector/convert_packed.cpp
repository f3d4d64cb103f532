// SPDX-License-Identifier: Apache-2.0
// cvt to and from packed pairs, and cvt.pack.
#include "ptx/semantics/vector/convert_rules.h"

namespace tilewright::ptx::semantics::TW_ISA {
namespace {

/// d = {Op(a), Op(b)}: a in the high part, Shift bits up.
template <class Op, unsigned Shift>
struct PairOf {
  TW_LANE static u32 apply(float a, float b) { return Op::apply(a) << Shift | Op::apply(b); }
};
/// The same from both halves of a register that holds format G.
template <class G, class Op, unsigned Shift>
struct PairFrom {
  TW_LANE static u32 apply(u32 a) {
    return Op::apply(decode<G>(a >> 16)) << Shift | Op::apply(decode<G>(a));
  }
};
template <class Op, unsigned Shift>
constexpr LaneFn kFromTwo = map2<PairOf<Op, Shift>, u32, float, float>;

template <class F, Rounding R>
LaneFn f32_to_halves(std::uint32_t flags) {
  switch (flags) {
    case 0:
      return kFromTwo<ToNarrow<F, R>, 16>;
    case kRelu:
      return kFromTwo<ToNarrow<F, R, false, true>, 16>;
    case kSatfinite:
      return kFromTwo<ToNarrow<F, R, true>, 16>;
    case kRelu | kSatfinite:
      return kFromTwo<ToNarrow<F, R, true, true>, 16>;
    default:
      return nullptr;
  }
}
template <class F>
LaneFn to_halves(const Spec& spec) {
  return spec.rounding == Rounding::rn   ? f32_to_halves<F, Rounding::rn>(spec.flags)
         : spec.rounding == Rounding::rz ? f32_to_halves<F, Rounding::rz>(spec.flags)
                                         : nullptr;
}

/// To pairs of an 8, 6 or 4-bit format.
template <class F, unsigned Shift, bool Relu>
LaneFn to_small_pair(Type from) {
  using Op = ToNarrow<F, Rounding::rn, true, Relu>;
  switch (from) {
    case Type::f32:
      return kFromTwo<Op, Shift>;
    case Type::f16x2:
      return map1<PairFrom<F16, Op, Shift>, u32, u32>;
    case Type::bf16x2:
      return map1<PairFrom<Bf16, Op, Shift>, u32, u32>;
    default:
      return nullptr;
  }
}
template <class F, unsigned Shift>
LaneFn to_small(const Spec& spec) {
  if (spec.rounding != Rounding::rn || !spec.has(kSatfinite) || !spec.only(kSatfinite | kRelu)) {
    return nullptr;
  }
  return spec.has(kRelu) ? to_small_pair<F, Shift, true>(spec.types[1])
                         : to_small_pair<F, Shift, false>(spec.types[1]);
}

/// f16x2 from a pair of a smaller format, which it holds exactly.
template <class F, unsigned Shift, bool Relu>
struct Widened {
  TW_LANE static u32 apply(u32 a) {
    using Op = ToNarrow<F16, Rounding::rn, false, Relu>;
    return Op::apply(decode<F>(a >> Shift)) << 16 | Op::apply(decode<F>(a));
  }
};
template <class F, unsigned Shift>
LaneFn from_small(const Spec& spec) {
  if (spec.rounding != Rounding::rn || !spec.only(kRelu)) return nullptr;
  return spec.has(kRelu) ? map1<Widened<F, Shift, true>, u32, u32>
                         : map1<Widened<F, Shift, false>, u32, u32>;
}

template <bool Up, bool Satfinite>
struct ToUe8m0 {
  TW_LANE static u32 apply(float x) { return encode_ue8m0<Up, Satfinite>(x); }
};
template <bool Up, bool Satfinite>
LaneFn to_ue8m0_from(Type from) {
  using Op = ToUe8m0<Up, Satfinite>;
  if (from == Type::f32) return kFromTwo<Op, 8>;
  return from == Type::bf16x2 ? map1<PairFrom<Bf16, Op, 8>, u32, u32> : nullptr;
}
LaneFn to_ue8m0(const Spec& spec) {
  if (!spec.only(kSatfinite)) return nullptr;
  const bool limited = spec.has(kSatfinite);
  if (spec.rounding == Rounding::rp) {
    return limited ? to_ue8m0_from<true, true>(spec.types[1])
                   : to_ue8m0_from<true, false>(spec.types[1]);
  }
  if (spec.rounding != Rounding::rz) return nullptr;
  return limited ? to_ue8m0_from<false, true>(spec.types[1])
                 : to_ue8m0_from<false, false>(spec.types[1]);
}
struct FromUe8m0 {
  TW_LANE static u32 apply(u32 a) {
    return decode_ue8m0(a >> 8 & 0xff) << 16 | decode_ue8m0(a & 0xff);
  }
};

LaneFn to_f16x2(const Spec& spec) {
  switch (spec.types[1]) {
    case Type::f32:
      return to_halves<F16>(spec);
    case Type::e4m3x2:
      return from_small<E4m3, 8>(spec);
    case Type::e5m2x2:
      return from_small<E5m2, 8>(spec);
    case Type::e2m3x2:
      return from_small<E2m3, 8>(spec);
    case Type::e3m2x2:
      return from_small<E3m2, 8>(spec);
    case Type::e2m1x2:
      return from_small<E2m1, 4>(spec);
    default:
      return nullptr;
  }
}
LaneFn to_bf16x2(const Spec& spec) {
  if (spec.types[1] == Type::f32) return to_halves<Bf16>(spec);
  if (spec.types[1] != Type::ue8m0x2 || spec.rounding != Rounding::rn || !spec.only(0))
    return nullptr;
  return map1<FromUe8m0, u32, u32>;
}

/// cvt.pack: a and b saturated to W bits, above them the low bits of c.
template <unsigned W, bool Signed>
TW_LANE u32 packed(s32 a, s32 b) {
  constexpr s32 kMax = Signed ? (1 << (W - 1)) - 1 : (1 << W) - 1;
  constexpr s32 kMin = Signed ? -kMax - 1 : 0;
  constexpr u32 kMask = (1u << W) - 1;
  const s32 high = a < kMin ? kMin : a > kMax ? kMax : a;
  const s32 low = b < kMin ? kMin : b > kMax ? kMax : b;
  return (static_cast<u32>(high) & kMask) << W | (static_cast<u32>(low) & kMask);
}
template <bool Signed>
struct Pack16 {
  TW_LANE static u32 apply(s32 a, s32 b) { return packed<16, Signed>(a, b); }
};
template <unsigned W, bool Signed>
struct PackAbove {
  TW_LANE static u32 apply(s32 a, s32 b, u32 c) { return c << (2 * W) | packed<W, Signed>(a, b); }
};
LaneFn pack_integers(const Spec& spec) {
  if (!spec.has(kSat) || spec.types[1] != Type::s32) return nullptr;
  if (spec.type_count == 2) {
    return spec.types[0] == Type::u16   ? map2<Pack16<false>, u32, s32, s32>
           : spec.types[0] == Type::s16 ? map2<Pack16<true>, u32, s32, s32>
                                        : nullptr;
  }
  switch (spec.pack_bits) {
    case 8:
      return map3<PackAbove<8, false>, u32, s32, s32, u32>;
    case -8:
      return map3<PackAbove<8, true>, u32, s32, s32, u32>;
    case 4:
      return map3<PackAbove<4, false>, u32, s32, s32, u32>;
    case -4:
      return map3<PackAbove<4, true>, u32, s32, s32, u32>;
    case 2:
      return map3<PackAbove<2, false>, u32, s32, s32, u32>;
    case -2:
      return map3<PackAbove<2, true>, u32, s32, s32, u32>;
    default:
      return nullptr;
  }
}

}  // namespace

LaneFn find_convert_packed(const Spec& spec) {
  if (spec.has(kPack)) return pack_integers(spec);
  switch (spec.types[0]) {
    case Type::f16x2:
      return to_f16x2(spec);
    case Type::bf16x2:
      return to_bf16x2(spec);
    case Type::e4m3x2:
      return to_small<E4m3, 8>(spec);
    case Type::e5m2x2:
      return to_small<E5m2, 8>(spec);
    case Type::e2m3x2:
      return to_small<E2m3, 8>(spec);
    case Type::e3m2x2:
      return to_small<E3m2, 8>(spec);
    case Type::e2m1x2:
      return to_small<E2m1, 4>(spec);
    case Type::ue8m0x2:
      return to_ue8m0(spec);
    default:
      return nullptr;
  }
}

}  // namespace tilewright::ptx::semantics::TW_ISA
