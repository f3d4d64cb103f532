// SPDX-License-Identifier: Apache-2.0
// The inverse of a unit lower triangular matrix, by a block.
#pragma once

#include "tilewright/tensor.h"

namespace tilewright {

/// inverse = (I + lower)^-1, [n, n] f32 in shared memory with rows `stride` apart, n 16, 32 or 64.
/// Of `lower` the part below the diagonal counts, and zeros above it in blocks of 16 x 16 on it;
/// of the inverse the blocks on and below the diagonal are written. `scratch` is as large.
/// Blocks of 16 are solved row by row in f32; those below by products of tf32. By all threads,
/// after a barrier; ends with one.
void triangular_inverse(const Tensor& lower, const Tensor& inverse, const Tensor& scratch, int n,
                        int warps);

}  // namespace tilewright
