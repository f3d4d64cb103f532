// SPDX-License-Identifier: Apache-2.0
// Element and register types, spelled as PTX spells them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tilewright {

/// A PTX fundamental, packed or alternate-format type. `pred` is a one-bit predicate.
enum class Type : std::uint8_t {
  none,
  pred,
  b8,
  b16,
  b32,
  b64,
  b128,
  u8,
  u16,
  u32,
  u64,
  s8,
  s16,
  s32,
  s64,
  f16,
  bf16,
  tf32,
  f32,
  f64,
  f16x2,
  bf16x2,
  f32x2,
  u16x2,
  s16x2,
  e4m3,
  e5m2,
  e2m3,
  e3m2,
  e2m1,
  ue8m0,
  ue4m3,
  e4m3x2,
  e5m2x2,
  e2m3x2,
  e3m2x2,
  e2m1x2,
  ue8m0x2,
  e4m3x4,
  e5m2x4,
  u4,
  s4,
};
using enum Type;

/// Width in bits of one value; 1 for `pred`, 0 for `none`, 4 for `e2m1`, `u4` and `s4`.
int bits(Type type);
/// Width in bytes of one value in memory. Pre: a whole number of bytes.
int bytes(Type type);
/// PTX spelling without the dot: "bf16x2".
std::string_view name(Type type);
/// The type PTX spells so, without the dot; nothing for an unknown word.
std::optional<Type> type_from_name(std::string_view name);

bool is_float(
    Type type);  ///< f16 bf16 tf32 f32 f64 and the fp8, fp6, fp4 formats; not packed pairs
bool is_integer(Type type);  ///< u4..u64, s4..s64
bool is_signed(Type type);   ///< s4..s64 and the float types
bool is_bits(Type type);     ///< b8..b128
bool is_packed(Type type);   ///< two or four values in one register

}  // namespace tilewright
