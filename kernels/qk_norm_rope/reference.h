// SPDX-License-Identifier: Apache-2.0
// The float64 reference of qk_norm, qk_norm_rope and rope.
#pragma once

#include "kernels/qk_norm_rope/qk_norm_rope.h"

#include <string>

namespace tilewright {

/// Sets the tensors named `q_out` and `k_out`, and caches, in f64 from q, k and the other inputs.
void qk_reference(const QkOptions& options, HostTensors& tensors, const std::string& q_out,
                  const std::string& k_out);

}  // namespace tilewright
