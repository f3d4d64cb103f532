// SPDX-License-Identifier: Apache-2.0
// cvt from and to integers.
#include "ptx/semantics/vector/convert_rules.h"

namespace tilewright::ptx::semantics::TW_ISA {
namespace {

template <class Load, class D, bool Ftz>
LaneFn float_to(Rounding mode) {
  switch (mode) {
    case Rounding::rni:
      return convert<Load, ToInteger<D, Rounding::rni, Ftz>>;
    case Rounding::rzi:
      return convert<Load, ToInteger<D, Rounding::rzi, Ftz>>;
    case Rounding::rmi:
      return convert<Load, ToInteger<D, Rounding::rmi, Ftz>>;
    case Rounding::rpi:
      return convert<Load, ToInteger<D, Rounding::rpi, Ftz>>;
    default:
      return nullptr;
  }
}
template <class D>
LaneFn float_to_integer(const Spec& spec) {
  if (!spec.only(kSat | kFtz)) return nullptr;
  const bool ftz = spec.has(kFtz);  // of f32 alone; elsewhere it has no effect
  switch (spec.types[1]) {
    case Type::f16:
      return float_to<Narrow<F16>, D, false>(spec.rounding);
    case Type::bf16:
      return ftz ? nullptr : float_to<Narrow<Bf16>, D, false>(spec.rounding);
    case Type::f32:
      return ftz ? float_to<Native<float>, D, true>(spec.rounding)
                 : float_to<Native<float>, D, false>(spec.rounding);
    case Type::f64:
      return float_to<Native<double>, D, false>(spec.rounding);
    default:
      return nullptr;
  }
}

template <class D, class S>
LaneFn resize(bool saturates) {
  return saturates ? convert<Native<S>, ToOtherInteger<D, true>>
                   : convert<Native<S>, ToOtherInteger<D, false>>;
}
template <class D>
LaneFn to_integer(const Spec& spec) {
  const bool saturates = spec.has(kSat);
  if (is_float(spec.types[1])) return float_to_integer<D>(spec);
  if (!spec.only(kSat) || spec.rounding != Rounding::none) return nullptr;
  switch (spec.types[1]) {
    case Type::u8:
      return resize<D, u8>(saturates);
    case Type::s8:
      return resize<D, s8>(saturates);
    case Type::u16:
      return resize<D, u16>(saturates);
    case Type::s16:
      return resize<D, s16>(saturates);
    case Type::u32:
      return resize<D, u32>(saturates);
    case Type::s32:
      return resize<D, s32>(saturates);
    case Type::u64:
      return resize<D, u64>(saturates);
    case Type::s64:
      return resize<D, s64>(saturates);
    default:
      return nullptr;
  }
}

template <class F, class S>
LaneFn integer_to_narrow(const Spec& spec) {
  if (spec.has(kSat)) {
    return convert<Native<S>, ToNarrow<F, Rounding::rn, false, false, true>>;  // 0 or 1 in any mode
  }
  switch (spec.rounding) {
    case Rounding::rn:
      return convert<Native<S>, ToNarrow<F, Rounding::rn>>;
    case Rounding::rz:
      return convert<Native<S>, ToNarrow<F, Rounding::rz>>;
    case Rounding::rm:
      return convert<Native<S>, ToNarrow<F, Rounding::rm>>;
    case Rounding::rp:
      return convert<Native<S>, ToNarrow<F, Rounding::rp>>;
    default:
      return nullptr;
  }
}
template <class S>
LaneFn from_integer(const Spec& spec) {
  if (!spec.only(kSat | kFtz) || spec.rounding == Rounding::none)
    return nullptr;  // no integer is subnormal
  const bool sat = spec.has(kSat);
  switch (spec.types[0]) {
    case Type::f16:
      return integer_to_narrow<F16, S>(spec);
    case Type::bf16:
      return integer_to_narrow<Bf16, S>(spec);
    case Type::f32:
      return sat ? with_rounding<convert<Native<S>, IntegerTo<float, true>>>(spec.rounding)
                 : with_rounding<convert<Native<S>, IntegerTo<float, false>>>(spec.rounding);
    case Type::f64:
      return sat ? with_rounding<convert<Native<S>, IntegerTo<double, true>>>(spec.rounding)
                 : with_rounding<convert<Native<S>, IntegerTo<double, false>>>(spec.rounding);
    default:
      return nullptr;
  }
}

}  // namespace

LaneFn find_convert(const Spec& spec) {
  if (spec.has(kPack)) return find_convert_packed(spec);
  if (spec.type_count != 2) return nullptr;
  switch (spec.types[0]) {
    case Type::u8:
      return to_integer<u8>(spec);
    case Type::s8:
      return to_integer<s8>(spec);
    case Type::u16:
      return to_integer<u16>(spec);
    case Type::s16:
      return to_integer<s16>(spec);
    case Type::u32:
      return to_integer<u32>(spec);
    case Type::s32:
      return to_integer<s32>(spec);
    case Type::u64:
      return to_integer<u64>(spec);
    case Type::s64:
      return to_integer<s64>(spec);
    default:
      break;
  }
  switch (spec.types[1]) {
    case Type::u8:
      return from_integer<u8>(spec);
    case Type::s8:
      return from_integer<s8>(spec);
    case Type::u16:
      return from_integer<u16>(spec);
    case Type::s16:
      return from_integer<s16>(spec);
    case Type::u32:
      return from_integer<u32>(spec);
    case Type::s32:
      return from_integer<s32>(spec);
    case Type::u64:
      return from_integer<u64>(spec);
    case Type::s64:
      return from_integer<s64>(spec);
    default:
      break;
  }
  if (const LaneFn fn = find_convert_float(spec)) return fn;
  return find_convert_packed(spec);
}

}  // namespace tilewright::ptx::semantics::TW_ISA
