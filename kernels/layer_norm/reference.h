// SPDX-License-Identifier: Apache-2.0
// The float64 reference of layer_norm.
#pragma once

#include "kernels/layer_norm/layer_norm.h"

namespace tilewright {

/// Units of 2^-24 of the magnitudes that an element is a sum of: log2(H) + 12 (contract, I 1.3).
double layer_norm_units(std::int64_t h);

/// Sets y and residual_out (of x's shape, f64) from x and, if present, residual, w and bias. The
/// allowance of y has the units of (|x| + |mean|) rstd |w|.
void layer_norm_reference(const LayerNormOptions& options, HostTensors& tensors);

}  // namespace tilewright
