// SPDX-License-Identifier: Apache-2.0
// rms_norm: y = x / sqrt(mean(x^2) + eps) * (w + weight_bias), row by row.
#pragma once

#include "kernels/rows/row_norm.h"
#include "tilewright/operator.h"

#include <optional>

namespace tilewright {

/// All of shape [..., H] folded to [T, H], but w [H] and rstd [T].
struct RmsNormTensors {
  View x;                         ///< bf16, f16 or f32
  std::optional<View> w = {};     ///< of x's type or f32; absent: 1
  std::optional<View> y = {};     ///< of x's type or f32; may be x; absent only with q
  std::optional<View> rstd = {};  ///< f32: 1 / sqrt(mean(x^2) + eps)
  QuantOutputTensors quant = {};
};

using RmsNormOptions = RowNormOptions;

/// Checks the arguments and chooses the configuration; see plan_row_norm.
RowNormPlan plan_rms_norm(const DeviceProperties& device, const RmsNormTensors& tensors,
                          const RmsNormOptions& options = {}, SourceLoc at = SourceLoc::here());

/// Normalises on the stream. Allocates nothing on the device and does not wait.
void rms_norm(const Stream& stream, const RmsNormTensors& tensors,
              const RmsNormOptions& options = {}, SourceLoc at = SourceLoc::here());

const Operator& rms_norm_operator();

}  // namespace tilewright
