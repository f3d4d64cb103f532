// SPDX-License-Identifier: Apache-2.0
// The scale of a whole tensor from its largest magnitude: what fp8_tensor needs where none is
// given.
#pragma once

#include "kernels/rows/rows.h"
#include "tilewright/operator.h"
#include "tilewright/trace.h"

#include <optional>
#include <string>

namespace tilewright {

inline constexpr std::int64_t kTensorScaleBytes = 8;  // of workspace: a maximum and a counter

struct TensorScalePlan {
  View x;                                 ///< [T, H], or of experts [E, T, H]
  View scales;                            ///< [1] f32, written
  View workspace;                         ///< [2] u32: zeros before and after
  std::optional<View> tokens_per_expert;  ///< [E] s32: rows of each expert that count
  float floor = 0;
  int vector_elems = 8;
  TensorArg x_arg, scales_arg, workspace_arg;
  std::optional<TensorArg> tokens_arg;
  LaunchConfig launch;

  std::string key() const;
  Traced trace(ptx::Target target) const;
  Parameters parameters() const;
};

/// Writes max(max |x|, floor) / 448. Pre: x is folded or of experts, and of a
/// real type.
TensorScalePlan plan_tensor_scale(const DeviceProperties& device, const View& x, const View& scales,
                                  float floor, const Workspace& workspace,
                                  const rows::Caller& caller,
                                  const std::optional<View>& tokens_per_expert = {});

}  // namespace tilewright
