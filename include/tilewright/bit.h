// SPDX-License-Identifier: Apache-2.0
// Functions on the bits of integers, each one instruction.
#pragma once

#include "tilewright/value.h"

namespace tilewright {

// Integers of 32 and 64 bits.
Value popc(const Arg& x);  ///< how many bits are 1 (u32)
Value clz(const Arg& x);   ///< zero bits above the highest 1; all bits for 0 (u32)
Value brev(const Arg& x);  ///< the bits in reverse order
/// `length` bits from bit `position` on, sign-extended for signed types (PTX ISA, bfe).
Value bfe(const Arg& x, const Arg& position, const Arg& length);
/// `base` with its `length` bits from `position` on replaced by the low bits of `x`.
Value bfi(const Arg& x, const Arg& base, const Arg& position, const Arg& length);

// Integers of 32 bits.
/// Byte i of the result is byte (selector >> 4 i) & 7 of a (0 to 3) and b (4 to 7); bit 3 of the
/// digit gives that byte's sign in all its bits.
Value prmt(const Arg& a, const Arg& b, const Arg& selector);
/// The high word of high:low shifted left, or the low word of it shifted right, by shift mod 32.
Value shf_left(const Arg& low, const Arg& high, const Arg& shift);
Value shf_right(const Arg& low, const Arg& high, const Arg& shift);
/// c + the sum of the four products of a's and b's bytes, signed for s32 and unsigned for u32.
/// The type of c is the result's: s32 if either a or b is.
Value dp4a(const Arg& a, const Arg& b, const Arg& c);

}  // namespace tilewright
