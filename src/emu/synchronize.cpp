// SPDX-License-Identifier: Apache-2.0
// How barriers, releases and acquires move knowledge between threads.
#include "emu/race.h"

#include <algorithm>
#include <bit>

namespace tilewright::emu::detail {

namespace {

/// Epochs are 21 bits in Records; a block that outlives them forgets what it accessed.
constexpr std::uint32_t kEpochCeiling = Record::kEpochLimit - 8;

/// What several threads know together. Fences count for all of them: a barrier hands on what a
/// thread fenced before it.
void absorb(Knowledge& out, const Knowledge& k) {
  out.generic = join(out.generic, k.generic);
  out.async = join(out.async, k.async);
  out.foreign = join(out.foreign, k.foreign);
  if (k.fenced) {
    out.fence_scope = out.fenced ? std::min(out.fence_scope, k.fence_scope) : k.fence_scope;
    out.fenced = join(out.fenced, k.fenced);
  }
  for (const Released& r : k.pending) {
    const bool known = std::any_of(out.pending.begin(), out.pending.end(),
                                   [&](const Released& o) { return o.snapshot == r.snapshot; });
    if (!known) out.pending.push_back(r);
  }
}

/// The maximum of many clocks, without a new clock for each.
class Maximum {
 public:
  void add(const ClockRef& clock) {
    if (!clock || clock == last_) return;
    last_ = clock;
    if (!sum_) sum_ = std::make_shared<Clock>();
    sum_->raise(*clock);
  }
  std::shared_ptr<Clock> take() { return std::move(sum_); }

 private:
  std::shared_ptr<Clock> sum_;
  ClockRef last_;
};

bool same(const Knowledge& a, const Knowledge& b) {
  return a.generic == b.generic && a.async == b.async && a.foreign == b.foreign &&
         a.fenced == b.fenced && a.pending.empty() && b.pending.empty();
}

/// Every thread has the same knowledge already.
bool all_same(const Block& block) {
  const Knowledge& first = block.warps[0]->clocks.common;
  for (std::size_t w = 0; w < block.warp_count(); ++w) {
    const LaneClocks& c = block.warps[w]->clocks;
    if (c.each || !same(c.common, first)) return false;
  }
  return true;
}

/// What all threads of a block know together.
Knowledge all_of(const Block& block) {
  Knowledge all;
  Maximum generic, async;
  auto add = [&](const Knowledge& k) {
    generic.add(k.generic);
    async.add(k.async);
    if (!k.foreign && !k.fenced && k.pending.empty()) return;
    Knowledge rest = k;
    rest.generic = rest.async = nullptr;
    absorb(all, rest);
  };
  for (std::size_t w = 0; w < block.warp_count(); ++w) {
    const LaneClocks& c = block.warps[w]->clocks;
    if (!c.each) {
      add(c.common);
    } else {
      for (const Knowledge& k : *c.each)
        add(k);
    }
  }
  all.generic = generic.take();
  all.async = async.take();
  return all;
}

/// The cp.async groups that some thread knows to be complete, beyond those that each does.
void add_copies(const Block& block, std::shared_ptr<Clock>& clock) {
  for (std::size_t w = 0; w < block.warp_count(); ++w) {
    const Warp& warp = *block.warps[w];
    const auto lanes = static_cast<unsigned>(std::popcount(warp.exist));
    for (unsigned lane = 0; lane < lanes; ++lane) {
      const std::uint32_t copied = warp.clocks.copied[lane];
      if (copied <= block.floor.copies) continue;
      if (!clock) clock = std::make_shared<Clock>();
      clock->raise(block.cp_agent(warp.thread(lane)), copied);
    }
  }
}

/// Raises the floor to what all threads know from now on. Returns whether that is all there is to
/// know of the block's own copies.
bool raise_floor(Block& block) {
  std::uint32_t epoch = block.floor.epoch;
  for (std::size_t w = 0; w < block.warp_count(); ++w) {
    const LaneClocks& c = block.warps[w]->clocks;
    epoch = std::max(epoch, c.latest_epoch());
  }
  block.floor.epoch = epoch;
  if (block.cp_users == 0) return true;
  std::uint32_t least = ~std::uint32_t{0}, most = 0;
  for (std::size_t w = 0; w < block.warp_count(); ++w) {
    const LaneClocks& c = block.warps[w]->clocks;
    const auto lanes = static_cast<unsigned>(std::popcount(block.warps[w]->exist));
    for (unsigned lane = 0; lane < lanes; ++lane) {
      least = std::min(least, c.copied[lane]);
      most = std::max(most, c.copied[lane]);
    }
  }
  block.floor.copies = std::max(block.floor.copies, least);
  return most <= block.floor.copies;
}

bool is_whole(const Warp& warp, std::uint32_t mask) { return (warp.exist & ~mask) == 0; }

/// Adds what the lanes of `mask` did themselves, and what all of the block knows.
void add_own(Clock& to, const Warp& warp, std::uint32_t mask) {
  const LaneClocks& c = warp.clocks;
  const Block& block = *warp.block;
  to.raise(block.floor);
  if (is_whole(warp, mask)) {
    to.warps[warp.id] = std::max(to.warps[warp.id], c.latest_epoch());
  } else {
    for_lanes(mask, [&](unsigned lane) { to.raise(warp.thread(lane), c.epoch[lane]); });
  }
  if (block.cp_users == 0) return;
  for_lanes(mask & warp.exist,
            [&](unsigned lane) { to.raise(block.cp_agent(warp.thread(lane)), c.copied[lane]); });
}

/// The same with what they know, which is common.
void add_common(Known& to, const Warp& warp, std::uint32_t mask, const Knowledge& common) {
  Clock& clock = make_own(to.generic);
  if (common.generic) clock.raise(*common.generic);
  add_own(clock, warp, mask);
  to.async = join(to.async, common.async);
}

}  // namespace

void raise_epochs(Warp& warp, std::uint32_t mask) {
  LaneClocks& c = warp.clocks;
  if (is_whole(warp, mask)) {
    c.epoch.fill(std::min(c.latest_epoch() + 1, kEpochCeiling));
    c.together = true;
    return;
  }
  c.together = false;
  for_lanes(mask,
            [&](unsigned lane) { c.epoch[lane] = std::min(c.epoch[lane] + 1, kEpochCeiling); });
}

std::shared_ptr<Clock> own_clock(Warp& warp, std::uint32_t mask) {
  LaneClocks& c = warp.clocks;
  auto out = std::make_shared<Clock>();
  const Clock* last = nullptr;
  for (std::uint32_t left = mask; left != 0; left &= left - 1) {
    const Clock* known = c.lane(static_cast<unsigned>(std::countr_zero(left))).generic.get();
    if (known != nullptr && known != last) out->raise(*known);
    last = known;
    if (!c.each) break;
  }
  add_own(*out, warp, mask);
  return out;
}

void synchronize_block(Block& block) {
  const bool copies_known = raise_floor(block);
  const std::uint32_t next = std::min(block.floor.epoch + 1, kEpochCeiling);
  if (!copies_known || !all_same(block)) {
    Knowledge all = all_of(block);
    auto clock = all.generic ? std::make_shared<Clock>(*all.generic) : nullptr;
    add_copies(block, clock);
    if (clock) {  // the floor is known anyway, and with it all that threads did
      clock->floor = {};
      clock->warps.fill(0);
      for (std::uint32_t i = 0; i < clock->at.size(); ++i) {
        if (clock->at[i] <= block.floor[i]) clock->at[i] = 0;
      }
      const auto& at = clock->at;
      if (std::none_of(at.begin(), at.end(), [](std::uint32_t e) { return e != 0; })) {
        clock = nullptr;
      }
    }
    all.generic = std::move(clock);
    for (std::size_t w = 0; w < block.warp_count(); ++w)
      block.warps[w]->clocks.unify(Knowledge(all));
  }
  for (std::size_t w = 0; w < block.warp_count(); ++w) {
    block.warps[w]->clocks.epoch.fill(next);
    block.warps[w]->clocks.together = true;
  }
  block.free_reader_lists();
}

void synchronize_lanes(Warp& warp, std::uint32_t mask) {
  LaneClocks& c = warp.clocks;
  const bool whole = (mask & warp.live) == warp.live;
  if (!whole) c.split();
  Knowledge all;
  if (!c.each) {
    all = c.common;
  } else {
    for (std::uint32_t left = mask; left != 0; left &= left - 1) {
      absorb(all, (*c.each)[static_cast<unsigned>(std::countr_zero(left))]);
    }
  }
  add_own(make_own(all.generic), warp, mask & warp.exist);
  if (whole) {
    c.unify(std::move(all));
    raise_epochs(warp, ~std::uint32_t{0});
    return;
  }
  for (std::uint32_t left = mask; left != 0; left &= left - 1) {
    (*c.each)[static_cast<unsigned>(std::countr_zero(left))] = all;
  }
  raise_epochs(warp, mask);
}

SnapshotRef release_snapshot(Warp& warp, unsigned lane) {
  const Knowledge& k = warp.clocks.lane(lane);
  SnapshotRef out = k.foreign;
  Known& known = make_own(out, warp.block->number);
  known.generic = known.async = nullptr;  // older than what the lane knows of its own block
  add_common(known, warp, 1U << lane, k);
  raise_epochs(warp, 1U << lane);
  return out;
}

void release_lanes(Warp& warp, std::uint32_t mask, SnapshotRef& into) {
  if (warp.clocks.each) {
    for_lanes(mask, [&](unsigned lane) { accumulate(into, release_snapshot(warp, lane)); });
    return;
  }
  const Knowledge& k = warp.clocks.common;
  accumulate(into, k.foreign);
  add_common(make_own(into, warp.block->number), warp, mask, k);
  raise_epochs(warp, mask);
}

namespace {

void take(Knowledge& k, std::uint32_t block, const SnapshotRef& snapshot) {
  const Known* known = find_block(snapshot, block);
  if (known != nullptr) {
    k.generic = join(k.generic, known->generic);
    k.async = join(k.async, known->async);
  }
  const std::size_t others = snapshot->size() - (known != nullptr ? 1 : 0);
  if (others != 0) k.foreign = join(k.foreign, snapshot);
}

}  // namespace

void acquire_snapshot(Warp& warp, unsigned lane, const SnapshotRef& snapshot) {
  acquire_lanes(warp, 1U << lane, snapshot);
}

void acquire_lanes(Warp& warp, std::uint32_t mask, const SnapshotRef& snapshot) {
  if (!snapshot) return;
  LaneClocks& c = warp.clocks;
  if (!c.each && (warp.live & ~mask) == 0) {
    take(c.common, warp.block->number, snapshot);
    return;
  }
  c.split();
  // Lanes with the same knowledge before have the same, shared, after.
  std::vector<std::pair<Knowledge, unsigned>> done;
  for (std::uint32_t left = mask; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    Knowledge& k = (*c.each)[lane];
    auto same = std::find_if(done.begin(), done.end(), [&](const auto& d) {
      return d.first.generic == k.generic && d.first.async == k.async &&
             d.first.foreign == k.foreign;
    });
    if (same != done.end()) {
      const Knowledge& from = (*c.each)[same->second];
      k.generic = from.generic;
      k.async = from.async;
      k.foreign = from.foreign;
      continue;
    }
    done.emplace_back(k, lane);
    take(k, warp.block->number, snapshot);
  }
  c.try_unify();
}

}  // namespace tilewright::emu::detail
