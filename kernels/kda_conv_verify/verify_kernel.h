// SPDX-License-Identifier: Apache-2.0
// What both kernels of kda_conv_verify have.
#pragma once

#include "kernels/kda_conv_verify/stages.h"
#include "tilewright/cluster.h"
#include "tilewright/control.h"
#include "tilewright/sync.h"
#include "tilewright/thread.h"

#include <algorithm>

namespace tilewright {

inline constexpr int kKdaChunk = 8;  // tokens in shared memory at a time

/// What both kernels have: the row, its cluster, the tiles of a block, the chunks of tokens.
class KdaConvVerifyKernel {
 public:
  KdaConvVerifyKernel(const KdaConvVerifyConfig& config, const KdaConvVerifyParameters& parameters)
      : c_(config), stages_(c_, parameters) {}

 protected:
  int chunk_tokens() const { return std::min(c_.tokens, kKdaChunk); }
  int chunks() const { return (c_.tokens + kKdaChunk - 1) / kKdaChunk; }

  bool one_tile() const { return c_.tiles_per_block() == 1 && chunks() == 1; }
  bool fetches() const { return c_.tiling.fetch != KdaFetch::none && one_tile(); }
  bool runs_ahead() const { return c_.tiling.fetch == KdaFetch::ahead && one_tile(); }

  /// `early(row)` may load what needs no index, also where the row is inactive.
  template <class Early>
  KdaStages::Start begin(Early&& early) const {
    grid_dependency_wait();
    if (!runs_ahead()) grid_dependency_launch();
    KdaStages::Start start = stages_.start();
    early(start.row);
    return start;
  }
  static void leave_unless(const Value& active) {
    if_(!active, [] { return_(); });
  }

  template <class Body>
  void for_tiles(Body&& body) const {
    if (c_.tiles_per_block() == 1) return body(constant(s32, 0));
    for_(c_.tiles_per_block(), [&](const Value& index) {
      body(index);
      barrier();  // shared memory is free for the next tile
    });
  }

  // Blocks of a cluster convolve the same q and k. Two of them roll their part of conv_state, when
  // all have read it.
  bool shares_qk() const { return c_.roll && c_.tiling.cluster > 1; }
  /// One warp tells the cluster that its block has read the history, as a fence takes long. Pre: it
  /// has met those that read it.
  void history_read(const Value& messenger) const {
    if (!shares_qk()) return;
    if_(warp_idx() == messenger, [] { cluster_arrive(); }).else_([] { cluster_arrive_relaxed(); });
  }
  void wait_for_history() const {
    if (shares_qk()) cluster_wait();
  }

  const KdaConvVerifyConfig& c_;
  KdaStages stages_;
};

void trace_large_batch(const KdaConvVerifyConfig& config,
                       const KdaConvVerifyParameters& parameters);
void trace_small_batch(const KdaConvVerifyConfig& config,
                       const KdaConvVerifyParameters& parameters);

}  // namespace tilewright
