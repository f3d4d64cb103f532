// SPDX-License-Identifier: Apache-2.0
// Joins of vector clocks that share what does not change.
#include "emu/clock.h"

#include <algorithm>

namespace tilewright::emu::detail {

void Clock::raise(std::uint32_t agent, std::uint32_t epoch) {
  if ((*this)[agent] >= epoch) return;
  if (at.size() <= agent) at.resize(agent + 1);
  at[agent] = epoch;
}

void Clock::raise(const Floor& least) {
  floor.threads = std::max(floor.threads, least.threads);
  floor.epoch = std::max(floor.epoch, least.epoch);
  floor.copies = std::max(floor.copies, least.copies);
}

void Clock::raise(const Clock& other) {
  raise(other.floor);
  for (std::size_t w = 0; w < kWarps; ++w)
    warps[w] = std::max(warps[w], other.warps[w]);
  if (at.size() < other.at.size()) at.resize(other.at.size());
  for (std::size_t i = 0; i < other.at.size(); ++i)
    at[i] = std::max(at[i], other.at[i]);
}

namespace {

/// Is `a` at least `b.at` for the agents of [begin, end), where it knows `least` of each?
bool covers(const Clock& a, const Clock& b, std::uint32_t least, std::size_t begin,
            std::size_t end) {
  end = std::min(end, b.at.size());
  const std::size_t both = std::clamp(a.at.size(), begin, std::max(begin, end));
  const std::size_t common = std::min(both, end);
  constexpr std::size_t kPiece = 32;  // vector code, and an early end
  for (std::size_t i = begin; i < common; i += kPiece) {
    bool above = false;
    for (std::size_t j = i; j < std::min(i + kPiece, common); ++j)
      above |= b.at[j] > std::max(a.at[j], least);
    if (above) return false;
  }
  bool above = false;
  for (std::size_t i = both; i < end; ++i)
    above |= b.at[i] > least;
  return !above;
}

/// Is `a` known to be at least `b`? It may say no where only single agents' entries show it.
bool covers(const Clock& a, const Clock& b) {
  if (a.floor.epoch < b.floor.epoch || a.floor.copies < b.floor.copies) return false;
  std::uint32_t above = 0;
  for (std::size_t w = 0; w < Clock::kWarps; ++w)
    above |= b.warps[w] > std::max(a.warps[w], a.floor.epoch) ? 1U : 0U;
  if (above != 0) return false;
  if (b.at.empty()) return true;
  const std::size_t threads = a.floor.threads;
  for (std::size_t t = 0; t < std::min(threads, b.at.size()); t += 32) {
    const std::uint32_t least = a.of_warp(static_cast<std::uint32_t>(t / 32));
    if (!covers(a, b, least, t, std::min(t + 32, threads))) return false;
  }
  return covers(a, b, a.floor.copies, threads, 2 * threads) &&
         covers(a, b, 0, 2 * threads, b.at.size());
}

bool covers(const ClockRef& a, const ClockRef& b) { return !b || a == b || (a && covers(*a, *b)); }

/// Has `a` an entry for each of `b`, and one that is at least it?
bool covers(const Snapshot& a, const Snapshot& b) {
  auto i = a.begin();
  for (const Known& k : b) {
    while (i != a.end() && i->block < k.block)
      ++i;
    if (i == a.end() || i->block != k.block) return false;
    if (!covers(i->generic, k.generic) || !covers(i->async, k.async)) return false;
  }
  return true;
}

/// Raises a clock that nobody else has in place.
void accumulate(ClockRef& sum, const ClockRef& more) {
  if (!more || sum == more) return;
  if (sum && sum.use_count() == 1) {
    make_own(sum).raise(*more);
  } else {
    sum = join(sum, more);
  }
}

auto place_of(const Snapshot& snapshot, std::uint32_t block) {
  return std::lower_bound(snapshot.begin(), snapshot.end(), block,
                          [](const Known& k, std::uint32_t b) { return k.block < b; });
}

}  // namespace

ClockRef join(const ClockRef& a, const ClockRef& b) {
  if (!b || a == b) return a;
  if (!a) return b;
  if (covers(*a, *b)) return a;
  if (covers(*b, *a)) return b;
  auto out = std::make_shared<Clock>(*a);
  out->raise(*b);
  return out;
}

ClockRef raised(const ClockRef& clock, std::uint32_t agent, std::uint32_t epoch) {
  if (clock && (*clock)[agent] >= epoch) return clock;
  ClockRef out = clock;
  make_own(out).raise(agent, epoch);
  return out;
}

Clock& make_own(ClockRef& clock) {
  if (!clock) {
    clock = std::make_shared<Clock>();
  } else if (clock.use_count() != 1) {
    clock = std::make_shared<Clock>(*clock);
  }
  return const_cast<Clock&>(*clock);  // made by make_shared<Clock>
}

const Known* find_block(const SnapshotRef& snapshot, std::uint32_t block) {
  if (!snapshot) return nullptr;
  const auto it = place_of(*snapshot, block);
  return it != snapshot->end() && it->block == block ? &*it : nullptr;
}

SnapshotRef join(const SnapshotRef& a, const SnapshotRef& b) {
  if (!b || a == b) return a;
  if (!a || covers(*b, *a)) return b;
  if (covers(*a, *b)) return a;
  auto out = std::make_shared<Snapshot>();
  out->reserve(std::max(a->size(), b->size()));
  auto i = a->begin();
  auto j = b->begin();
  while (i != a->end() || j != b->end()) {
    if (j == b->end() || (i != a->end() && i->block < j->block)) {
      out->push_back(*i++);
    } else if (i == a->end() || j->block < i->block) {
      out->push_back(*j++);
    } else {
      out->push_back({i->block, join(i->generic, j->generic), join(i->async, j->async)});
      ++i;
      ++j;
    }
  }
  return out;
}

bool LaneClocks::compare_epochs() {
  std::uint32_t differ = 0;
  for (const std::uint32_t e : epoch)
    differ |= e ^ epoch[0];
  together = differ == 0;
  return together;
}

std::uint32_t LaneClocks::latest_epoch() const {
  return together ? epoch[0] : *std::ranges::max_element(epoch);
}

void accumulate(SnapshotRef& sum, const SnapshotRef& more) {
  if (!more || sum == more) return;
  if (!sum || sum.use_count() != 1) {
    sum = join(sum, more);
    return;
  }
  auto& all = const_cast<Snapshot&>(*sum);  // made by make_shared<Snapshot>
  auto to = all.begin();
  for (const Known& k : *more) {
    while (to != all.end() && to->block < k.block)
      ++to;
    if (to == all.end() || to->block != k.block) {
      sum = join(sum, more);
      return;
    }
    accumulate(to->generic, k.generic);
    accumulate(to->async, k.async);
  }
}

Known& make_own(SnapshotRef& snapshot, std::uint32_t block) {
  if (!snapshot) {
    snapshot = std::make_shared<Snapshot>();
  } else if (snapshot.use_count() != 1) {
    snapshot = std::make_shared<Snapshot>(*snapshot);
  }
  auto& all = const_cast<Snapshot&>(*snapshot);  // made by make_shared<Snapshot>
  const auto at = all.begin() + (place_of(all, block) - all.cbegin());
  if (at != all.end() && at->block == block) return *at;
  return *all.insert(at, {block, nullptr, nullptr});
}

void LaneClocks::split() {
  if (each) return;
  each = std::make_unique<std::array<Knowledge, 32>>();
  each->fill(common);
}

void LaneClocks::try_unify() {
  if (!each) return;
  const Knowledge& first = (*each)[0];
  for (const Knowledge& k : *each) {
    const bool same = k.generic == first.generic && k.async == first.async &&
                      k.foreign == first.foreign && k.fenced == first.fenced && k.pending.empty();
    if (!same) return;
  }
  unify(Knowledge(first));
}

void LaneClocks::unify(Knowledge knowledge) {
  each.reset();
  common = std::move(knowledge);
}

}  // namespace tilewright::emu::detail
