// SPDX-License-Identifier: Apache-2.0
// The float64 reference of rms_norm, with or without sums.
#pragma once

#include "kernels/rows/reference.h"

namespace tilewright {

/// Sets y (of x's shape) and rstd [T] in f64 from x and, if present, w.
void rms_norm_reference(const RowNormOptions& options, HostTensors& tensors);

}  // namespace tilewright
