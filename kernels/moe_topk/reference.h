// SPDX-License-Identifier: Apache-2.0
// The reference of moe_topk.
#pragma once

#include "kernels/moe_topk/moe_topk.h"

namespace tilewright {

/// Sets ids (s32) and weights (f64). Experts are chosen by scores in f32, as the contract has it,
/// so that scores that only float64 tells apart are ties.
void moe_topk_reference(const MoeTopkOptions& options, HostTensors& tensors);

}  // namespace tilewright
