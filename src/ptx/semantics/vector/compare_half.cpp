// SPDX-License-Identifier: Apache-2.0
// set and setp for f16 and bf16, scalar and packed in pairs.
#include "ptx/semantics/vector/compare.h"
#include "ptx/semantics/vector/formats.h"

namespace tilewright::ptx::semantics::TW_ISA {
namespace {

template <class F, bool Ftz, bool High>
struct Half {
  TW_LANE static float load(u32 bits) {
    const u32 code = High ? bits >> 16 : bits;
    constexpr u32 kExponent = F::kSign - (1u << F::kMan);
    return decode<F>(Ftz && (code & kExponent) == 0 ? code & F::kSign : code);
  }
};

/// setp p|q: p of the low halves, q of the high ones.
template <MaskFn Low, MaskFn High, Bool B>
void set_predicates(const LaneArgs& args) {
  const u32 p = combined<B>(Low(args), args);
  const u32 q = combined<B>(High(args), args);
  keep_predicate(args, 0, p);
  keep_predicate(args, 1, q);
}
[[gnu::noinline]] void store_values(const LaneArgs& args, u32 low, u32 high, u32 value) {
  alignas(128) u32 out[kLanes];
  for (int i = 0; i < kLanes; ++i) {
    out[i] = ((low & kBit[i]) != 0 ? value : 0u) | ((high & kBit[i]) != 0 ? value << 16 : 0u);
  }
  keep(target<u32>(args), out, args.mask);
}
template <MaskFn Low, MaskFn High, Bool B, u32 True>
void set_values(const LaneArgs& args) {
  store_values(args, combined<B>(Low(args), args), combined<B>(High(args), args), True);
}

template <class F, bool Ftz, Compare C, Bool B>
LaneFn pair_stored(const Spec& spec) {
  constexpr MaskFn kLow = compare_mask<Half<F, Ftz, false>, float, C>;
  constexpr MaskFn kHigh = compare_mask<Half<F, Ftz, true>, float, C>;
  constexpr u32 kOne = F::kMan == 10 ? 0x3c00 : 0x3f80;
  if (spec.op == LaneOp::setp)
    return spec.type_count == 1 ? set_predicates<kLow, kHigh, B> : nullptr;
  if (spec.types[0] == spec.types[1]) return set_values<kLow, kHigh, B, kOne>;
  const bool integer = spec.types[0] == Type::u32 || spec.types[0] == Type::s32;
  return integer ? set_values<kLow, kHigh, B, 0xffffu> : nullptr;
}
template <class F, bool Ftz, Compare C>
LaneFn pair_combined(const Spec& spec) {
  switch (spec.combine) {
    case Bool::none:
      return pair_stored<F, Ftz, C, Bool::none>(spec);
    case Bool::and_:
      return pair_stored<F, Ftz, C, Bool::and_>(spec);
    case Bool::or_:
      return pair_stored<F, Ftz, C, Bool::or_>(spec);
    case Bool::xor_:
      return pair_stored<F, Ftz, C, Bool::xor_>(spec);
  }
  return nullptr;
}
template <class F, bool Ftz>
LaneFn compare_pairs(const Spec& spec) {
  switch (spec.compare) {
    case Compare::eq:
      return pair_combined<F, Ftz, Compare::eq>(spec);
    case Compare::ne:
      return pair_combined<F, Ftz, Compare::ne>(spec);
    case Compare::lt:
      return pair_combined<F, Ftz, Compare::lt>(spec);
    case Compare::le:
      return pair_combined<F, Ftz, Compare::le>(spec);
    case Compare::gt:
      return pair_combined<F, Ftz, Compare::gt>(spec);
    case Compare::ge:
      return pair_combined<F, Ftz, Compare::ge>(spec);
    case Compare::equ:
      return pair_combined<F, Ftz, Compare::equ>(spec);
    case Compare::neu:
      return pair_combined<F, Ftz, Compare::neu>(spec);
    case Compare::ltu:
      return pair_combined<F, Ftz, Compare::ltu>(spec);
    case Compare::leu:
      return pair_combined<F, Ftz, Compare::leu>(spec);
    case Compare::gtu:
      return pair_combined<F, Ftz, Compare::gtu>(spec);
    case Compare::geu:
      return pair_combined<F, Ftz, Compare::geu>(spec);
    case Compare::num:
      return pair_combined<F, Ftz, Compare::num>(spec);
    case Compare::nan:
      return pair_combined<F, Ftz, Compare::nan>(spec);
    default:
      return nullptr;
  }
}

}  // namespace

LaneFn find_compare_half(const Spec& spec, Type type) {
  const bool ftz = spec.has(kFtz);
  switch (type) {
    case Type::f16:
      return ftz ? compare<Half<F16, true, false>, float>(spec)
                 : compare<Half<F16, false, false>, float>(spec);
    case Type::bf16:
      return ftz ? nullptr : compare<Half<Bf16, false, false>, float>(spec);
    case Type::f16x2:
      return ftz ? compare_pairs<F16, true>(spec) : compare_pairs<F16, false>(spec);
    case Type::bf16x2:
      return ftz ? nullptr : compare_pairs<Bf16, false>(spec);
    default:
      return nullptr;
  }
}

}  // namespace tilewright::ptx::semantics::TW_ISA
