// SPDX-License-Identifier: Apache-2.0
// What set and setp share: a comparison of 32 lanes to a mask, combined with a predicate and
// stored.
#pragma once

#include "ptx/semantics/vector/floats.h"

namespace tilewright::ptx::semantics::TW_ISA {

template <Compare C, class T>
TW_LANE bool holds(T a, T b) {
  const bool unordered = a != a || b != b;
  if constexpr (C == Compare::eq) return a == b;
  if constexpr (C == Compare::ne) return !unordered && a != b;
  if constexpr (C == Compare::lt || C == Compare::lo) return a < b;
  if constexpr (C == Compare::le || C == Compare::ls) return a <= b;
  if constexpr (C == Compare::gt || C == Compare::hi) return a > b;
  if constexpr (C == Compare::ge || C == Compare::hs) return a >= b;
  if constexpr (C == Compare::equ) return unordered || a == b;
  if constexpr (C == Compare::neu) return unordered || a != b;
  if constexpr (C == Compare::ltu) return unordered || a < b;
  if constexpr (C == Compare::leu) return unordered || a <= b;
  if constexpr (C == Compare::gtu) return unordered || a > b;
  if constexpr (C == Compare::geu) return unordered || a >= b;
  if constexpr (C == Compare::num) return !unordered;
  if constexpr (C == Compare::nan) return unordered;
}

template <class T>
struct Plain {
  TW_LANE static T load(Store<T> bits) { return get<T>(bits); }
};
struct Flushed {
  TW_LANE static float load(u32 bits) { return flush(get<float>(bits)); }
};

using MaskFn = u32 (*)(const LaneArgs&);

/// The lanes where the comparison holds, active or not.
template <class Load, class T, Compare C>
[[gnu::noinline]] u32 compare_mask(const LaneArgs& args) {
  const Store<T>* a = source<T>(args, 0);
  const Store<T>* b = source<T>(args, 1);
  u32 mask = 0;
  for (int i = 0; i < kLanes; ++i) {
    mask |= holds<C>(Load::load(a[i]), Load::load(b[i])) ? kBit[i] : 0u;
  }
  return mask;
}

template <Bool B>
TW_LANE u32 combined(u32 mask, const LaneArgs& args) {
  if constexpr (B == Bool::none) return mask;
  const u32 c = predicate(args, 2);
  return B == Bool::and_ ? mask & c : B == Bool::or_ ? mask | c : mask ^ c;
}

/// setp p|q: q is the complement of the comparison, combined likewise.
template <MaskFn M, Bool B>
void set_predicate(const LaneArgs& args) {
  const u32 mask = M(args);
  const u32 p = combined<B>(mask, args);
  const u32 q = combined<B>(~mask, args);
  keep_predicate(args, 0, p);
  keep_predicate(args, 1, q);
}
/// Shared by all the functions below, which are many and should stay small.
[[gnu::noinline]] inline void store_value(const LaneArgs& args, u32 mask, u32 value) {
  alignas(128) u32 out[kLanes];
  for (int i = 0; i < kLanes; ++i)
    out[i] = (mask & kBit[i]) != 0 ? value : 0u;
  keep(target<u32>(args), out, args.mask);
}
template <MaskFn M, Bool B, u32 True>
void set_value(const LaneArgs& args) {
  store_value(args, combined<B>(M(args), args), True);
}

template <MaskFn M, Bool B>
LaneFn store_as(const Spec& spec) {
  if (spec.op == LaneOp::setp) return spec.type_count == 1 ? set_predicate<M, B> : nullptr;
  switch (spec.types[0]) {
    case Type::u16:
    case Type::s16:
    case Type::u32:
    case Type::s32:
      return set_value<M, B, 0xffffffffu>;
    case Type::f32:
      return set_value<M, B, 0x3f800000u>;
    case Type::f16:
      return set_value<M, B, 0x3c00u>;
    case Type::bf16:
      return set_value<M, B, 0x3f80u>;
    default:
      return nullptr;
  }
}
template <MaskFn M>
LaneFn combine_with(const Spec& spec) {
  switch (spec.combine) {
    case Bool::none:
      return store_as<M, Bool::none>(spec);
    case Bool::and_:
      return store_as<M, Bool::and_>(spec);
    case Bool::or_:
      return store_as<M, Bool::or_>(spec);
    case Bool::xor_:
      return store_as<M, Bool::xor_>(spec);
  }
  return nullptr;
}

template <class Load, class T>
LaneFn compare(const Spec& spec) {
  constexpr bool kFloat = static_cast<T>(0.5f) != static_cast<T>(0);
  constexpr bool kUnsigned = !kFloat && static_cast<T>(-1) > static_cast<T>(0);
  switch (spec.compare) {
    case Compare::eq:
      return combine_with<compare_mask<Load, T, Compare::eq>>(spec);
    case Compare::ne:
      return combine_with<compare_mask<Load, T, Compare::ne>>(spec);
    case Compare::lt:
      return combine_with<compare_mask<Load, T, Compare::lt>>(spec);
    case Compare::le:
      return combine_with<compare_mask<Load, T, Compare::le>>(spec);
    case Compare::gt:
      return combine_with<compare_mask<Load, T, Compare::gt>>(spec);
    case Compare::ge:
      return combine_with<compare_mask<Load, T, Compare::ge>>(spec);
    default:
      break;
  }
  if constexpr (kUnsigned) {
    switch (spec.compare) {
      case Compare::lo:
        return combine_with<compare_mask<Load, T, Compare::lt>>(spec);
      case Compare::ls:
        return combine_with<compare_mask<Load, T, Compare::le>>(spec);
      case Compare::hi:
        return combine_with<compare_mask<Load, T, Compare::gt>>(spec);
      case Compare::hs:
        return combine_with<compare_mask<Load, T, Compare::ge>>(spec);
      default:
        return nullptr;
    }
  }
  if constexpr (kFloat) {
    switch (spec.compare) {
      case Compare::equ:
        return combine_with<compare_mask<Load, T, Compare::equ>>(spec);
      case Compare::neu:
        return combine_with<compare_mask<Load, T, Compare::neu>>(spec);
      case Compare::ltu:
        return combine_with<compare_mask<Load, T, Compare::ltu>>(spec);
      case Compare::leu:
        return combine_with<compare_mask<Load, T, Compare::leu>>(spec);
      case Compare::gtu:
        return combine_with<compare_mask<Load, T, Compare::gtu>>(spec);
      case Compare::geu:
        return combine_with<compare_mask<Load, T, Compare::geu>>(spec);
      case Compare::num:
        return combine_with<compare_mask<Load, T, Compare::num>>(spec);
      case Compare::nan:
        return combine_with<compare_mask<Load, T, Compare::nan>>(spec);
      default:
        return nullptr;
    }
  }
  return nullptr;
}

LaneFn find_compare_half(const Spec& spec, Type type);

}  // namespace tilewright::ptx::semantics::TW_ISA
