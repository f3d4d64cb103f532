// SPDX-License-Identifier: Apache-2.0
// The float64 reference of fused_add_rms_norm.
#pragma once

#include "kernels/rows/reference.h"

namespace tilewright {

/// Sets y and residual_out (of x's shape, f64) from x, residual and, if present, extra and w.
void fused_add_rms_norm_reference(const RowNormOptions& options, HostTensors& tensors);

}  // namespace tilewright
