// SPDX-License-Identifier: Apache-2.0
// rms_norm as a norm over rows.
#include "kernels/rms_norm/rms_norm.h"

namespace tilewright {

RowNormPlan plan_rms_norm(const DeviceProperties& device, const RmsNormTensors& tensors,
                          const RmsNormOptions& options, SourceLoc at) {
  RowNormTensors flat{
      .x = tensors.x, .w = tensors.w, .y = tensors.y, .rstd = tensors.rstd, .quant = tensors.quant};
  return plan_row_norm("rms_norm", Statistics::mean_square, device, flat, options, at);
}

void rms_norm(const Stream& stream, const RmsNormTensors& tensors, const RmsNormOptions& options,
              SourceLoc at) {
  launch_row_norm(stream, plan_rms_norm(stream.device().properties(), tensors, options, at), at);
}

}  // namespace tilewright
