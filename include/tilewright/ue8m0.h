// SPDX-License-Identifier: Apache-2.0
// Conversion to ue8m0, the powers of two that scale blocks (OCP MX).
#pragma once

#include "tilewright/fragment.h"
#include "tilewright/number_formats.h"
#include "tilewright/value.h"

namespace tilewright {

/// The power of two at or below (down) or above (up) |x|, from 2^-127 to 2^127, as ue8m0; NaN keeps
/// its code 255. x is f32. Back to f32 or bf16: `.to()`, exact. One instruction for two elements
/// from sm_100a on, else integer arithmetic with the same results.
Value to_ue8m0(const Arg& x, PowerRounding rounding);
Fragment to_ue8m0(const Fragment& x, PowerRounding rounding, SourceLoc at = SourceLoc::here());

}  // namespace tilewright
