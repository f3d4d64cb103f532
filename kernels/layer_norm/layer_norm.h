// SPDX-License-Identifier: Apache-2.0
// layer_norm: y = (z - mean(z)) / sqrt(variance(z) + eps) * (w + weight_bias) + bias, z = x +
// residual + extra.
#pragma once

#include "kernels/rows/row_norm.h"
#include "tilewright/operator.h"

#include <optional>

namespace tilewright {

/// All of shape [..., H] folded to [T, H], but w and bias [H], and rstd [T]. Each has its own row
/// stride.
struct LayerNormTensors {
  View x;                             ///< bf16, f16 or f32
  std::optional<View> w = {};         ///< of x's type or f32; absent: 1
  std::optional<View> bias = {};      ///< of x's type or f32; absent: 0
  std::optional<View> residual = {};  ///< of x's type or f32; absent: z is x
  std::optional<View> y = {};         ///< of x's type or f32; may be x; absent only with quant.q
  std::optional<View> residual_out = {};  ///< z in residual's type; may be residual
  QuantOutputTensors quant = {};
  std::optional<View> extra = {};  ///< of x's type or f32: added behind residual
  std::optional<View> rstd = {};   ///< f32: the factor of each row
};

struct LayerNormOptions {
  float eps = 1e-5f;         ///< finite, at least 0
  float weight_bias = 0.0f;  ///< added to w in f32
  SumRounding rounding = SumRounding::round_first;
  QuantOutputOptions quant = {};  ///< with quant.q
  WeightOrder order = WeightOrder::last;
  std::int64_t partial = 0;  ///< mean and variance are of the first `partial` elements; 0: all
};

/// Checks the arguments and chooses the configuration; see plan_row_norm. The variance is the mean
/// square distance from the mean, found in a pass of its own.
RowNormPlan plan_layer_norm(const DeviceProperties& device, const LayerNormTensors& tensors,
                            const LayerNormOptions& options = {}, SourceLoc at = SourceLoc::here());

/// Normalises on the stream. Allocates nothing on the device and does not wait.
void layer_norm(const Stream& stream, const LayerNormTensors& tensors,
                const LayerNormOptions& options = {}, SourceLoc at = SourceLoc::here());

const Operator& layer_norm_operator();

}  // namespace tilewright
