// SPDX-License-Identifier: Apache-2.0
// Nested tuples as lists of modes: flattening, grouping, selecting, slicing, zipping.
#include "layout/fail.h"
#include "tilewright/int_tuple.h"

#include <algorithm>

namespace tilewright {
namespace {

using Elems = std::vector<IntTuple>;

void flatten_into(const IntTuple& t, Elems& out) {
  if (!t.is_tuple()) {
    out.push_back(t);
    return;
  }
  for (const IntTuple& e : t.elems()) {
    flatten_into(e, out);
  }
}

Elems copy_modes(const IntTuple& t) { return {t.elems().begin(), t.elems().end()}; }

IntTuple unflatten_from(const IntTuple& flat, int& next, const IntTuple& profile) {
  if (!profile.is_tuple()) return flat[next++];
  Elems result;
  for (const IntTuple& e : profile.elems()) {
    result.push_back(unflatten_from(flat, next, e));
  }
  return IntTuple::tuple(std::move(result));
}

void check_range(const char* what, const IntTuple& t, int begin, int end) {
  if (0 <= begin && begin <= end && end <= t.rank()) return;
  fail(std::string(what) + ": modes " + std::to_string(begin) + " to " + std::to_string(end) +
       " are not within " + to_string(t) + ", which has rank " + std::to_string(t.rank()));
}

enum class Keep : std::uint8_t { underscores, others };

void select_into(Keep keep, const Coord& coord, const IntTuple& t, Elems& out) {
  if (coord.is_tuple()) {
    if (!t.is_tuple() || coord.rank() != t.rank()) {
      fail(std::string(keep == Keep::underscores ? "slice" : "dice") + ": the coordinate " +
           to_string(coord) + " does not fit " + to_string(t) + "; give one entry a mode");
    }
    for (int i = 0; i < coord.rank(); ++i) {
      select_into(keep, coord[i], t[i], out);
    }
  } else if (coord.is_underscore() == (keep == Keep::underscores)) {
    out.push_back(t);
  }
}

IntTuple select_by(Keep keep, const Coord& coord, const IntTuple& t) {
  if (!coord.is_tuple() && coord.is_underscore() == (keep == Keep::underscores)) return t;
  Elems result;
  select_into(keep, coord, t, result);
  return IntTuple::tuple(std::move(result));
}

}  // namespace

IntTuple flatten(const IntTuple& t) {
  if (!t.is_tuple()) return t;
  Elems result;
  flatten_into(t, result);
  return IntTuple::tuple(std::move(result));
}

IntTuple unflatten(const IntTuple& flat, const IntTuple& profile) {
  if (flat.rank() != flatten(profile).rank()) {
    fail("unflatten: " + to_string(flat) + " does not have as many modes as " + to_string(profile) +
         " has leaves");
  }
  int next = 0;
  return unflatten_from(flat, next, profile);
}

IntTuple group(const IntTuple& t, int begin, int end) {
  check_range("group", t, begin, end);
  Elems modes = copy_modes(t);
  const auto first = modes.begin() + begin;
  const auto last = modes.begin() + end;
  IntTuple grouped = IntTuple::tuple(Elems(first, last));
  modes.insert(modes.erase(first, last), std::move(grouped));
  return IntTuple::tuple(std::move(modes));
}

IntTuple take(const IntTuple& t, int begin, int end) {
  check_range("take", t, begin, end);
  const std::span<const IntTuple> modes = t.elems();
  return IntTuple::tuple(Elems(modes.begin() + begin, modes.begin() + end));
}

IntTuple select(const IntTuple& t, std::span<const int> modes) {
  Elems result;
  for (int mode : modes) {
    result.push_back(t[mode]);
  }
  return IntTuple::tuple(std::move(result));
}

IntTuple append(const IntTuple& t, const IntTuple& x) {
  Elems modes = copy_modes(t);
  modes.push_back(x);
  return IntTuple::tuple(std::move(modes));
}

IntTuple prepend(const IntTuple& t, const IntTuple& x) {
  Elems modes = copy_modes(t);
  modes.insert(modes.begin(), x);
  return IntTuple::tuple(std::move(modes));
}

IntTuple append_to_rank(const IntTuple& t, int rank, const IntTuple& x) {
  if (t.rank() >= rank) return t;
  Elems modes = copy_modes(t);
  modes.resize(static_cast<std::size_t>(rank), x);
  return IntTuple::tuple(std::move(modes));
}

IntTuple prepend_to_rank(const IntTuple& t, int rank, const IntTuple& x) {
  if (t.rank() >= rank) return t;
  Elems modes = copy_modes(t);
  modes.insert(modes.begin(), static_cast<std::size_t>(rank - t.rank()), x);
  return IntTuple::tuple(std::move(modes));
}

IntTuple replace(const IntTuple& t, int mode, const IntTuple& x) {
  check_range("replace", t, mode, mode + 1);
  Elems modes = copy_modes(t);
  modes[static_cast<std::size_t>(mode)] = x;
  return IntTuple::tuple(std::move(modes));
}

IntTuple repeat_like(const IntTuple& profile, const IntTuple& leaf) {
  if (!profile.is_tuple()) return leaf;
  Elems result;
  for (const IntTuple& e : profile.elems()) {
    result.push_back(repeat_like(e, leaf));
  }
  return IntTuple::tuple(std::move(result));
}

IntTuple unwrap(const IntTuple& t) { return t.is_tuple() && t.rank() == 1 ? unwrap(t[0]) : t; }

IntTuple zip(const IntTuple& t) {
  if (!t.is_tuple() || t.rank() == 0) fail("zip: " + to_string(t) + " is no tuple of tuples");
  if (!t[0].is_tuple()) return IntTuple::tuple({t});  // leaves: one mode of them all
  const int modes = t[0].rank();
  Elems result;
  for (int i = 0; i < modes; ++i) {
    Elems column;
    for (const IntTuple& e : t.elems()) {
      if (e.rank() != modes) fail("zip: the modes of " + to_string(t) + " differ in rank");
      column.push_back(e[i]);
    }
    result.push_back(IntTuple::tuple(std::move(column)));
  }
  return IntTuple::tuple(std::move(result));
}

IntTuple slice(const Coord& coord, const IntTuple& t) {
  return select_by(Keep::underscores, coord, t);
}

IntTuple dice(const Coord& coord, const IntTuple& t) { return select_by(Keep::others, coord, t); }

bool has_underscore(const IntTuple& t) {
  if (!t.is_tuple()) return t.is_underscore();
  return std::any_of(t.elems().begin(), t.elems().end(), has_underscore);
}

}  // namespace tilewright
