// SPDX-License-Identifier: Apache-2.0
// References of codes of experts, [E, T, H]: matrix by matrix, with rows that do not count open.
#pragma once

#include "kernels/quantize/reference.h"

#include <cstdint>
#include <functional>
#include <vector>

namespace tilewright {

/// Of each expert, how many of its T rows count: tokens_per_expert, or all of them.
std::vector<std::int64_t> expert_rows(const HostTensors& tensors, const Array& rows);

/// Matrix `index` of a batch whose matrices are whole bytes.
Array matrix_of(const Array& batch, std::size_t index);

/// What is quantised of a batch, besides the tensors for all of it.
struct CodesOfBatch {
  const QuantizeOptions& options;
  const std::vector<std::int64_t>& counts;
  Array q;       ///< an f64 tensor without its contents
  Array scales;  ///< likewise
  /// Of one matrix, by its index: q and scales, and saturated with what tensors have of it.
  std::function<HostTensors(std::size_t index, const HostTensors& tensors)> one;
};
/// `tensors` with q and scales, of which those of rows that do not count are NaN, and saturated.
HostTensors codes_of_batch(CodesOfBatch batch, HostTensors tensors);

/// quantize_reference of experts: q is in f64.
void quantize_batch_reference(const QuantizeOptions& options, Type element, Type scale_type,
                              std::vector<std::int64_t> scales_shape, HostTensors& tensors);
void dequantize_batch_reference(const DequantizeOptions& options, HostTensors& tensors);

}  // namespace tilewright
