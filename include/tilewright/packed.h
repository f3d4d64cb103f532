// SPDX-License-Identifier: Apache-2.0
// Two values in one register: put together, taken apart. Operators work on both halves at once.
#pragma once

#include "tilewright/value.h"

namespace tilewright {

/// f16x2, bf16x2, u16x2, s16x2 or f32x2 of two values of one type. `low` is the first in memory.
/// `+ - * min max` and `fma` take such pairs, by one instruction where the target has it (f16x2 and
/// bf16x2; add, min and max of 16-bit integers from sm_90 on; f32x2 from sm_100 on), else half by
/// half, with the same results.
Value pack(const Arg& low, const Arg& high);

struct Unpacked {
  Value low, high;
};
Unpacked unpack(const Arg& packed);

}  // namespace tilewright
