// SPDX-License-Identifier: Apache-2.0
// Composition of layouts, and the proof that its result is right.
#include "layout/fail.h"
#include "layout/modes.h"

#include <algorithm>
#include <limits>
#include <memory>

namespace tilewright {
namespace {

// The least an extent can be: of an empty layout every claim holds, so 0 need not be considered.
std::int64_t least(const Int& extent) {
  return extent.min() > 0 ? extent.min() : std::max<std::int64_t>(extent.divisor(), 1);
}

// Composes one lhs with rhs leaf after rhs leaf. Each leaf falls apart into steps within the modes
// of lhs, like the digits of a number. That is right as long as no leaf crosses the end of a mode
// (CuTe's divisibility conditions) and all leaves together do not either: check_carries().
class Composer {
 public:
  Composer(const Layout& lhs, const Layout& rhs)
      : lhs_(lhs), rhs_(rhs), modes_(coalesced_open(modes_of(lhs))), reach_(modes_.size()) {}

  Layout leaf(const Int& extent, const Int& stride) {
    if (stride.is_static(0)) return {extent, 0};
    if (modes_.size() == 1) return {extent, {stride * modes_[0].stride, modes_[0].basis}};
    Modes result;
    Int rest_extent = extent;
    Int rest_stride = stride;
    for (std::size_t i = 0; i + 1 < modes_.size(); ++i) {
      step(i, rest_extent, rest_stride, result);
    }
    if (result.empty() || !rest_extent.is_static(1)) {
      place(modes_.size() - 1, rest_extent, rest_stride, result);
    }
    return from_modes(result);
  }

  void check_carries() const {
    bool up = false;
    bool down = false;
    int used = 0;
    for (std::size_t i = 0; i < modes_.size(); ++i) {
      const Reach& reach = reach_[i];
      up = up || !reach.up.is_static(0);
      down = down || !reach.down.is_static(0);
      used += static_cast<int>(!reach.up.is_static(0) || !reach.down.is_static(0));
      if (i + 1 == modes_.size()) break;  // the last mode goes on for ever
      const Int furthest = max(reach.up, reach.down);
      if (furthest.max() < least(modes_[i].extent)) continue;
      if ((modes_[i].extent - furthest).min() > 0) continue;
      refuse("the modes of " + to_string(rhs_) + " together reach " + to_string(furthest) +
             " steps into the mode " + text(i) +
             " and carry into the next, which no layout of that shape expresses; compose with a "
             "layout whose modes do not add up there");
    }
    if (up && down && used > 1) {
      refuse(
          "strides of both signs meet in different modes and borrow from one another; compose with "
          "strides of one sign");
    }
  }

 private:
  // How far rhs leaves of positive and of negative stride go in a mode of lhs, in elements.
  struct Reach {
    Int up, down;
  };

  [[noreturn]] void refuse(const std::string& reason) const {
    fail("composition: " + to_string(lhs_) + " o " + to_string(rhs_) + ": " + reason);
  }

  std::string text(std::size_t i) const {
    return to_string(modes_[i].extent) + ":" +
           to_string(IntTuple(modes_[i].stride, modes_[i].basis));
  }

  // Takes from the rest what lies in mode i of lhs.
  void step(std::size_t i, Int& rest_extent, Int& rest_stride, Modes& result) {
    const Int& extent = modes_[i].extent;
    const Int distance = abs(rest_stride);
    if (is_multiple(distance, extent)) {
      rest_stride = rest_stride / extent;
    } else if (distance.max() <= least(extent)) {
      if (!rest_extent.is_static(1)) {
        const Int taken = take(i, distance, rest_extent);
        place(i, taken, rest_stride, result);
        rest_extent = rest_extent / taken;
      }
      rest_stride = signum(rest_stride);
    } else {
      refuse_stride(i, rest_stride);
    }
  }

  // How many of `wanted` steps of this distance fall into mode i of lhs.
  Int take(std::size_t i, const Int& distance, const Int& wanted) const {
    const Int& extent = modes_[i].extent;
    const Int room = ceil_div(extent, distance);
    if (wanted.max() <= ceil_div(Int(least(extent)), Int(distance.max())).value()) return wanted;
    if (wanted == room) return room;
    // More than there is room for: they must fill the mode exactly and go on in the next.
    const std::string hint = room.is_static() && wanted.is_static()
                                 ? "; use extents and strides that divide"
                                 : "; give the dynamic one a divisor, or make it static";
    if (!is_multiple(wanted, room)) {
      refuse("the extent " + to_string(wanted) + " is no multiple of the " + to_string(room) +
             " steps of stride " + to_string(distance) + " that the mode " + text(i) +
             " has room for" + hint);
    }
    if (!is_multiple(extent, distance)) {
      refuse("steps of stride " + to_string(distance) + " do not end where the mode " + text(i) +
             " does, and the next mode starts off by the rest" + hint);
    }
    return room;
  }

  void place(std::size_t i, const Int& extent, const Int& stride, Modes& result) {
    result.push_back({extent, stride * modes_[i].stride, modes_[i].basis});
    if (extent.is_static(1)) return;
    const Int steps = (extent - 1) * abs(stride);
    if (stride.max() > 0) reach_[i].up += steps;
    if (stride.min() < 0) reach_[i].down += steps;
  }

  [[noreturn]] void refuse_stride(std::size_t i, const Int& stride) const {
    const bool known = stride.is_static() && modes_[i].extent.is_static();
    refuse("the stride " + to_string(stride) +
           (known ? " is neither less than nor a multiple of the extent of the mode "
                  : " is not known to be less than, or a multiple of, the extent of the mode ") +
           text(i) +
           (known ? "; use a stride that divides or is divided by it"
                  : "; give the dynamic one a divisor or bounds, or make it static"));
  }

  const Layout& lhs_;
  const Layout& rhs_;
  Modes modes_;
  std::vector<Reach> reach_;
};

// Follows the profile of rhs. Leaves with basis strides compose with the mode of lhs that the basis
// names, all others with lhs as a whole.
class Walk {
 public:
  Walk(const Layout& lhs, const Layout& rhs) : lhs_(lhs), rhs_(rhs) {}

  Layout run() {
    const Layout result = compose(rhs_.shape(), rhs_.stride());
    for (const Entry& entry : composers_) {
      entry.composer.check_carries();
    }
    return result;
  }

 private:
  struct Entry {
    BasisPath path;
    Composer composer;
  };

  Layout compose(const Shape& shape, const Stride& stride) {
    if (!shape.is_tuple()) return composer(stride.basis()).leaf(shape.value(), stride.value());
    std::vector<IntTuple> shapes;
    std::vector<IntTuple> strides;
    shapes.reserve(shape.elems().size());
    strides.reserve(shape.elems().size());
    for (int i = 0; i < shape.rank(); ++i) {
      const Layout mode = compose(shape[i], stride[i]);
      shapes.push_back(mode.shape());
      strides.push_back(mode.stride());
    }
    return {IntTuple::tuple(std::move(shapes)), IntTuple::tuple(std::move(strides))};
  }

  Composer& composer(const BasisPath& path) {
    for (Entry& entry : composers_) {
      if (entry.path == path) return entry.composer;
    }
    if (path.depth == 0) return composers_.emplace_back(Entry{path, {lhs_, rhs_}}).composer;
    Layout mode = lhs_;
    for (int level = 0; level < path.depth; ++level) {
      mode = mode.mode(path.at[static_cast<std::size_t>(level)]);
    }
    modes_.push_back(std::make_unique<const Layout>(std::move(mode)));
    return composers_.emplace_back(Entry{path, {*modes_.back(), rhs_}}).composer;
  }

  const Layout& lhs_;
  const Layout& rhs_;
  std::vector<std::unique_ptr<const Layout>> modes_;  // stable: composers refer to them
  std::vector<Entry> composers_;
};

}  // namespace

Layout composition(const Layout& lhs, const Layout& rhs) { return Walk(lhs, rhs).run(); }

Layout composition(const Layout& lhs, const Tiler& rhs) {
  switch (rhs.kind()) {
    case Tiler::Kind::underscore:
      return lhs;
    case Tiler::Kind::layout:
      return composition(lhs, rhs.layout());
    case Tiler::Kind::by_mode:
      break;
  }
  if (static_cast<int>(rhs.modes().size()) > lhs.rank()) {
    fail("composition: the tiler " + to_string(rhs) + " has more modes than " + to_string(lhs));
  }
  std::vector<Layout> modes;
  for (std::size_t i = 0; i < rhs.modes().size(); ++i) {
    modes.push_back(composition(lhs.mode(static_cast<int>(i)), rhs.modes()[i]));
  }
  return make_layout(modes);
}

}  // namespace tilewright
