// SPDX-License-Identifier: Apache-2.0
// Arithmetic of matrix instructions on decoded elements: exact products, sums in a fixed order.
#pragma once

#include "tilewright/type.h"

#include <cstdint>

namespace tilewright::ptx::semantics {

struct MatrixExtent {
  int m = 0, n = 0, k = 0;
};

/// d = a b + c with matrices row-major: a (m,k), b (k,n), c and d (m,n); d may be c, and nothing
/// else may overlap. Products of the narrow formats are exact in f32; each sum is rounded to f32, k
/// ascending. A tensor core keeps other low bits: compare with a tolerance.
void multiply_add(const MatrixExtent& extent, const float* a, const float* b, const float* c,
                  float* d);
/// The same of f64, one fused multiply-add for each k.
void multiply_add(const MatrixExtent& extent, const double* a, const double* b, const double* c,
                  double* d);
/// Whether a sum of s32 wraps, or stops at the type's ends (`.satfinite`).
enum class IntegerOverflow : std::uint8_t { wrap, saturate };
/// The same of integers; saturation is applied to the exact sum.
void multiply_add(const MatrixExtent& extent, const std::int32_t* a, const std::int32_t* b,
                  const std::int32_t* c, std::int32_t* d, IntegerOverflow overflow);

}  // namespace tilewright::ptx::semantics
