// SPDX-License-Identifier: Apache-2.0
// The float64 reference of kda_decode, from its formulas.
#pragma once

#include "kernels/kda_decode/kda_decode.h"

namespace tilewright {

/// Sets `out`, `state` and, if `arguments` has them, `snapshots` in f64. What must stay untouched
/// is NaN in the outputs.
void kda_decode_reference(const KdaDecodeOptions& options, const Arguments& arguments,
                          HostTensors& tensors);

}  // namespace tilewright
