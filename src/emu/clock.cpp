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

void Clock::raise(const Clock& other) {
  floor.threads = std::max(floor.threads, other.floor.threads);
  floor.epoch = std::max(floor.epoch, other.floor.epoch);
  floor.copies = std::max(floor.copies, other.floor.copies);
  if (at.size() < other.at.size()) at.resize(other.at.size());
  for (std::size_t i = 0; i < other.at.size(); ++i)
    at[i] = std::max(at[i], other.at[i]);
}

namespace {

/// Is `a` at least `b.at` for the agents of [begin, end), where its floor is `least`?
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

bool covers(const Clock& a, const Clock& b) {
  if (a.floor.epoch < b.floor.epoch || a.floor.copies < b.floor.copies) return false;
  const std::size_t threads = a.floor.threads;
  return covers(a, b, a.floor.epoch, 0, threads) &&
         covers(a, b, a.floor.copies, threads, 2 * threads) &&
         covers(a, b, 0, 2 * threads, b.at.size());
}

/// Raises a clock that nobody else has in place.
void accumulate(ClockRef& sum, const ClockRef& more) {
  if (!more || sum == more) return;
  if (sum && sum.use_count() == 1) {
    const_cast<Clock&>(*sum).raise(*more);  // made by make_shared<Clock>
  } else {
    sum = join(sum, more);
  }
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
  auto out = clock ? std::make_shared<Clock>(*clock) : std::make_shared<Clock>();
  out->raise(agent, epoch);
  return out;
}

SnapshotRef join(const SnapshotRef& a, const SnapshotRef& b) {
  if (!b || a == b) return a;
  if (!a) return b;
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

void accumulate(SnapshotRef& sum, const SnapshotRef& more) {
  if (!more || sum == more) return;
  if (!sum || sum.use_count() != 1 || sum->size() != more->size()) {
    sum = join(sum, more);
    return;
  }
  for (std::size_t i = 0; i < more->size(); ++i) {
    if ((*sum)[i].block != (*more)[i].block) {
      sum = join(sum, more);
      return;
    }
  }
  auto& known = const_cast<Snapshot&>(*sum);  // made by make_shared<Snapshot>
  for (std::size_t i = 0; i < more->size(); ++i) {
    accumulate(known[i].generic, (*more)[i].generic);
    accumulate(known[i].async, (*more)[i].async);
  }
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
