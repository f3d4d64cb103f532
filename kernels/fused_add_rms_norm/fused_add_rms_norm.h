// SPDX-License-Identifier: Apache-2.0
// fused_add_rms_norm: z = x + residual (+ extra); y = z / sqrt(mean(z^2) + eps) * (w +
// weight_bias).
#pragma once

#include "kernels/rows/row_norm.h"
#include "tilewright/operator.h"

#include <optional>

namespace tilewright {

/// All of shape [..., H] folded to [T, H], but w [H]. Each has its own row stride.
struct FusedAddRmsNormTensors {
  View x;                          ///< bf16, f16 or f32
  View residual;                   ///< of x's type or f32; apart from x
  std::optional<View> w = {};      ///< of x's type or f32; absent: 1
  std::optional<View> extra = {};  ///< of x's type or f32: a bias or a second branch
  std::optional<View> y = {};      ///< of x's type or f32; may be x; absent only with q
  View residual_out;               ///< z in residual's type; may be residual
  QuantOutputTensors quant = {};
};

using FusedAddRmsNormOptions = RowNormOptions;

/// Checks the arguments and chooses the configuration; see plan_row_norm.
RowNormPlan plan_fused_add_rms_norm(const DeviceProperties& device,
                                    const FusedAddRmsNormTensors& tensors,
                                    const FusedAddRmsNormOptions& options = {},
                                    SourceLoc at = SourceLoc::here());

/// Adds and normalises on the stream. Allocates nothing on the device and does not wait.
void fused_add_rms_norm(const Stream& stream, const FusedAddRmsNormTensors& tensors,
                        const FusedAddRmsNormOptions& options = {},
                        SourceLoc at = SourceLoc::here());

const Operator& fused_add_rms_norm_operator();

}  // namespace tilewright
