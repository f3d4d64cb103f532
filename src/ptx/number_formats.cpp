// SPDX-License-Identifier: Apache-2.0
// Conversions of single numbers, by the code that the emulator's cvt runs on.
#include "tilewright/number_formats.h"

#include "ptx/semantics/vector/formats.h"

namespace tilewright {
namespace {

namespace formats = ptx::semantics::TW_ISA;
using ptx::semantics::Rounding;

template <class F>
std::uint32_t narrow(float x, NarrowRounding rounding, Overflow overflow) {
  if (rounding == NarrowRounding::toward_zero) {
    return overflow == Overflow::saturate ? formats::encode<F, Rounding::rz, true>(x)
                                          : formats::encode<F, Rounding::rz, false>(x);
  }
  return overflow == Overflow::saturate ? formats::encode<F, Rounding::rn, true>(x)
                                        : formats::encode<F, Rounding::rn, false>(x);
}
template <class F>
std::uint8_t narrow8(float x, Overflow overflow) {
  return static_cast<std::uint8_t>(narrow<F>(x, NarrowRounding::nearest_even, overflow));
}

}  // namespace

std::uint16_t f32_to_f16(float x, NarrowRounding rounding, Overflow overflow) {
  return static_cast<std::uint16_t>(narrow<formats::F16>(x, rounding, overflow));
}
std::uint16_t f32_to_bf16(float x, NarrowRounding rounding, Overflow overflow) {
  return static_cast<std::uint16_t>(narrow<formats::Bf16>(x, rounding, overflow));
}
std::uint16_t f64_to_f16(double x) { return f32_to_f16(formats::to_odd(x)); }
std::uint16_t f64_to_bf16(double x) { return f32_to_bf16(formats::to_odd(x)); }
float f32_to_tf32(float x) {
  return formats::as_float(formats::encode_tf32<Rounding::rna, false>(x));
}
std::uint8_t f32_to_e4m3(float x, Overflow overflow) { return narrow8<formats::E4m3>(x, overflow); }
std::uint8_t f32_to_e5m2(float x, Overflow overflow) { return narrow8<formats::E5m2>(x, overflow); }
std::uint8_t f32_to_e2m3(float x) { return narrow8<formats::E2m3>(x, Overflow::saturate); }
std::uint8_t f32_to_e3m2(float x) { return narrow8<formats::E3m2>(x, Overflow::saturate); }
std::uint8_t f32_to_e2m1(float x) { return narrow8<formats::E2m1>(x, Overflow::saturate); }
std::uint8_t f32_to_ue8m0(float x, PowerRounding rounding) {
  return static_cast<std::uint8_t>(rounding == PowerRounding::up
                                       ? formats::encode_ue8m0<true, true>(x)
                                       : formats::encode_ue8m0<false, true>(x));
}

float f16_to_f32(std::uint16_t code) { return formats::decode<formats::F16>(code); }
float bf16_to_f32(std::uint16_t code) { return formats::decode<formats::Bf16>(code); }
float e4m3_to_f32(std::uint8_t code) { return formats::decode<formats::E4m3>(code); }
float e5m2_to_f32(std::uint8_t code) { return formats::decode<formats::E5m2>(code); }
float e2m3_to_f32(std::uint8_t code) { return formats::decode<formats::E2m3>(code); }
float e3m2_to_f32(std::uint8_t code) { return formats::decode<formats::E3m2>(code); }
float e2m1_to_f32(std::uint8_t code) { return formats::decode<formats::E2m1>(code); }
float ue8m0_to_f32(std::uint8_t code) {
  return formats::as_float(formats::decode_ue8m0(code) << 16);
}

}  // namespace tilewright
