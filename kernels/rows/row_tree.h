// SPDX-License-Identifier: Apache-2.0
// The order of a reduction over a row's accesses: one tree, whatever threads have them. Traced.
#pragma once

#include "kernels/rows/row_shape.h"
#include "tilewright/error.h"
#include "tilewright/sync.h"
#include "tilewright/value.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace tilewright::rows {

/// Accesses per group. Access c of a row is in group c / kGroup, where a butterfly over the bits of
/// c, highest first, reduces it; the groups' results form a tree, neighbours first. All steps
/// commute and an access beyond the row is 0, so threads may share the row in any way.
inline constexpr int kGroup = 32;

/// What is reduced of an access: one number, or several that go together.
using Numbers = std::vector<Value>;

/// Leaves one result of accesses that one thread has: halves first. `combine(a, b, sets)` takes two
/// results of `sets` accesses each. Returns how many the last one is of, without those that are
/// absent. Pre: `slots` is a power of two, not less than the number of accesses.
template <class Combine>
int fold_halves(std::vector<Numbers>& accesses, int slots, Combine&& combine) {
  int sets = 1;
  for (auto half = static_cast<std::size_t>(slots) / 2; half > 0; half /= 2) {
    if (accesses.size() <= half) continue;
    for (std::size_t i = 0; i + half < accesses.size(); ++i)
      accesses[i] = combine(accesses[i], accesses[i + half], sets);
    accesses.erase(accesses.begin() + static_cast<std::ptrdiff_t>(half), accesses.end());
    sets *= 2;
  }
  return sets;
}

/// Groups of which each lane has the result of one: lane / (lanes / slots).
struct GroupLanes {
  Numbers mine;
  int slots = 1;  ///< a power of two; those from `count` on have no group
  int count = 1;
};

namespace detail {

/// A step of the butterfly: between lanes that differ in a bit, for results of `sets` accesses.
struct Step {
  int mask, lanes, sets;
};

/// For two groups: of lanes with the bit the second is kept, of the others the first, and the other
/// one is sent.
template <class Combine>
Numbers exchange(const Numbers& first, const Numbers& second, const Value& upper, const Step& step,
                 Combine& combine) {
  Numbers kept, received;
  for (std::size_t i = 0; i < first.size(); ++i) {
    kept.push_back(select(upper, second[i], first[i]));
    received.push_back(shuffle_xor(select(upper, first[i], second[i]), step.mask, step.lanes));
  }
  return combine(kept, received, step.sets);
}

template <class Combine>
Numbers exchange(const Numbers& group, const Step& step, Combine& combine) {
  Numbers received;
  received.reserve(group.size());
  for (const Value& number : group)
    received.push_back(shuffle_xor(number, step.mask, step.lanes));
  return combine(group, received, step.sets);
}

}  // namespace detail

/// The groups of the accesses j * lanes + lane that `lanes` threads have, several at once: a step
/// halves their number before it halves the lanes of a result. Pre: `lanes` is a power of two up to
/// kGroup.
template <class Combine>
GroupLanes reduce_groups(const std::vector<Numbers>& accesses, const Value& lane, int lanes,
                         Combine&& combine) {
  const auto each = static_cast<std::size_t>(kGroup / lanes);  // accesses of a thread in a group
  std::vector<Numbers> groups;
  int sets = 1;
  for (std::size_t first = 0; first < accesses.size(); first += each) {
    const std::size_t end = std::min(first + each, accesses.size());
    std::vector<Numbers> group(accesses.begin() + static_cast<std::ptrdiff_t>(first),
                               accesses.begin() + static_cast<std::ptrdiff_t>(end));
    sets = std::max(sets, fold_halves(group, kGroup / lanes, combine));
    groups.push_back(std::move(group.front()));
  }
  GroupLanes result;
  result.count = static_cast<int>(groups.size());
  result.slots = static_cast<int>(power_of_two_from(result.count));
  int slots = result.slots;
  for (int mask = lanes / 2; mask > 0; mask /= 2, sets *= 2) {
    if (slots > 1) slots /= 2;
    const auto kept = static_cast<std::size_t>(slots);
    const detail::Step step{mask, lanes, sets};
    std::vector<Numbers> next;
    for (std::size_t i = 0; i < std::min(groups.size(), kept); ++i) {
      const bool two = i + kept < groups.size();
      next.push_back(
          two ? detail::exchange(groups[i], groups[i + kept], (lane & mask) != 0, step, combine)
              : detail::exchange(groups[i], step, combine));
    }
    groups.swap(next);
  }
  TW_ASSERT(groups.size() == 1, "a thread has at most as many groups as its group has lanes");
  result.mine = std::move(groups.front());
  return result;
}

}  // namespace tilewright::rows
