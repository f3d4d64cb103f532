// SPDX-License-Identifier: Apache-2.0
// The references of quantize and dequantize.
#pragma once

#include "kernels/quantize/quantize.h"

namespace tilewright {

/// What a reference has in q.
enum class Quotients : std::uint8_t {
  rounded,   ///< codes
  unrounded  ///< in f64, for elements that are not exact themselves: what the codes are near
};

/// Sets q of `element`, and scales of `scale_type`, by the contract's operations in f32: the codes
/// are exact. Adds clipped groups of nvfp4 to saturated, if it is there. Scales of rows or groups
/// are those of `taken` if it is there, in its layout.
void quantize_reference(const QuantizeOptions& options, Type element, Type scale_type,
                        HostTensors& tensors, Quotients quotients = Quotients::rounded,
                        const Array* taken = nullptr);
/// Makes rows of q and scales from `first` on NaN: what a reference leaves open. Pre: q is f64[T,
/// H].
void leave_rows_open(const QuantizeOptions& options, std::int64_t first, HostTensors& tensors);
/// Sets y in f64.
void dequantize_reference(const DequantizeOptions& options, HostTensors& tensors);

}  // namespace tilewright
