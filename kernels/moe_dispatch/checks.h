// SPDX-License-Identifier: Apache-2.0
// What a dispatch refuses before anything is launched.
#pragma once

#include "kernels/moe_dispatch/moe_dispatch.h"

namespace tilewright {

/// Throws Error(user) for arguments that moe_dispatch cannot take.
void check_moe_dispatch(const MoeDispatchTensors& tensors, const MoeDispatchOptions& options,
                        const Workspace& workspace, const rows::Caller& caller);

}  // namespace tilewright
