// SPDX-License-Identifier: Apache-2.0
// Exact conversions between float and the narrower formats, as PTX's cvt does them.
#pragma once

#include <cstdint>

namespace tilewright {

/// How a conversion that loses bits rounds: PTX's rn and rz.
enum class NarrowRounding : std::uint8_t { nearest_even, toward_zero };
/// What a value beyond the format's largest becomes: infinity (NaN in e4m3, which has none), or, as
/// `.satfinite` has it, the largest. The fp6 and fp4 formats always saturate.
enum class Overflow : std::uint8_t { infinity, saturate };

// NaN becomes the format's canonical NaN without a sign; in fp6 and fp4, the largest value.

std::uint16_t f32_to_f16(float x, NarrowRounding rounding = NarrowRounding::nearest_even,
                         Overflow overflow = Overflow::infinity);
std::uint16_t f32_to_bf16(float x, NarrowRounding rounding = NarrowRounding::nearest_even,
                          Overflow overflow = Overflow::infinity);
/// Rounds once, unlike a conversion by way of float.
std::uint16_t f64_to_f16(double x);
std::uint16_t f64_to_bf16(double x);
/// A float of 10 mantissa bits; rounds half away from zero, as cvt.rna.tf32.f32.
float f32_to_tf32(float x);
std::uint8_t f32_to_e4m3(float x, Overflow overflow = Overflow::saturate);
std::uint8_t f32_to_e5m2(float x, Overflow overflow = Overflow::saturate);
std::uint8_t f32_to_e2m3(float x);
std::uint8_t f32_to_e3m2(float x);
std::uint8_t f32_to_e2m1(float x);
/// The power of two below (down) or above (up) |x|, from 2^-127 to 2^127; 255 is NaN.
enum class PowerRounding : std::uint8_t { down, up };
std::uint8_t f32_to_ue8m0(float x, PowerRounding rounding);

// Exact. Bits above the format's are ignored.

float f16_to_f32(std::uint16_t code);
float bf16_to_f32(std::uint16_t code);
float e4m3_to_f32(std::uint8_t code);
float e5m2_to_f32(std::uint8_t code);
float e2m3_to_f32(std::uint8_t code);
float e3m2_to_f32(std::uint8_t code);
float e2m1_to_f32(std::uint8_t code);
float ue8m0_to_f32(std::uint8_t code);

}  // namespace tilewright
