// SPDX-License-Identifier: Apache-2.0
// Which thread this is: indices and extents of the launch, as s32 values with known bounds.
#pragma once

#include "tilewright/value.h"

namespace tilewright {

/// Three values, as CUDA's uint3.
struct Index3 {
  Value x, y, z;
};
Index3 thread_idx(SourceLoc at = SourceLoc::here());
Index3 block_idx(SourceLoc at = SourceLoc::here());
/// Constants where the trace knows the block's shape.
Index3 block_dim(SourceLoc at = SourceLoc::here());
Index3 grid_dim(SourceLoc at = SourceLoc::here());
/// 0..31
Value lane_idx(SourceLoc at = SourceLoc::here());
/// thread_idx as one number, x fastest. Pre: the trace knows the block's shape.
Value linear_thread_idx(SourceLoc at = SourceLoc::here());
/// linear_thread_idx() / 32, the same in the whole warp.
Value warp_idx(SourceLoc at = SourceLoc::here());
/// This block's rank in its cluster.
Value cluster_rank(SourceLoc at = SourceLoc::here());
/// Threads of a block. Pre: the trace knows the block's shape.
int block_threads(SourceLoc at = SourceLoc::here());
/// The clock of the multiprocessor, and nanoseconds of the device: u64, read where it stands.
Value clock64(SourceLoc at = SourceLoc::here());
Value global_timer(SourceLoc at = SourceLoc::here());

}  // namespace tilewright
