// SPDX-License-Identifier: Apache-2.0
// Barriers, shuffles, votes, and the completion of asynchronous copies.
#pragma once

#include "tilewright/value.h"

#include <cstdint>

namespace tilewright {

/// Threads that meet at a hardware barrier: `threads` of the block (a multiple of 32), or all of it
/// with 0. Barrier 0 is the whole block's; others come from named_barrier().
struct Group {
  int threads = 0;
  int barrier = 0;
};
/// A group of `threads` threads with the next free of the block's barriers 1..15.
Group named_barrier(int threads, SourceLoc at = SourceLoc::here());

/// Waits for all threads of the group, and orders their memory accesses in the block.
/// Refused when traced under a condition that differs within the group.
void barrier(Group group = {}, SourceLoc at = SourceLoc::here());
/// Counts the thread as arrived without waiting. Pre: a named group.
void barrier_arrive(Group group, SourceLoc at = SourceLoc::here());
/// Waits for the lanes in `lanes` of this warp, and orders their memory accesses.
void warp_barrier(std::uint32_t lanes = 0xffffffffu, SourceLoc at = SourceLoc::here());

/// The value that another lane of the warp holds. `width` (a power of two up to 32) cuts the warp
/// into independent segments (a lane mask stays below it). Types of 16, 32 or 64 bits. All 32 lanes must take part.
Value shuffle_xor(const Arg& value, int lane_mask, int width = 32);
Value shuffle_down(const Arg& value, int delta, int width = 32);
Value shuffle_up(const Arg& value, int delta, int width = 32);
Value shuffle(const Arg& value, const Arg& source_lane, int width = 32);

/// Whether the predicate holds in any (all) lanes; the same value in the whole warp.
Value vote_any(const Arg& predicate);
Value vote_all(const Arg& predicate);
/// Bit i: the predicate of lane i (u32).
Value ballot(const Arg& predicate);

/// Makes the thread's cp.async copies so far a group.
void cp_async_commit(SourceLoc at = SourceLoc::here());
/// Waits until at most `pending` of the thread's newest groups are unfinished. Other threads see
/// the copied bytes only after a barrier() that follows.
void cp_async_wait(int pending, SourceLoc at = SourceLoc::here());
/// Waits for all of the thread's copies, committed or not.
void cp_async_wait_all(SourceLoc at = SourceLoc::here());

/// Orders this thread's memory accesses for the block, the device, or everything.
enum class Scope : std::uint8_t { cta, cluster, gpu, sys };
void fence(Scope scope, SourceLoc at = SourceLoc::here());

/// Waits until the grids this launch depends on have finished and flushed (griddepcontrol.wait).
void grid_dependency_wait(SourceLoc at = SourceLoc::here());
/// Lets grids that depend on this one start (griddepcontrol.launch_dependents).
void grid_dependency_launch(SourceLoc at = SourceLoc::here());

namespace detail {
template <class Combine>
Value butterfly(const Value& value, int mask, int width, Combine&& combine, SourceLoc at) {
  if (mask == 0) return value;
  Value other = shuffle_xor(Arg(value, at), mask, width);
  return butterfly(combine(value, other), mask / 2, width, combine, at);
}
}  // namespace detail

/// Combines `value` over each `width` lanes: every lane gets the result. The order is a butterfly,
/// fixed for all inputs. `combine(Value, Value)` must commute.
template <class Combine>
Value warp_reduce(const Arg& value, Combine&& combine, int width = 32) {
  return detail::butterfly(value.settled(), width / 2, width, combine, value.at());
}

}  // namespace tilewright
