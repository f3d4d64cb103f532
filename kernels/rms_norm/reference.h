// SPDX-License-Identifier: Apache-2.0
// The float64 reference of rms_norm.
#pragma once

#include "tilewright/operator.h"

namespace tilewright {

struct RmsNormReferenceOptions {
  double eps = 1e-6;
  double weight_bias = 0;
  bool round_first = false;  ///< x / rms rounded to x's type before the weight
  std::int64_t partial = 0;
};

/// Sets y (of x's shape) and rstd [T] in f64 from x and, if present, w.
void rms_norm_reference(const RmsNormReferenceOptions& options, HostTensors& tensors);

}  // namespace tilewright
