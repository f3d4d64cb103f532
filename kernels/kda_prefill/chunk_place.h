// SPDX-License-Identifier: Apache-2.0
// Which tokens the chunk at a place has.
#pragma once

#include "tilewright/tensor.h"
#include "tilewright/value.h"

#include <optional>

namespace tilewright {

/// The tokens of one sequence: all of row `row` of a batch, or [begin, end) of row 0.
struct SequenceSpan {
  Value row;          ///< s64
  Value begin, end;   ///< s32
  Value first_place;  ///< s64: of its first chunk
};
/// Of sequence `n` (s64); `tokens` is the extent of mode T.
SequenceSpan sequence_span(const std::optional<Tensor>& cu_seqlens, const Value& n,
                           const Value& tokens, int chunk);
/// The sequence (s64) that has place `place` (s64): its own chunks may be fewer.
Value sequence_of(const std::optional<Tensor>& cu_seqlens, const Value& place, const Value& tokens,
                  int chunk);

}  // namespace tilewright
