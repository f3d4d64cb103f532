// SPDX-License-Identifier: Apache-2.0
// Mathematical functions on traced values. docs/maths.md has the error of each and what it costs.
#pragma once

#include "tilewright/value.h"

namespace tilewright {

/// All take f32 (exp, log, pow, sin, cos and lgamma also f64) and give C's results for NaN,
/// infinities, zeros and subnormal numbers (C23, annex F), which nothing flushes. f16 and bf16:
/// convert with .to(f32). exp2 and rsqrt are one approximate instruction each; erf, tanh and cbrt
/// contain some; the others are correctly rounded operations only, so that a GPU and the emulator
/// agree bit for bit.
Value exp(const Arg& x);
Value exp2(const Arg& x);
Value expm1(const Arg& x);  ///< e^x - 1, exact to the last digits also near 0
Value log(const Arg& x);
Value log2(const Arg& x);
Value log1p(const Arg& x);  ///< log(1 + x), exact to the last digits also near 0
Value pow(const Arg& x, const Arg& y);
Value cbrt(const Arg& x);
Value rsqrt(const Arg& x);
Value hypot(const Arg& x, const Arg& y);  ///< sqrt(x^2 + y^2) without overflow
Value fmod(const Arg& x, const Arg& y);   ///< exact, with the sign of x

/// Radians; any f32 is reduced in full, |x| >= 2^17 behind a branch.
Value sin(const Arg& x);
Value cos(const Arg& x);
Value tan(const Arg& x);
Value asin(const Arg& x);
Value acos(const Arg& x);
Value atan(const Arg& x);
Value atan2(const Arg& y, const Arg& x);
Value sinh(const Arg& x);
Value cosh(const Arg& x);
Value tanh(const Arg& x);

Value erf(const Arg& x);
Value erfc(const Arg& x);  ///< 1 - erf(x), exact to the last digits also where it is tiny
Value lgamma(const Arg& x);

// Activations, in terms of the above.
Value sigmoid(const Arg& x);    ///< 1 / (1 + e^-x)
Value silu(const Arg& x);       ///< x sigmoid(x)
Value relu(const Arg& x);       ///< max(x, 0); NaN stays
Value gelu(const Arg& x);       ///< x / 2 (1 + erf(x / sqrt(2)))
Value gelu_tanh(const Arg& x);  ///< x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))

}  // namespace tilewright
