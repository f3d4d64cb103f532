// SPDX-License-Identifier: Apache-2.0
// Clusters of blocks: where a block stands in its cluster, its peers' shared memory, their barrier.
#pragma once

#include "tilewright/tensor.h"
#include "tilewright/thread.h"

namespace tilewright {

/// Blocks of the cluster: constant where TraceOptions::cluster says so.
Value cluster_size(SourceLoc at = SourceLoc::here());
/// This block's coordinates in its cluster, and the cluster's extents. See also cluster_rank().
Index3 cluster_block_idx(SourceLoc at = SourceLoc::here());
Index3 cluster_dim(SourceLoc at = SourceLoc::here());

/// The same tensor in the shared memory of the cluster's block `rank`: its elements load and store
/// there (ld and st.shared::cluster). Pre: the peer has begun, and has not ended; a cluster barrier
/// on either side of the accesses sees to both.
Tensor peer(const Tensor& tensor, const Arg& rank, SourceLoc at = SourceLoc::here());

/// Counts the thread as arrived, and releases what it wrote to the cluster.
void cluster_arrive(SourceLoc at = SourceLoc::here());
/// The same without ordering any memory: for "I have begun" and "I am done reading".
void cluster_arrive_relaxed(SourceLoc at = SourceLoc::here());
/// Waits until all threads of the cluster have arrived, and acquires what they wrote. Each arrive
/// is followed by one wait. Whole warps take part.
void cluster_wait(SourceLoc at = SourceLoc::here());
/// cluster_arrive(), then cluster_wait().
void cluster_barrier(SourceLoc at = SourceLoc::here());

}  // namespace tilewright
