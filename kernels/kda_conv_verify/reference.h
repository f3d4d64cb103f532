// SPDX-License-Identifier: Apache-2.0
// The float64 reference of kda_conv_verify, from its formulas.
#pragma once

#include "kernels/kda_conv_verify/kda_conv_verify.h"

namespace tilewright {

/// Sets `out`, conv_state and the snapshots that `arguments` has: windows and conv_state exactly,
/// the others in f64. What must stay untouched is NaN, or what the tensor held before if `tensors`
/// has it.
void kda_conv_verify_reference(const KdaConvVerifyOptions& options, const Arguments& arguments,
                               HostTensors& tensors);

}  // namespace tilewright
