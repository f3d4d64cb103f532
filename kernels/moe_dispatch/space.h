// SPDX-License-Identifier: Apache-2.0
// What the plan of a dispatch may choose.
#pragma once

#include "kernels/moe_dispatch/moe_dispatch.h"

namespace tilewright {

/// The sizes that a choice depends on.
struct DispatchSizes {
  std::int64_t tokens = 0, k = 0, experts = 0, row_bytes = 0;
};
struct DispatchChoice {
  DispatchVariant variant = DispatchVariant::automatic;
  int threads = 0;  ///< of a block that routes
  int blocks = 1;   ///< that route at most
};
/// `asked` is kept unless it is automatic.
DispatchChoice choose_dispatch(const DeviceProperties& device, const DispatchSizes& sizes,
                               DispatchVariant asked);

/// Sets how a launch copies: of one that routes too, the threads are given.
void choose_copy(const DeviceProperties& device, std::int64_t tokens, int element_bytes,
                 DispatchStage stage, CopyConfig& config);

}  // namespace tilewright
