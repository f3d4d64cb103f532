// SPDX-License-Identifier: Apache-2.0
// Pairs of f32 in a 64-bit register, and f32 arithmetic with f16 or bf16 operands (sm_100).
#include "ptx/semantics/vector/formats.h"

namespace tilewright::ptx::semantics::TW_ISA {
namespace {

enum class Arithmetic { add, sub, mul, fma };

template <Arithmetic O, class R, bool Directed>
TW_LANE float compute(float a, float b, float c) {
  if constexpr (O == Arithmetic::add) return R::out(R::in(a) + R::in(b));
  if constexpr (O == Arithmetic::sub) return R::out(R::in(a)-R::in(b));
  if constexpr (O == Arithmetic::mul) return R::out(R::in(a)*R::in(b));
  if constexpr (O == Arithmetic::fma) return R::out(fused<Directed>(R::in(a), R::in(b), R::in(c)));
}

TW_LANE float low(u64 pair) { return as_float(static_cast<u32>(pair)); }
TW_LANE float high(u64 pair) { return as_float(static_cast<u32>(pair >> 32)); }

template <Arithmetic O, class R, bool Directed>
struct OnPair {
  TW_LANE static u64 apply(u64 a, u64 b, u64 c = 0) {
    const u32 first = as_bits(compute<O, R, Directed>(low(a), low(b), low(c)));
    const u32 second = as_bits(compute<O, R, Directed>(high(a), high(b), high(c)));
    return static_cast<u64>(second) << 32 | first;
  }
};
/// add and sub of a narrow `a` and an f32; fma of narrow factors and an f32 addend.
template <Arithmetic O, class F, class R, bool Directed>
struct Mixed {
  TW_LANE static float apply(u32 a, float c) {
    return compute<O, R, Directed>(decode<F>(a), c, 0.0f);
  }
  TW_LANE static float apply(u32 a, u32 b, float c) {
    return compute<O, R, Directed>(decode<F>(a), decode<F>(b), c);
  }
};

template <Arithmetic O, class R>
LaneFn on_pair(Rounding mode) {
  if constexpr (O == Arithmetic::fma) {
    if (mode == Rounding::rn) return map3<OnPair<O, R, false>, u64, u64, u64, u64>;
    return with_rounding<map3<OnPair<O, R, true>, u64, u64, u64, u64>>(mode);
  } else {
    return with_rounding<map2<OnPair<O, R, false>, u64, u64, u64>>(mode);
  }
}
template <Arithmetic O>
LaneFn find_on_pair(const Spec& spec) {
  if (!spec.only(kFtz)) return nullptr;
  return spec.has(kFtz) ? on_pair<O, F32Rules<true, false>>(spec.rounding)
                        : on_pair<O, F32Rules<false, false>>(spec.rounding);
}

template <Arithmetic O, class F, class R>
LaneFn mixed(Rounding mode) {
  if constexpr (O == Arithmetic::fma) {
    if (mode == Rounding::rn) return map3<Mixed<O, F, R, false>, float, u32, u32, float>;
    return with_rounding<map3<Mixed<O, F, R, true>, float, u32, u32, float>>(mode);
  } else {
    return with_rounding<map2<Mixed<O, F, R, false>, float, u32, float>>(mode);
  }
}
template <Arithmetic O>
LaneFn find_mixed(const Spec& spec) {
  if (spec.types[0] != Type::f32 || !spec.only(kSat)) return nullptr;
  const bool sat = spec.has(kSat);
  switch (spec.types[1]) {
    case Type::f16:
      return sat ? mixed<O, F16, F32Rules<false, true>>(spec.rounding)
                 : mixed<O, F16, F32Rules<false, false>>(spec.rounding);
    case Type::bf16:
      return sat ? mixed<O, Bf16, F32Rules<false, true>>(spec.rounding)
                 : mixed<O, Bf16, F32Rules<false, false>>(spec.rounding);
    default:
      return nullptr;
  }
}

}  // namespace

LaneFn find_float_pair(const Spec& spec) {
  const bool pair = spec.types[0] == Type::f32x2 && spec.type_count == 1;
  if (!pair && spec.type_count != 2) return nullptr;
  switch (spec.op) {
    case LaneOp::add:
      return pair ? find_on_pair<Arithmetic::add>(spec) : find_mixed<Arithmetic::add>(spec);
    case LaneOp::sub:
      return pair ? find_on_pair<Arithmetic::sub>(spec) : find_mixed<Arithmetic::sub>(spec);
    case LaneOp::mul:
      return pair ? find_on_pair<Arithmetic::mul>(spec) : nullptr;
    case LaneOp::fma:
      return pair ? find_on_pair<Arithmetic::fma>(spec) : find_mixed<Arithmetic::fma>(spec);
    default:
      return nullptr;
  }
}

}  // namespace tilewright::ptx::semantics::TW_ISA
