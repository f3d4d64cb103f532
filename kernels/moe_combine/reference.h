// SPDX-License-Identifier: Apache-2.0
// The reference of moe_combine.
#pragma once

#include "tilewright/operator.h"

namespace tilewright {

/// Sets out in f64. With `accumulate` it is read too.
void moe_combine_reference(bool accumulate, HostTensors& tensors);

}  // namespace tilewright
