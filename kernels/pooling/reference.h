// SPDX-License-Identifier: Apache-2.0
// The reference of pooling.
#pragma once

#include "kernels/pooling/pooling.h"

namespace tilewright {

/// Sets out [B, columns] in f64.
void pooling_reference(const PoolingOptions& options, std::int64_t columns, HostTensors& tensors);

}  // namespace tilewright
