// SPDX-License-Identifier: Apache-2.0
// Thread-value layouts, and what a block or a thread owns of a layout.
#include "layout/fail.h"
#include "layout/modes.h"

namespace tilewright {
namespace {

// As many `_` as `t` has modes.
Coord underscores(const IntTuple& t) {
  return IntTuple::tuple(std::vector<IntTuple>(static_cast<std::size_t>(t.rank()), IntTuple(_)));
}

// `coord` with `_` for the modes of `t` that it does not name; a single number stands for all
// modes.
Coord padded(const char* operation, const Coord& coord, const IntTuple& t) {
  if (!coord.is_tuple()) return coord;
  if (coord.rank() > t.rank()) {
    fail(std::string(operation) + ": the coordinate " + to_string(coord) +
         " has more entries than there are modes in " + to_string(t));
  }
  return append_to_rank(coord, t.rank(), _);
}

// The entries of `coord` where `step` is not `_`; they may be `_` themselves.
Coord dice_top(const IntTuple& step, const Coord& coord) {
  std::vector<IntTuple> kept;
  for (int i = 0; i < step.rank(); ++i) {
    if (!step[i].is_underscore()) kept.push_back(coord[i]);
  }
  return IntTuple::tuple(std::move(kept));
}

// A mode as the tuple of its modes, so that a coordinate with one `_` a mode fits.
Layout as_tuple(const Layout& mode) { return mode.shape().is_tuple() ? mode : make_layout({mode}); }

}  // namespace

LayoutTV make_layout_tv(const Layout& threads, const Layout& values) {
  const Layout tile = raked_product(threads, values);
  const Layout inverse = right_inverse(tile);
  if (!(size(inverse) == size(tile))) {
    fail("make_layout_tv: threads " + to_string(threads) + " with values " + to_string(values) +
         " do not number the elements of a tile one by one; use compact layouts");
  }
  const Layout pairs(Shape{size(threads), size(values)});
  return {product_each(tile.shape()), composition(inverse, pairs)};
}

OffsetLayout local_tile(const Layout& layout, const Tiler& tiler, const Coord& coord) {
  const Layout zipped = zipped_divide(layout, tiler);
  const Layout tile = as_tuple(zipped.mode(0));
  const Layout rest = as_tuple(zipped.mode(1));
  const Coord at = padded("local_tile", coord, rest.shape());
  return slice_and_offset(Coord{underscores(tile.shape()), at}, make_layout({tile, rest}));
}

OffsetLayout local_tile(const Layout& layout, const Tiler& tiler, const Coord& coord,
                        const IntTuple& step) {
  if (tiler.kind() != Tiler::Kind::by_mode ||
      static_cast<int>(tiler.modes().size()) != step.rank()) {
    fail("local_tile: the step " + to_string(step) + " does not fit the tiler " + to_string(tiler) +
         "; give one entry a mode");
  }
  std::vector<Tiler> modes;
  for (int i = 0; i < step.rank(); ++i) {
    if (!step[i].is_underscore()) modes.push_back(tiler.modes()[static_cast<std::size_t>(i)]);
  }
  return local_tile(layout, Tiler::by_mode(std::move(modes)), dice_top(step, coord));
}

OffsetLayout local_partition(const Layout& layout, const Layout& threads, const Int& index) {
  refuse_basis("local_partition", threads);
  const IntTuple extents = product_each(threads.shape());
  const IntTuple at = get_hier_coord(threads, index);
  // Each thread mode as one number, whatever its nesting.
  std::vector<IntTuple> flat;
  for (int i = 0; i < threads.rank(); ++i) {
    flat.emplace_back(crd2idx(at[i], threads.shape()[i]));
  }
  const Layout zipped = zipped_divide(layout, extents);
  const Layout tile = as_tuple(zipped.mode(0));
  const Layout rest = as_tuple(zipped.mode(1));
  const Coord coord = padded("local_partition", IntTuple::tuple(std::move(flat)), tile.shape());
  return slice_and_offset(Coord{coord, underscores(rest.shape())}, make_layout({tile, rest}));
}

}  // namespace tilewright
