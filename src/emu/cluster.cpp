// SPDX-License-Identifier: Apache-2.0
// barrier.cluster.arrive and .wait; griddepcontrol.
#include "emu/cluster.h"

#include "emu/gather.h"
#include "emu/handlers.h"
#include "emu/race.h"

#include <bit>

namespace tilewright::emu::detail {

namespace {

void complete(Cluster& c) {
  c.arrived = 0;
  ++c.phase;
  c.completed = std::move(c.arriving);
  c.arriving = nullptr;
  for (Block* block : c.blocks) {
    for (auto& warp : block->warps) {
      for (Split& s : warp->splits) {
        if (s.wait != Wait::cluster) continue;
        s.wait = Wait::none;
        block->grid->run->make_ready(*warp);
      }
    }
  }
  c.blocks[0]->grid->run->changed();
}

void misuse(Exec& x, unsigned lane, std::string message) {
  if (!x.checks(Kind::barrier_mismatch)) return;
  report(x, {.kind = Kind::barrier_mismatch,
             .lane = lane,
             .message = std::move(message),
             .range = {},
             .other = {}});
}

}  // namespace

Flow exec_barrier_cluster(Exec& x, const Inst& in) {
  if (in.info->has<"aligned">() && gather_aligned(x) == Gather::wait) return Flow::stop;
  Cluster& c = *x.block->cluster;
  const std::uint32_t base = x.block->rank * x.block->threads;
  c.arrived_phase.resize(c.blocks.size() * x.block->threads);
  if (in.info->has<"arrive">()) {
    for (std::uint32_t left = x.mask; left != 0; left &= left - 1) {
      const auto lane = static_cast<unsigned>(std::countr_zero(left));
      std::uint64_t& mine = c.arrived_phase[base + x.warp->thread(lane)];
      if (mine > c.phase) misuse(x, lane, "arrives at the cluster's barrier twice without a wait");
      mine = c.phase + 1;
      ++c.arrived;
    }
    if (!in.info->has<"relaxed">()) {
      accumulate(c.arriving, release_lanes(*x.warp, x.mask));
    }
    if (c.arrived >= c.live) complete(c);
    return Flow::next;
  }
  std::uint32_t waiting = 0;
  for (std::uint32_t left = x.mask; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    const std::uint64_t mine = c.arrived_phase[base + x.warp->thread(lane)];
    if (mine == 0) misuse(x, lane, "waits at the cluster's barrier without an arrive before");
    if (mine > c.phase) waiting |= 1U << lane;
  }
  if (waiting != 0) {
    x.split->wait = Wait::cluster;
    return Flow::stop;
  }
  acquire_lanes(*x.warp, x.mask, c.completed);
  return Flow::next;
}

void cluster_threads_exited(Block& block) {
  Cluster& c = *block.cluster;
  if (c.live != 0 && c.arrived != 0 && c.arrived >= c.live) complete(c);
}

/// One grid at a time runs on a device, so what a grid depends on has ended; but its threads know
/// of that from here on only. What launch_dependents allows makes no difference then.
Flow exec_griddepcontrol(Exec& x, const Inst& in) {
  if (x.grid->awaited == nullptr || !in.info->has<"wait">()) return Flow::next;
  auto all = std::make_shared<Snapshot>();
  all->push_back({x.grid->awaited->first_number, nullptr, nullptr});
  acquire_lanes(*x.warp, x.mask, all);
  return Flow::next;
}

}  // namespace tilewright::emu::detail
