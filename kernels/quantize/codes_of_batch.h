// SPDX-License-Identifier: Apache-2.0
// Codes of experts, [E, T, H], whose matrices have scales in a layout of their own each.
#pragma once

#include "kernels/quantize/quant_format.h"
#include "kernels/rows/rows.h"

namespace tilewright {

/// Refuses codes that are not [E, T, H] of as many experts as `rows`, and experts of e2m1 that do
/// not start at bytes.
void check_codes_of_batch(const View& q, const View& rows, const rows::Caller& caller);

/// scales_view of a batch of codes: with an outermost mode for experts. fp8_tensor has one scale
/// for all of them.
View scales_of_batch(const View& scales, const QuantCoding& coding, const View& q,
                     const rows::Caller& caller);
TensorArg scales_arg_of_batch(const View& scales, const QuantCoding& coding);

/// Refuses tokens_per_expert that is not s32[experts].
void check_tokens(const View& tokens, std::int64_t experts, const rows::Caller& caller);

}  // namespace tilewright
