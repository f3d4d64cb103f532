// SPDX-License-Identifier: Apache-2.0
// fused_add_rms_norm as a norm over rows.
#include "kernels/fused_add_rms_norm/fused_add_rms_norm.h"

namespace tilewright {

RowNormPlan plan_fused_add_rms_norm(const DeviceProperties& device,
                                    const FusedAddRmsNormTensors& tensors,
                                    const FusedAddRmsNormOptions& options, SourceLoc at) {
  RowNormTensors flat{.x = tensors.x,
                      .w = tensors.w,
                      .y = tensors.y,
                      .residual = tensors.residual,
                      .extra = tensors.extra,
                      .residual_out = tensors.residual_out,
                      .quant = tensors.quant};
  return plan_row_norm("fused_add_rms_norm", Statistics::mean_square, device, flat, options, at);
}

void fused_add_rms_norm(const Stream& stream, const FusedAddRmsNormTensors& tensors,
                        const FusedAddRmsNormOptions& options, SourceLoc at) {
  launch_row_norm(stream,
                  plan_fused_add_rms_norm(stream.device().properties(), tensors, options, at), at);
}

}  // namespace tilewright
