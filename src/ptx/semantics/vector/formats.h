// SPDX-License-Identifier: Apache-2.0
// Narrow floating-point formats: exact decoding to float, encoding in every rounding mode.
#pragma once

#include "ptx/semantics/vector/floats.h"

namespace tilewright::ptx::semantics::TW_ISA {

/// A format of sign, Exp exponent and Man mantissa bits, the smallest at 2^(1-Bias-Man).
/// Max is the code of the largest finite value, Inf what overflow becomes without saturation.
template <unsigned Exp, unsigned Man, unsigned Bias, u32 Max, u32 Inf, u32 Nan>
struct Format {
  static constexpr unsigned kExp = Exp, kMan = Man, kBias = Bias, kBits = 1 + Exp + Man;
  static constexpr u32 kMax = Max, kInf = Inf, kNan = Nan, kSign = 1u << (Exp + Man);
};
using F16 = Format<5, 10, 15, 0x7bff, 0x7c00, 0x7fff>;
using Bf16 = Format<8, 7, 127, 0x7f7f, 0x7f80, 0x7fff>;
using E4m3 = Format<4, 3, 7, 0x7e, 0x7f, 0x7f>;
using E5m2 = Format<5, 2, 15, 0x7b, 0x7c, 0x7f>;
using E2m3 = Format<2, 3, 1, 0x1f, 0x1f, 0x1f>;  // no infinity, no NaN: both become the largest
using E3m2 = Format<3, 2, 3, 0x1f, 0x1f, 0x1f>;
using E2m1 = Format<2, 1, 1, 0x7, 0x7, 0x7>;

/// Whether `discarded` low bits (of which `half` is the top one) carry into `kept`.
template <Rounding R>
TW_LANE bool rounds_up(u32 kept, u32 discarded, u32 half, bool negative) {
  if constexpr (R == Rounding::rn) return discarded + (kept & 1) > half;  // ties go to even
  if constexpr (R == Rounding::rna) return discarded >= half;
  if constexpr (R == Rounding::rm) return negative & (discarded != 0);
  if constexpr (R == Rounding::rp) return !negative & (discarded != 0);
  return false;
}

/// NaN gets the format's NaN without a sign; Saturates: overflow and infinity become the largest.
template <class F, Rounding R, bool Saturates>
TW_LANE u32 encode(float x) {
  const u32 bits = as_bits(x);
  const bool negative = (bits >> 31) != 0;
  const u32 a = bits & 0x7fffffffu;
  constexpr bool kNearest = R == Rounding::rn || R == Rounding::rna;
  const bool away = kNearest || (R == Rounding::rm && negative) || (R == Rounding::rp && !negative);
  const u32 overflow = !Saturates && (away || a == 0x7f800000u) ? F::kInf : F::kMax;
  if constexpr (F::kExp == 8) {  // a prefix of a float: the carry moves into the exponent by itself
    constexpr u32 kDropped = 23 - F::kMan;
    const u32 prefix = a >> kDropped;
    const u32 rest = a & ((1u << kDropped) - 1);
    const u32 rounded_up =
        prefix + (rounds_up<R>(prefix, rest, 1u << (kDropped - 1), negative) ? 1u : 0u);
    const u32 finite = rounded_up > F::kMax ? overflow : rounded_up;
    return a > 0x7f800000u ? F::kNan : finite | (negative ? F::kSign : 0u);
  }
  const u32 field = a >> 23;
  const u32 exponent = field == 0 ? 1 : field;
  const u32 mantissa = (a & 0x7fffffu) | (field == 0 ? 0u : 0x800000u);
  constexpr u32 kLowest = 128 - F::kBias;  // exponent field of the smallest normal number
  const u32 below = exponent < kLowest ? kLowest - exponent : 0;
  const u32 wanted = 23 - F::kMan + below;
  const u32 shift = wanted < 25 ? wanted : 25;
  const u32 kept = mantissa >> shift;
  const u32 discarded = mantissa & ((1u << shift) - 1);
  const u32 carry = rounds_up<R>(kept, discarded, 1u << (shift - 1), negative) ? 1 : 0;
  u32 code = (exponent > kLowest ? (exponent - kLowest) << F::kMan : 0u) + kept + carry;
  code = code > F::kMax ? overflow : code;
  code |= negative ? F::kSign : 0u;
  return a > 0x7f800000u ? F::kNan : code;
}

/// The value of a code, whatever lies above its bits.
template <class F>
TW_LANE float decode(u32 code) {
  const u32 magnitude = (code & (F::kSign - 1)) << (23 - F::kMan);
  const u32 sign = (code & F::kSign) << (32 - F::kBits);
  u32 bits = 0;
  if constexpr (F::kExp == 8) {
    bits = magnitude;
  } else {  // the multiplication moves the exponent and normalises what is subnormal here
    constexpr u32 kScale = (127u + 127u - F::kBias) << 23;
    bits = as_bits(as_float(magnitude) * as_float(kScale));
    constexpr bool kHasNan = F::kNan != F::kMax;
    constexpr bool kHasInf = F::kNan != F::kInf;
    if constexpr (kHasInf) {
      const bool special = (code & (F::kSign - 1)) >= F::kInf;
      bits = special ? magnitude | 0x7f800000u : bits;
    } else if constexpr (kHasNan) {
      bits = (code & (F::kSign - 1)) == F::kNan ? kNanF32 : bits;
    }
  }
  return as_float(bits | sign);
}

/// ue8m0 is an exponent alone, here of the magnitude: 0 is 2^-127 and what is smaller, 255 NaN.
template <bool Up, bool Saturates>
TW_LANE u32 encode_ue8m0(float x) {
  const u32 a = as_bits(x) & 0x7fffffffu;
  const bool carries = Up && a > 0x00400000u && (a & 0x7fffffu) != 0;  // 0x00400000: 2^-127
  const u32 code = (a >> 23) + (carries ? 1u : 0u);
  const u32 largest = Saturates ? 254u : 255u;
  return a > 0x7f800000u ? 255u : code < largest ? code : largest;
}
/// As a bf16 code.
TW_LANE u32 decode_ue8m0(u32 code) {
  return code == 255 ? 0x7fffu : code == 0 ? 0x0040u : code << 7;
}

/// tf32 is a float of 10 mantissa bits, held in a 32-bit register.
template <Rounding R, bool Saturates>
TW_LANE u32 encode_tf32(float x) {
  const u32 bits = as_bits(x);
  const u32 a = bits & 0x7fffffffu;
  const u32 kept = a >> 13;
  const u32 carry = rounds_up<R>(kept, a & 0x1fffu, 0x1000u, (bits >> 31) != 0) ? 1 : 0;
  u32 code = (kept + carry) << 13;
  code = Saturates && code >= 0x7f800000u ? 0x7f7fe000u : code;
  return a > 0x7f800000u ? kNanF32 : code | (bits & 0x80000000u);
}

}  // namespace tilewright::ptx::semantics::TW_ISA
