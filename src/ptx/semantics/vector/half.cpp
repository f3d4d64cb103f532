// SPDX-License-Identifier: Apache-2.0
// f16 and bf16 arithmetic, scalar and packed in pairs: each operation rounds once, to nearest.
#include "ptx/semantics/vector/formats.h"

namespace tilewright::ptx::semantics::TW_ISA {
namespace {

// Sums, differences and products of these formats may be rounded to f32 first: its 24 bits are at
// least 2p + 2 for p = 11 and 8, so that the second rounding never differs (Figueroa, "When is
// double rounding innocuous?").

enum class After { nothing, sat, relu };

template <class F, bool Ftz>
TW_LANE u32 flush_code(u32 code) {
  constexpr u32 kExponent = F::kSign - (1u << F::kMan);
  return Ftz && (code & kExponent) == 0 ? code & F::kSign : code & (F::kSign | (F::kSign - 1));
}
template <class F, bool Ftz>
TW_LANE float read(u32 code) {
  return decode<F>(flush_code<F, Ftz>(code));
}
template <class F, bool Ftz, After A>
TW_LANE u32 write(float x) {
  if (A == After::sat) x = saturate(x);
  if (A == After::relu) x = ((x > 0.0f) | (x != x)) ? x : 0.0f;
  return flush_code<F, Ftz>(encode<F, Rounding::rn, false>(x));
}

template <class F, bool Ftz, After A>
struct Add {
  TW_LANE static u32 apply(u32 a, u32 b) {
    return write<F, Ftz, A>(read<F, Ftz>(a) + read<F, Ftz>(b));
  }
};
template <class F, bool Ftz, After A>
struct Sub {
  TW_LANE static u32 apply(u32 a, u32 b) {
    return write<F, Ftz, A>(read<F, Ftz>(a) - read<F, Ftz>(b));
  }
};
template <class F, bool Ftz, After A>
struct Mul {
  TW_LANE static u32 apply(u32 a, u32 b) {
    return write<F, Ftz, A>(read<F, Ftz>(a) * read<F, Ftz>(b));
  }
};
template <class F, bool Ftz, After A>
struct Fma {
  TW_LANE static u32 apply(u32 a, u32 b, u32 c) {
    if constexpr (F::kExp == 5) {  // products of f16 are exact in f32
      const float product = read<F, Ftz>(a) * read<F, Ftz>(b);
      return write<F, Ftz, A>(add_to_odd(product, read<F, Ftz>(c)));
    } else {  // products of bf16 may leave the range of f32
      const double product =
          static_cast<double>(read<F, Ftz>(a)) * static_cast<double>(read<F, Ftz>(b));
      return write<F, Ftz, A>(to_odd(add_to_odd(product, static_cast<double>(read<F, Ftz>(c)))));
    }
  }
};
/// fma.oob: zero if a factor is the NaN that tensor copies fill out-of-bounds elements with. The
/// manual does not say which that is; 0x7ff7 in either format was measured on devices.
template <class F, After A>
struct FmaOutOfBounds {
  TW_LANE static u32 apply(u32 a, u32 b, u32 c) {
    const bool outside = (a & 0x7fffu) == 0x7ff7u || (b & 0x7fffu) == 0x7ff7u;
    return outside ? 0u : Fma<F, false, A>::apply(a, b, c);
  }
};
template <class F, bool Ftz, bool Negates>
struct ChangeSign {
  TW_LANE static u32 apply(u32 a) {
    const u32 code = flush_code<F, Ftz>(a);
    return Negates ? code ^ F::kSign : code & ~F::kSign;
  }
};
template <class F, bool Ftz, bool Greater, bool KeepsNan, bool Xorsign>
struct Extremum {
  TW_LANE static u32 apply(u32 a, u32 b) {
    const u32 mask = Xorsign ? F::kSign - 1 : ~0u;
    const float x =
        extremum<float, Greater, KeepsNan>(read<F, Ftz>(a & mask), read<F, Ftz>(b & mask));
    const u32 sign = Xorsign && x == x ? (a ^ b) & F::kSign : 0u;
    return encode<F, Rounding::rn, false>(x) | sign;
  }
};

/// Op on one value a register, or on both halves.
template <class Op>
struct Pair {
  template <class... S>
  TW_LANE static u32 apply(S... s) {
    return Op::apply(s...) | Op::apply((s >> 16)...) << 16;
  }
};
template <class Op>
LaneFn lanes1(bool pair) {
  return pair ? map1<Pair<Op>, u32, u32> : map1<Op, u32, u32>;
}
template <class Op>
LaneFn lanes2(bool pair) {
  return pair ? map2<Pair<Op>, u32, u32, u32> : map2<Op, u32, u32, u32>;
}
template <class Op>
LaneFn lanes3(bool pair) {
  return pair ? map3<Pair<Op>, u32, u32, u32, u32> : map3<Op, u32, u32, u32, u32>;
}

template <template <class, bool, After> class Op, class F>
LaneFn arithmetic(const Spec& spec, bool pair) {
  switch (spec.flags) {
    case 0:
      return lanes2<Op<F, false, After::nothing>>(pair);
    case kFtz:
      return lanes2<Op<F, true, After::nothing>>(pair);
    case kSat:
      return lanes2<Op<F, false, After::sat>>(pair);
    case kFtz | kSat:
      return lanes2<Op<F, true, After::sat>>(pair);
    default:
      return nullptr;
  }
}
template <class F>
LaneFn multiply_add(const Spec& spec, bool pair) {
  switch (spec.flags) {
    case 0:
      return lanes3<Fma<F, false, After::nothing>>(pair);
    case kFtz:
      return lanes3<Fma<F, true, After::nothing>>(pair);
    case kSat:
      return lanes3<Fma<F, false, After::sat>>(pair);
    case kFtz | kSat:
      return lanes3<Fma<F, true, After::sat>>(pair);
    case kRelu:
      return lanes3<Fma<F, false, After::relu>>(pair);
    case kFtz | kRelu:
      return lanes3<Fma<F, true, After::relu>>(pair);
    case kOob:
      return lanes3<FmaOutOfBounds<F, After::nothing>>(pair);
    case kOob | kRelu:
      return lanes3<FmaOutOfBounds<F, After::relu>>(pair);
    default:
      return nullptr;
  }
}
template <class F, bool Negates>
LaneFn change_sign(const Spec& spec, bool pair) {
  if (!spec.only(kFtz)) return nullptr;
  return spec.has(kFtz) ? lanes1<ChangeSign<F, true, Negates>>(pair)
                        : lanes1<ChangeSign<F, false, Negates>>(pair);
}
template <class F, bool Greater, bool KeepsNan>
LaneFn extremum_of(const Spec& spec, bool pair) {
  if (spec.has(kXorsignAbs)) {
    return spec.has(kFtz) ? lanes2<Extremum<F, true, Greater, KeepsNan, true>>(pair)
                          : lanes2<Extremum<F, false, Greater, KeepsNan, true>>(pair);
  }
  return spec.has(kFtz) ? lanes2<Extremum<F, true, Greater, KeepsNan, false>>(pair)
                        : lanes2<Extremum<F, false, Greater, KeepsNan, false>>(pair);
}
template <class F, bool Greater>
LaneFn find_extremum(const Spec& spec, bool pair) {
  if (!spec.only(kFtz | kNan | kXorsignAbs)) return nullptr;
  return spec.has(kNan) ? extremum_of<F, Greater, true>(spec, pair)
                        : extremum_of<F, Greater, false>(spec, pair);
}

template <class F>
LaneFn find_of(const Spec& spec, bool pair) {
  if (spec.rounding != Rounding::none && spec.rounding != Rounding::rn) return nullptr;
  switch (spec.op) {
    case LaneOp::add:
      return arithmetic<Add, F>(spec, pair);
    case LaneOp::sub:
      return arithmetic<Sub, F>(spec, pair);
    case LaneOp::mul:
      return arithmetic<Mul, F>(spec, pair);
    case LaneOp::fma:
      return multiply_add<F>(spec, pair);
    case LaneOp::neg:
      return change_sign<F, true>(spec, pair);
    case LaneOp::abs:
      return change_sign<F, false>(spec, pair);
    case LaneOp::min:
      return find_extremum<F, false>(spec, pair);
    case LaneOp::max:
      return find_extremum<F, true>(spec, pair);
    default:
      return nullptr;
  }
}

}  // namespace

LaneFn find_half(const Spec& spec) {
  if (spec.type_count != 1) return nullptr;
  switch (spec.types[0]) {
    case Type::f16:
      return find_of<F16>(spec, false);
    case Type::f16x2:
      return find_of<F16>(spec, true);
    case Type::bf16:
      return find_of<Bf16>(spec, false);
    case Type::bf16x2:
      return find_of<Bf16>(spec, true);
    default:
      return nullptr;
  }
}

}  // namespace tilewright::ptx::semantics::TW_ISA
