// SPDX-License-Identifier: Apache-2.0
// barrier.cluster.arrive and .wait; griddepcontrol.
#include "emu/cluster.h"

#include "emu/gather.h"
#include "emu/handlers.h"
#include "emu/mbarrier.h"
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

/// The phases that the warp's threads arrived at, by lane.
std::uint64_t* phases_of(Cluster& c, const Warp& warp) {
  const Block& block = *warp.block;
  c.arrived_phase.resize(c.blocks.size() * block.threads);
  return &c.arrived_phase[block.rank * block.threads + warp.thread(0)];
}

void arrive(Exec& x, const Inst& in, Cluster& c) {
  std::uint64_t* const mine = phases_of(c, *x.warp);
  const std::uint64_t phase = c.phase;
  bool twice = false;
  for_lanes(x.mask, [&](unsigned lane) { twice |= mine[lane] > phase; });
  for (std::uint32_t left = twice ? x.mask : 0; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    if (mine[lane] <= phase) continue;
    misuse(x, lane, "arrives at the cluster's barrier twice without a wait");
  }
  for_lanes(x.mask, [&](unsigned lane) { mine[lane] = phase + 1; });
  c.arrived += static_cast<std::uint32_t>(std::popcount(x.mask));
  if (in.info->has<"relaxed">()) {
    publish_inits(x, phase + 1);
  } else {
    release_lanes(*x.warp, x.mask, c.arriving);
  }
  if (c.arrived >= c.live) complete(c);
}

/// Is the phase that the lanes arrived at complete?
bool is_over(Exec& x, Cluster& c) {
  const std::uint64_t* const mine = phases_of(c, *x.warp);
  const std::uint64_t phase = c.phase;
  bool never = false, waits = false;
  for_lanes(x.mask, [&](unsigned lane) {
    never |= mine[lane] == 0;
    waits |= mine[lane] > phase;
  });
  for (std::uint32_t left = never ? x.mask : 0; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    if (mine[lane] != 0) continue;
    misuse(x, lane, "waits at the cluster's barrier without an arrive before");
  }
  return !waits;
}

}  // namespace

Flow exec_barrier_cluster(Exec& x, const Inst& in) {
  if (in.info->has<"aligned">() && gather_aligned(x) == Gather::wait) return Flow::stop;
  Cluster& c = *x.block->cluster;
  if (in.info->has<"arrive">()) {
    arrive(x, in, c);
    return Flow::next;
  }
  if (!is_over(x, c)) {
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
