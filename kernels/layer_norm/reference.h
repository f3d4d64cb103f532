// SPDX-License-Identifier: Apache-2.0
// The float64 reference of layer_norm.
#pragma once

#include "kernels/layer_norm/layer_norm.h"

namespace tilewright {

/// Sets y and residual_out (of x's shape, f64) from x and, if present, residual, w and bias.
void layer_norm_reference(const LayerNormOptions& options, HostTensors& tensors);

}  // namespace tilewright
