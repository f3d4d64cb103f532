// SPDX-License-Identifier: Apache-2.0
// bar.sync, bar.arrive, bar.red and their barrier.cta spellings; bar.warp.sync.
#include "emu/barrier.h"

#include "emu/cluster.h"
#include "emu/gather.h"
#include "emu/handlers.h"
#include "emu/race.h"

#include <algorithm>
#include <bit>

namespace tilewright::emu::detail {

namespace {

std::uint32_t first_lane(std::uint32_t mask) {
  return static_cast<std::uint32_t>(std::countr_zero(mask));
}

void mismatch(Exec& x, Severity severity, std::string message) {
  if (!x.checks(Kind::barrier_mismatch)) return;
  report(x, {.kind = Kind::barrier_mismatch,
             .severity = severity,
             .lane = first_lane(x.mask),
             .message = std::move(message),
             .range = {},
             .other = {}});
}

/// Threads that count as arrived: whole warps count exited lanes too.
std::uint32_t arrived_threads(const Block& block, const BarrierState& b) {
  std::uint32_t count = 0;
  for (std::size_t w = 0; w < block.warp_count(); ++w) {
    const Warp& warp = *block.warps[w];
    const std::uint32_t lanes = b.lanes[w];
    if (lanes == 0) continue;
    const bool whole = (warp.live & ~lanes) == 0;
    count += whole ? 32 : static_cast<std::uint32_t>(std::popcount(lanes));
  }
  return count;
}

bool is_complete(const Block& block, const BarrierState& b) {
  if (b.counted) return arrived_threads(block, b) >= b.expected;
  if (b.arrived < block.live_threads) return false;
  for (std::size_t w = 0; w < block.warp_count(); ++w) {
    if ((block.warps[w]->live & ~b.lanes[w]) != 0) return false;
  }
  return true;
}

void contribute(BarrierState& b, Warp& warp, std::uint32_t lanes) {
  if (lanes == 0) return;
  auto own = own_clock(warp, lanes);
  if (b.generic) {
    b.generic->raise(*own);
  } else {
    b.generic = std::move(own);
  }
  for (std::uint32_t left = lanes; left != 0; left &= left - 1) {
    const Knowledge& k = warp.clocks.lane(first_lane(left));
    b.async = join(b.async, k.async);
    b.foreign = join(b.foreign, k.foreign);
  }
  raise_epochs(warp, lanes);
}

void receive(Warp& warp, std::uint32_t lanes, const BarrierState& b) {
  LaneClocks& c = warp.clocks;
  const bool whole = (warp.live & ~lanes) == 0;
  if (!whole) c.split();
  auto update = [&](Knowledge& k) {
    k.generic = join(k.generic, b.generic);
    k.async = join(k.async, b.async);
    k.foreign = join(k.foreign, b.foreign);
  };
  if (!c.each) {
    update(c.common);
    return;
  }
  for (std::uint32_t left = lanes; left != 0; left &= left - 1) {
    update((*c.each)[first_lane(left)]);
  }
  c.try_unify();
}

void complete(Block& block, BarrierState& b, std::uint32_t id) {
  const bool everyone = b.whole_block && b.waiting == b.lanes;
  if (everyone) {
    synchronize_block(block);
  } else {
    if (b.whole_block) {  // those that wait have not contributed yet
      for (std::size_t w = 0; w < block.warp_count(); ++w) {
        contribute(b, *block.warps[w], b.waiting[w]);
      }
    }
    for (std::size_t w = 0; w < block.warp_count(); ++w) {
      if (b.waiting[w] != 0) receive(*block.warps[w], b.waiting[w], b);
    }
  }
  b.result_true = b.votes_true;
  b.result_votes = b.votes;
  for (std::size_t w = 0; w < block.warp_count(); ++w) {
    Warp& warp = *block.warps[w];
    for (Split& s : warp.splits) {
      if (s.wait != Wait::barrier || s.barrier != id) continue;
      s.wait = Wait::none;
      if (block.grid->code->insts[s.pc].info->has<"red">()) {
        s.resumed = true;  // to fetch the result
      } else {
        ++s.pc;
      }
      block.grid->run->make_ready(warp);
    }
  }
  b.close();
  block.grid->run->changed();
}

/// Checks the counts of an arrival against the barrier's. False: do not arrive.
bool open_barrier(Exec& x, BarrierState& b, std::uint32_t id, std::uint32_t count, bool whole) {
  const std::uint32_t most = (x.block->threads + 31) / 32 * 32;
  if (!whole && (count == 0 || count % 32 != 0)) {
    mismatch(x, Severity::error,
             "has a thread count of " + std::to_string(count) + "; use a multiple of 32");
    return false;
  }
  if (!whole && count > most) {
    mismatch(x, Severity::error,
             "waits for " + std::to_string(count) + " threads, but the block has " +
                 std::to_string(x.block->threads));
  }
  if (!b.open) {
    b.open = true;
    b.lanes = {};
    b.waiting = {};
    b.expected = count;
    b.whole_block = whole || count == most;
    b.counted = !whole;
    b.first_pc = x.pc;
    return true;
  }
  const bool mine = whole || count == most;
  if (mine != b.whole_block || (!mine && b.expected != count)) {
    mismatch(x, Severity::error,
             "waits at barrier " + std::to_string(id) + " for " +
                 (mine ? std::string("the whole block") : std::to_string(count) + " threads") +
                 ", but others that arrived at it expect " +
                 (b.whole_block ? std::string("the whole block")
                                : std::to_string(b.expected) + " threads"));
  }
  b.counted = b.counted && !whole;
  return true;
}

void write_result(Exec& x, const Inst& in, const BarrierState& b) {
  const bool popc = in.info->has<"popc">();
  std::uint64_t value = b.result_true;
  if (!popc) {
    const bool any = in.info->has<"or">();
    value = any ? b.result_true != 0 : b.result_true == b.result_votes;
  }
  for (std::uint32_t left = x.mask; left != 0; left &= left - 1) {
    x.set(in.slot[0], first_lane(left), value);
  }
}

struct Arrival {
  std::uint32_t id = 0, count = 0;
  bool whole = true, arrive = false, red = false, aligned = false;
};

Arrival read_arrival(Exec& x, const Inst& in) {
  const OpInfo& info = *in.info;
  Arrival a;
  a.red = info.has<"red">();
  a.arrive = info.has<"arrive">();
  a.aligned = info.has<"aligned">();
  const int first = a.red ? 1 : 0;
  const int count_operands = info.operands - first - (a.red ? 1 : 0);
  const unsigned lane = first_lane(x.mask);
  a.id =
      static_cast<std::uint32_t>(x.value(in.slot[info.start[static_cast<unsigned>(first)]], lane));
  if (count_operands > 1) {
    a.whole = false;
    a.count = static_cast<std::uint32_t>(
        x.value(in.slot[info.start[static_cast<unsigned>(first + 1)]], lane));
  }
  return a;
}

}  // namespace

Flow exec_barrier(Exec& x, const Inst& in) {
  Arrival a = read_arrival(x, in);
  const bool waited = x.split->resumed && a.id < 16 && !x.split->gathering;
  if (waited) {
    x.split->resumed = false;
    if (a.red) write_result(x, in, x.block->barriers[a.id]);
    return Flow::next;
  }
  x.split->gathering = true;
  if (a.aligned && gather_aligned(x) == Gather::wait) return Flow::stop;
  x.split->gathering = false;
  if (a.id >= 16) {
    mismatch(x, Severity::error, "uses barrier " + std::to_string(a.id) + "; there are 0 to 15");
    return Flow::next;
  }
  BarrierState& b = x.block->barriers[a.id];
  if (!open_barrier(x, b, a.id, a.count, a.whole)) return Flow::next;
  if ((b.lanes[x.warp->id] & x.mask) != 0) {
    mismatch(x, Severity::error,
             "arrives at barrier " + std::to_string(a.id) + " again before it completed");
  }
  b.lanes[x.warp->id] |= x.mask;
  if (!a.arrive) b.waiting[x.warp->id] |= x.mask;
  if (a.red) {
    const Slot& vote = in.slot[in.info->start[static_cast<unsigned>(in.info->operands - 1)]];
    for (std::uint32_t left = x.mask; left != 0; left &= left - 1) {
      b.votes_true += static_cast<std::uint32_t>(x.value(vote, first_lane(left)));
      ++b.votes;
    }
  }
  b.arrived += static_cast<std::uint32_t>(std::popcount(x.mask));
  if (!b.whole_block || a.arrive) contribute(b, *x.warp, x.mask);
  if (a.arrive) {
    if (is_complete(*x.block, b)) complete(*x.block, b, a.id);
    return Flow::next;
  }
  if (x.mask != x.split->mask) {
    const std::size_t rest = divide(*x.warp, x.warp->current, x.split->mask & ~x.mask);
    x.split = &x.warp->splits[x.warp->current];
    x.warp->splits[rest].pc = x.pc + 1;
  }
  x.split->wait = Wait::barrier;
  x.split->barrier = static_cast<std::uint8_t>(a.id);
  if (is_complete(*x.block, b)) complete(*x.block, b, a.id);
  return Flow::stop;
}

void threads_exited(Block& block) {
  for (std::uint32_t id = 0; id < block.barriers.size(); ++id) {
    BarrierState& b = block.barriers[id];
    if (!b.open) continue;
    if (b.whole_block && block.live_threads != 0 && is_complete(block, b)) {
      complete(block, b, id);
    }
  }
  cluster_threads_exited(block);
}

Flow exec_barrier_warp(Exec& x, const Inst& in) {
  if (gather(x, in.slot[0]) == Gather::wait) return Flow::stop;
  for (std::uint32_t left = x.mask; left != 0;) {
    const unsigned lane = first_lane(left);
    const auto members = static_cast<std::uint32_t>(x.value(in.slot[0], lane)) & x.warp->live;
    synchronize_lanes(*x.warp, members | 1U << lane);
    left &= ~(members | 1U << lane);
  }
  return Flow::next;
}

}  // namespace tilewright::emu::detail
