// SPDX-License-Identifier: Apache-2.0
// Software pipelines over stages of shared memory, and roles of warps.
#pragma once

#include "tilewright/control.h"
#include "tilewright/fragment.h"
#include "tilewright/mbarrier.h"
#include "tilewright/ordered.h"
#include "tilewright/sync.h"
#include "tilewright/thread.h"
#include "tilewright/warp.h"

#include <array>
#include <utility>

namespace tilewright {

/// The stage that a loop is at, and the parity of the mbarrier phase that it uses there.
class StageCursor {
 public:
  StageCursor(int stages, int first, SourceLoc at = SourceLoc::here());
  Value stage() const { return Value(stage_, at_).assume({1, 0, stages_ - 1}); }
  Value parity() const { return Value(parity_, at_); }
  void advance();

 private:
  int stages_;
  SourceLoc at_;
  Var stage_;
  Var parity_;
};

namespace detail {

/// The number of steps as a value: a literal is s32.
Value pipeline_steps(const char* what, int stages, const Arg& n);

}  // namespace detail

/// Calls `compute(Value i, Value stage)` for i = 0 .. n - 1, while `load(Value i, Value stage)` has
/// begun the cp.async copies of up to `stages` - 1 later steps into other stages. All threads of
/// the block take part. Pre: at least 2 stages. Post: the last stage may still be read by other
/// threads.
template <class Load, class Compute>
void pipeline(int stages, const Arg& n, Load&& load, Compute&& compute) {
  SourceLoc at = n.at();
  Value steps = detail::pipeline_steps("pipeline", stages, n);
  for (int s = 0; s + 1 < stages; ++s) {
    Value step = constant(steps.type(), Arg(s, at));
    if_(Arg(step, at) < Arg(steps, at), [&] { load(step, constant(s32, Arg(s, at))); });
    cp_async_commit(at);
  }
  StageCursor read(stages, 0, at);
  StageCursor fill(stages, stages - 1, at);
  for_(Arg(steps, at), [&](const Value& i) {
    cp_async_wait(stages - 2, at);
    barrier({}, at);  // this step's bytes are there, and the previous step's stage is free
    Value next = Arg(i, at) + Arg(stages - 1, at);
    if_(Arg(next, at) < Arg(steps, at), [&] { load(next, fill.stage()); });
    cp_async_commit(at);
    compute(i, read.stage());
    read.advance();
    fill.advance();
  });
}

/// Stages that one warp fills by bulk or tensor copies and other warps read: each has a mbarrier
/// for "full" and one for "empty". In a cluster a stage is empty when the consumers of all its
/// blocks have released it, so that copies may be multicast.
class BulkPipeline {
 public:
  /// Makes the mbarriers and passes a barrier of the whole block, or of the whole cluster if it has
  /// several blocks. `consumer_warps` counts those of one block.
  BulkPipeline(int stages, int consumer_warps, int cluster_blocks = 1,
               SourceLoc at = SourceLoc::here());
  /// For stages that `producer_threads` threads fill by cp.async (sm_80): each waits by acquire(),
  /// begins its copies, and calls arrive_after_copies() of the mbarrier returned.
  static BulkPipeline of_copies(int stages, int producer_threads, int consumer_warps,
                                SourceLoc at = SourceLoc::here()) {
    BulkPipeline made(stages, producer_threads, consumer_warps, 1, at);
    made.by_copy_engine_ = false;
    return made;
  }

  // Step by step: each side keeps a cursor, and advances it when it is done with a stage.

  StageCursor cursor(SourceLoc at = SourceLoc::here()) const { return {stages_, 0, at}; }
  /// By the thread that begins the copies: waits until the stage is empty. The copies complete at
  /// the mbarrier returned, which must expect them (arrive_expect_tx; not those of of_copies()).
  Mbarrier acquire(const StageCursor& cursor, SourceLoc at = SourceLoc::here()) const;
  /// The same mbarrier without waiting again.
  Mbarrier full(const StageCursor& cursor, SourceLoc at = SourceLoc::here()) const {
    return full_.at(cursor.stage(), at);
  }
  /// By a consumer: waits until the stage is full.
  void wait_full(const StageCursor& cursor, SourceLoc at = SourceLoc::here()) const;
  /// By every consumer warp, whole, when it has read the stage: what loads and ldmatrix have read
  /// has been used, or lies before a fence_async_proxy(ProxySpace::shared). Otherwise a tensor copy
  /// may overtake reads that are still on their way (seen on an H200).
  void release(const StageCursor& cursor, SourceLoc at = SourceLoc::here()) const;

  // As loops.

  /// By one warp: `load(Value i, Value stage, Mbarrier full)` for i = 0 .. n - 1 in one of its
  /// threads, when the stage is empty; it calls full.arrive_expect_tx() and begins the copies.
  template <class Load>
  void produce(const Arg& n, Load&& load) const {
    SourceLoc at = n.at();
    Value steps = detail::pipeline_steps("produce", stages_, n);
    if_(Arg(lane_idx(at), at) == Arg(0, at), [&] {
      StageCursor at_stage = cursor(at);
      for_(Arg(steps, at), [&](const Value& i) {
        Mbarrier full = acquire(at_stage, at);
        load(i, at_stage.stage(), full);
        at_stage.advance();
      });
    });
  }

  /// By every consumer warp: `compute(Value i, Value stage)` for i = 0 .. n - 1 when the stage is
  /// full. A proxy fence keeps the copy engine from overtaking what `compute` reads.
  template <class Compute>
  void consume(const Arg& n, Compute&& compute) const {
    SourceLoc at = n.at();
    Value steps = detail::pipeline_steps("consume", stages_, n);
    StageCursor at_stage = cursor(at);
    for_(Arg(steps, at), [&](const Value& i) {
      wait_full(at_stage, at);
      compute(i, at_stage.stage());
      if (by_copy_engine_) fence_async_proxy(ProxySpace::shared, at);
      release(at_stage, at);
      at_stage.advance();
    });
  }

 private:
  BulkPipeline(int stages, int producer_threads, int consumer_warps, int cluster_blocks,
               SourceLoc at);
  int stages_;
  int cluster_blocks_;
  bool by_copy_engine_ = true;
  Mbarriers full_, empty_;
};

/// What the next `warps` of the block do, with `registers` a thread (setmaxnreg; 0: as launched,
/// else whole warpgroups of 4 warps).
template <class Body>
struct WarpRole {
  int warps;
  int registers;
  Body body;
  SourceLoc at;
};
template <class Body>
WarpRole<Body> role(int warps, int registers, Body body, SourceLoc at = SourceLoc::here()) {
  return {warps, registers, std::move(body), at};
}

namespace detail {
struct RoleSize {
  int warps;
  int registers;
  SourceLoc at;
};
/// Throws Error(user) unless the roles fill the block and their registers fit.
void check_roles(const RoleSize* sizes, int count);
/// Sets the registers, and refuses fragments made before.
void begin_role(int registers, SourceLoc at);
void end_roles(SourceLoc at);
}  // namespace detail

/// Gives the warps of the block to roles, from warp 0 on:
///   roles(role(4, 40, [&] { ... }), role(8, 232, [&] { ... }));
/// Fragments and accumulators live within a role: they are refused beyond its ends.
/// Pre: TraceOptions has the block, and min_blocks_per_sm or max_registers if registers are set.
template <class... Bodies>
void roles(const WarpRole<Bodies>&... list) {
  static_assert(sizeof...(Bodies) > 0, "roles() takes at least one role");
  std::array<detail::RoleSize, sizeof...(Bodies)> sizes{
      detail::RoleSize{list.warps, list.registers, list.at}...};
  detail::check_roles(sizes.data(), static_cast<int>(sizes.size()));
  int first = 0;
  auto one = [&](const auto& entry) {
    SourceLoc at = entry.at;
    Value warp = warp_idx(at);
    Value inside = Arg(warp, at) >= Arg(first, at) && Arg(warp, at) < Arg(first + entry.warps, at);
    if_(Arg(inside, at), [&] {
      detail::begin_role(entry.registers, at);
      entry.body();
    });
    first += entry.warps;
  };
  (one(list), ...);
  detail::end_roles(sizes.back().at);
}

}  // namespace tilewright
