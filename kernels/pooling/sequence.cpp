// SPDX-License-Identifier: Apache-2.0
// Starts of sequences from their lengths.
#include "kernels/pooling/sequence.h"

#include "tilewright/control.h"
#include "tilewright/fragment.h"
#include "tilewright/sync.h"
#include "tilewright/thread.h"

namespace tilewright {
namespace {

Value sum_of(const Value& a, const Value& b) { return a + b; }

/// Rows of a length: below 0 there is none.
Value rows_of(const Value& length) { return max(length, constant(s32, 0)); }

Value rows_before(const Tensor& lengths, const Value& index, int threads) {
  Var mine(s32, 0);
  for_(linear_thread_idx(), index, threads,
       [&](const Value& at) { mine = mine + rows_of(lengths(at)); });
  Value of_warp = warp_reduce(mine, sum_of);
  const int warps = threads / 32;
  if (warps == 1) return of_warp;
  Tensor partials = shared(s32, Layout(Shape{warps}));
  if_(lane_idx() == 0, [&] { partials(warp_idx()) = of_warp; });
  barrier();
  return reduce(load(partials(0), warps), sum_of);
}

}  // namespace

Sequence sequence_of(const Tensor& bounds, SequenceBounds kind, const Value& index, int threads) {
  if (kind == SequenceBounds::starts) return {bounds(index), bounds(index + 1)};
  const Value begin = rows_before(bounds, index, threads);
  return {begin, begin + rows_of(bounds(index))};
}

}  // namespace tilewright
