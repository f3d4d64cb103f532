// SPDX-License-Identifier: Apache-2.0
// What kda_conv_verify takes and refuses.
#pragma once

#include "kernels/kda_conv_verify/kda_conv_verify.h"

namespace tilewright {

/// The tensors in the ranks that KdaConvVerifyArguments names, from any that the contract allows.
/// Throws Error(user) that begins with the caller's operator.
KdaConvVerifyTensors checked_kda_conv_verify(const KdaConvVerifyTensors& tensors,
                                             const KdaConvVerifyOptions& options,
                                             const rows::Caller& caller);

}  // namespace tilewright
