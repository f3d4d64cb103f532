// SPDX-License-Identifier: Apache-2.0
// The reference of moe_dispatch.
#pragma once

#include "kernels/moe_dispatch/moe_dispatch.h"

namespace tilewright {

/// Sets all outputs; `rows` is M. Rows that the contract leaves open (padding that is not zeroed,
/// what lies beyond total_rows, all order among unordered rows) are NaN.
void moe_dispatch_reference(const MoeDispatchOptions& options, std::int64_t rows,
                            HostTensors& tensors);

}  // namespace tilewright
