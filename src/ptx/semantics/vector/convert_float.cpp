// SPDX-License-Identifier: Apache-2.0
// cvt between scalar floating-point types.
#include "ptx/semantics/vector/convert_rules.h"

namespace tilewright::ptx::semantics::TW_ISA {
namespace {

template <class F, class Load, bool Ftz, bool Sat>
LaneFn to_narrow_rounded(Rounding mode) {
  switch (mode) {
    case Rounding::none:  // a format that holds every value of the source
    case Rounding::rn:
      return convert<Load, ToNarrow<F, Rounding::rn, false, false, Sat, Ftz>>;
    case Rounding::rz:
      return convert<Load, ToNarrow<F, Rounding::rz, false, false, Sat, Ftz>>;
    case Rounding::rm:
      return convert<Load, ToNarrow<F, Rounding::rm, false, false, Sat, Ftz>>;
    case Rounding::rp:
      return convert<Load, ToNarrow<F, Rounding::rp, false, false, Sat, Ftz>>;
    default:
      return nullptr;
  }
}
template <class F, class Load>
LaneFn to_narrow(const Spec& spec) {
  if (!spec.only(kSat)) return nullptr;
  return spec.has(kSat) ? to_narrow_rounded<F, Load, false, true>(spec.rounding)
                        : to_narrow_rounded<F, Load, false, false>(spec.rounding);
}
template <class F, Rounding R>
LaneFn f32_to_narrow_limited(const Spec& spec) {
  switch (spec.flags) {
    case kRelu:
      return convert<Native<float>, ToNarrow<F, R, false, true>>;
    case kSatfinite:
      return convert<Native<float>, ToNarrow<F, R, true, false>>;
    case kRelu | kSatfinite:
      return convert<Native<float>, ToNarrow<F, R, true, true>>;
    default:
      return nullptr;
  }
}
template <class F>
LaneFn f32_to_narrow(const Spec& spec) {
  if (spec.rounding == Rounding::none) return nullptr;
  switch (spec.flags) {
    case 0:
    case kSat:
      return to_narrow<F, Native<float>>(spec);
    case kFtz:
      return to_narrow_rounded<F, Native<float>, true, false>(spec.rounding);
    case kFtz | kSat:
      return to_narrow_rounded<F, Native<float>, true, true>(spec.rounding);
    default:
      break;
  }
  return spec.rounding == Rounding::rn   ? f32_to_narrow_limited<F, Rounding::rn>(spec)
         : spec.rounding == Rounding::rz ? f32_to_narrow_limited<F, Rounding::rz>(spec)
                                         : nullptr;
}
template <class F, bool Sat>
LaneFn narrow_integral(Rounding mode) {
  switch (mode) {
    case Rounding::none:
      return convert<Narrow<F>, NarrowIntegral<F, Rounding::none, Sat>>;
    case Rounding::rni:
      return convert<Narrow<F>, NarrowIntegral<F, Rounding::rni, Sat>>;
    case Rounding::rzi:
      return convert<Narrow<F>, NarrowIntegral<F, Rounding::rzi, Sat>>;
    case Rounding::rmi:
      return convert<Narrow<F>, NarrowIntegral<F, Rounding::rmi, Sat>>;
    case Rounding::rpi:
      return convert<Narrow<F>, NarrowIntegral<F, Rounding::rpi, Sat>>;
    default:
      return nullptr;
  }
}
template <class F>
LaneFn same_narrow(const Spec& spec) {
  if (!spec.only(kSat | kFtz)) return nullptr;  // .ftz is of f32 alone
  return spec.has(kSat) ? narrow_integral<F, true>(spec.rounding)
                        : narrow_integral<F, false>(spec.rounding);
}

template <class F, class Other>
LaneFn any_to_narrow(const Spec& spec, Type same, Type other) {
  if (spec.types[1] == same) return same_narrow<F>(spec);
  if (spec.types[1] == other) return to_narrow<F, Narrow<Other>>(spec);
  if (spec.types[1] == Type::f32) return f32_to_narrow<F>(spec);
  if (spec.types[1] == Type::f64 && spec.rounding != Rounding::none) {
    return to_narrow<F, Native<double>>(spec);
  }
  return nullptr;
}

/// From a type whose values f32 or f64 (`Op`) all holds, or from itself with an integer rounding.
template <template <Rounding, bool, bool> class Op, class Load, bool Ftz, bool Sat>
LaneFn widen_rounded(Rounding mode) {
  switch (mode) {
    case Rounding::none:
      return convert<Load, Op<Rounding::none, Ftz, Sat>>;
    case Rounding::rni:
      return convert<Load, Op<Rounding::rni, Ftz, Sat>>;
    case Rounding::rzi:
      return convert<Load, Op<Rounding::rzi, Ftz, Sat>>;
    case Rounding::rmi:
      return convert<Load, Op<Rounding::rmi, Ftz, Sat>>;
    case Rounding::rpi:
      return convert<Load, Op<Rounding::rpi, Ftz, Sat>>;
    default:
      return nullptr;
  }
}
template <template <Rounding, bool, bool> class Op, class Load>
LaneFn widen(const Spec& spec) {
  switch (spec.flags) {
    case 0:
      return widen_rounded<Op, Load, false, false>(spec.rounding);
    case kFtz:
      return widen_rounded<Op, Load, true, false>(spec.rounding);
    case kSat:
      return widen_rounded<Op, Load, false, true>(spec.rounding);
    case kFtz | kSat:
      return widen_rounded<Op, Load, true, true>(spec.rounding);
    default:
      return nullptr;
  }
}

LaneFn f64_to_f32(const Spec& spec) {
  if (spec.rounding == Rounding::none) return nullptr;
  using Load = Native<double>;
  switch (spec.flags) {
    case 0:
      return with_rounding<convert<Load, ToF32<Rounding::none, false, false>>>(spec.rounding);
    case kFtz:
      return with_rounding<convert<Load, ToF32<Rounding::none, true, false>>>(spec.rounding);
    case kSat:
      return with_rounding<convert<Load, ToF32<Rounding::none, false, true>>>(spec.rounding);
    case kFtz | kSat:
      return with_rounding<convert<Load, ToF32<Rounding::none, true, true>>>(spec.rounding);
    default:
      return nullptr;
  }
}
LaneFn to_f32(const Spec& spec) {
  const bool widens = spec.types[1] != Type::f32;
  if (spec.types[1] == Type::f64) return f64_to_f32(spec);
  if (widens && spec.rounding != Rounding::none) return nullptr;
  switch (spec.types[1]) {
    case Type::f16:
      return widen<ToF32, Narrow<F16>>(spec);
    case Type::bf16:
      return widen<ToF32, Narrow<Bf16>>(spec);
    case Type::f32:
      return widen<ToF32, Native<float>>(spec);
    default:
      return nullptr;
  }
}
LaneFn to_f64(const Spec& spec) {
  const bool widens = spec.types[1] != Type::f64;
  if (widens && spec.rounding != Rounding::none) return nullptr;
  if (spec.has(kFtz) && spec.types[1] != Type::f32) return nullptr;
  switch (spec.types[1]) {
    case Type::f16:
      return widen<ToF64, Narrow<F16>>(spec);
    case Type::bf16:
      return widen<ToF64, Narrow<Bf16>>(spec);
    case Type::f32:
      return widen<ToF64, Native<float>>(spec);
    case Type::f64:
      return widen<ToF64, Native<double>>(spec);
    default:
      return nullptr;
  }
}

template <Rounding R>
LaneFn to_tf32_rounded(std::uint32_t flags) {
  switch (flags) {
    case 0:
      return convert<Native<float>, ToTf32<R, false, false>>;
    case kRelu:
      return convert<Native<float>, ToTf32<R, false, true>>;
    case kSatfinite:
      return convert<Native<float>, ToTf32<R, true, false>>;
    case kRelu | kSatfinite:
      return convert<Native<float>, ToTf32<R, true, true>>;
    default:
      return nullptr;
  }
}
LaneFn to_tf32(const Spec& spec) {
  if (spec.types[1] != Type::f32) return nullptr;
  switch (spec.rounding) {
    case Rounding::rna:
      return to_tf32_rounded<Rounding::rna>(spec.flags);
    case Rounding::rn:
      return to_tf32_rounded<Rounding::rn>(spec.flags);
    case Rounding::rz:
      return to_tf32_rounded<Rounding::rz>(spec.flags);
    default:
      return nullptr;
  }
}

}  // namespace

LaneFn find_convert_float(const Spec& spec) {
  switch (spec.types[0]) {
    case Type::f16:
      return any_to_narrow<F16, Bf16>(spec, Type::f16, Type::bf16);
    case Type::bf16:
      return any_to_narrow<Bf16, F16>(spec, Type::bf16, Type::f16);
    case Type::tf32:
      return to_tf32(spec);
    case Type::f32:
      return to_f32(spec);
    case Type::f64:
      return to_f64(spec);
    default:
      return nullptr;
  }
}

}  // namespace tilewright::ptx::semantics::TW_ISA
