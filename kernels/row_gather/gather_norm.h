// SPDX-License-Identifier: Apache-2.0
// The host side of embedding's norm.
#pragma once

#include "kernels/row_gather/row_gather.h"

namespace tilewright {

/// Refuses w and residual_out without a norm; with it, rows, types and options that it cannot take.
void check_gather_norm(const RowGatherTensors& tensors, const RowGatherOptions& options,
                       const rows::Caller& caller);

/// The order of a row's sum is that of rms_norm over residual_out, or over out where that is
/// absent: by H and their types alone. Pre: options.norm.
RowNormConfig choose_gather_norm(const DeviceProperties& device, const RowGatherTensors& tensors,
                                 const RowGatherOptions& options);

}  // namespace tilewright
