// SPDX-License-Identifier: Apache-2.0
// A barrier of all blocks of a cooperative launch.
#pragma once

#include "tilewright/tensor.h"
#include "tilewright/value.h"

namespace tilewright {

/// All blocks of the grid meet at one word of global memory, which resets itself: it is zeroed
/// once, before its first launch, and serves one grid at a time. Every block must be resident: a
/// launch is refused unless it is cooperative, which has the driver check that. Pre: the trace
/// knows the block's shape.
class GridBarrier {
 public:
  /// `counter` is a u32. Reads it: make the object early, so that the first sync() need not wait.
  explicit GridBarrier(const Element& counter, SourceLoc at = SourceLoc::here());
  /// Waits for all threads of the grid, and orders their memory accesses.
  void sync(SourceLoc at = SourceLoc::here());

 private:
  Element counter_;
  Var phase_;  // of the block's first thread: the counter before this block arrives
};

}  // namespace tilewright
