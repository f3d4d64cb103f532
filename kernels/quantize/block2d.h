// SPDX-License-Identifier: Apache-2.0
// The kernel of fp8_block2d: one scale for 128 x 128 elements.
#pragma once

#include "kernels/quantize/quantize.h"

namespace tilewright {

inline constexpr int kBlock2d = 128;  // rows and columns under one scale

/// Pre: the plan is of fp8_block2d.
Traced trace_block2d(const QuantizePlan& plan, ptx::Target target);

}  // namespace tilewright
