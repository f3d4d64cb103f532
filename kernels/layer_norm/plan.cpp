// SPDX-License-Identifier: Apache-2.0
// layer_norm as a norm over rows.
#include "kernels/layer_norm/layer_norm.h"

namespace tilewright {

RowNormPlan plan_layer_norm(const DeviceProperties& device, const LayerNormTensors& tensors,
                            const LayerNormOptions& options, SourceLoc at) {
  RowNormTensors flat{.x = tensors.x,
                      .w = tensors.w,
                      .y = tensors.y,
                      .rstd = tensors.rstd,
                      .bias = tensors.bias,
                      .residual = tensors.residual,
                      .extra = tensors.extra,
                      .residual_out = tensors.residual_out,
                      .quant = tensors.quant};
  RowNormOptions row_options{.eps = options.eps,
                             .weight_bias = options.weight_bias,
                             .order = options.order,
                             .partial = options.partial,
                             .rounding = options.rounding,
                             .quant = options.quant};
  return plan_row_norm("layer_norm", Statistics::mean_and_variance, device, flat, row_options, at);
}

void layer_norm(const Stream& stream, const LayerNormTensors& tensors,
                const LayerNormOptions& options, SourceLoc at) {
  launch_row_norm(stream, plan_layer_norm(stream.device().properties(), tensors, options, at), at);
}

}  // namespace tilewright
