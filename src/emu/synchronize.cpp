// SPDX-License-Identifier: Apache-2.0
// How barriers, releases and acquires move knowledge between threads.
#include "emu/race.h"

#include <algorithm>
#include <bit>

namespace tilewright::emu::detail {

namespace {

/// Epochs are 21 bits in Records; a block that outlives them forgets what it accessed.
constexpr std::uint32_t kEpochCeiling = Record::kEpochLimit - 8;

void raise_epochs(Warp& warp, std::uint32_t mask) {
  for (std::uint32_t left = mask; left != 0; left &= left - 1) {
    auto& e = warp.clocks.epoch[static_cast<unsigned>(std::countr_zero(left))];
    e = std::min(e + 1, kEpochCeiling);
  }
}

SnapshotRef with_own(const Knowledge& k, std::uint32_t block, ClockRef generic, ClockRef async) {
  auto out = k.foreign ? std::make_shared<Snapshot>(*k.foreign) : std::make_shared<Snapshot>();
  auto it = std::lower_bound(out->begin(), out->end(), block,
                             [](const Known& a, std::uint32_t b) { return a.block < b; });
  out->insert(it, {block, std::move(generic), std::move(async)});
  return out;
}

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
    auto& to = sum_->at;
    const auto& from = clock->at;
    if (to.size() < from.size()) to.resize(from.size());
    for (std::size_t i = 0; i < from.size(); ++i)
      to[i] = from[i] > to[i] ? from[i] : to[i];
  }
  ClockRef take() { return std::move(sum_); }

 private:
  std::shared_ptr<Clock> sum_;
  ClockRef last_;
};

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
  for (const auto& warp : block.warps) {
    if (!warp->clocks.each) {
      add(warp->clocks.common);
    } else {
      for (const Knowledge& k : *warp->clocks.each)
        add(k);
    }
  }
  all.generic = generic.take();
  all.async = async.take();
  return all;
}

}  // namespace

void synchronize_block(Block& block) {
  std::uint32_t floor = block.floor;
  for (auto& warp : block.warps) {
    for (const std::uint32_t e : warp->clocks.epoch)
      floor = std::max(floor, e);
  }
  Knowledge all = all_of(block);
  auto clock = all.generic && all.generic->at.size() > block.threads
                   ? std::make_shared<Clock>(*all.generic)
                   : std::make_shared<Clock>();
  if (clock->at.size() < block.threads) clock->at.resize(block.threads);
  std::fill_n(clock->at.begin(), block.threads, floor);
  all.generic = std::move(clock);
  block.floor = floor;
  for (auto& warp : block.warps) {
    warp->clocks.unify(Knowledge(all));
    warp->clocks.epoch.fill(std::min(floor + 1, kEpochCeiling));
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
  auto own = all.generic ? std::make_shared<Clock>(*all.generic) : std::make_shared<Clock>();
  if (own->at.size() < warp.block->threads) own->at.resize(warp.block->threads);
  for (std::uint32_t left = mask & warp.exist; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    std::uint32_t& at = own->at[warp.thread(lane)];
    at = std::max(at, c.epoch[lane]);
  }
  all.generic = std::move(own);
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
  LaneClocks& c = warp.clocks;
  const Knowledge& k = c.lane(lane);
  SnapshotRef out =
      with_own(k, warp.block->number, raised(k.generic, warp.thread(lane), c.epoch[lane]), k.async);
  raise_epochs(warp, 1U << lane);
  return out;
}

namespace {

void take(Knowledge& k, std::uint32_t own, const SnapshotRef& snapshot) {
  std::shared_ptr<Snapshot> rest;
  for (const Known& known : *snapshot) {
    if (known.block == own) {
      k.generic = join(k.generic, known.generic);
      k.async = join(k.async, known.async);
    } else {
      if (!rest) rest = std::make_shared<Snapshot>();
      rest->push_back(known);
    }
  }
  if (rest) k.foreign = join(k.foreign, rest);
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
