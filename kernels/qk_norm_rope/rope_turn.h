// SPDX-License-Identifier: Apache-2.0
// Cosines and sines by which a thread turns its pieces of heads. Traced.
#pragma once

#include "tilewright/fragment.h"
#include "tilewright/value.h"

#include <optional>
#include <vector>

namespace tilewright {

/// One of each a pair of pieces (neox) or a piece (interleaved).
struct RopeTurn {
  std::vector<Fragment> cosines, sines;
  void widen();
};

/// Angles are products of two f32 numbers, as in a table of rope_table. Negative positions count as
/// 0; `factor` is of cosines and sines, absent: 1.
RopeTurn computed_turn(const std::vector<Fragment>& frequencies, const Value& position,
                       const std::optional<Value>& factor);

}  // namespace tilewright
