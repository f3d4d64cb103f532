// SPDX-License-Identifier: Apache-2.0
// Where a sequence is, in device code.
#pragma once

#include "kernels/pooling/pooling.h"
#include "tilewright/tensor.h"
#include "tilewright/value.h"

namespace tilewright {

struct Sequence {
  Value begin, end;  ///< rows
};

/// Sequence `index` by its start and the next one's, or by the lengths of those before it, which
/// the block's `threads` add up: all of them call it, and all learn it.
Sequence sequence_of(const Tensor& bounds, SequenceBounds kind, const Value& index, int threads);

}  // namespace tilewright
