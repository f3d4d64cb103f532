// SPDX-License-Identifier: Apache-2.0
// The float64 reference of the gated activations.
#pragma once

#include "kernels/gated_activation/gated_activation.h"

namespace tilewright {

/// Sets y in f64 from x, bias and row_weight, and from the tensors of experts: rows that they have
/// none of are NaN. Its allowance: what one rounding of each sum with a bias may
/// change, and what f32 has no digits for.
void gated_activation_reference(const GatedOptions& options, HostTensors& tensors);

}  // namespace tilewright
