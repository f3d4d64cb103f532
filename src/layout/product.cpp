// SPDX-License-Identifier: Apache-2.0
// Products of a block with a tiler.
#include "layout/fail.h"
#include "layout/tile_modes.h"

#include <algorithm>

namespace tilewright {
namespace {

// Where `count` copies of the block may begin. Gaps that a block of padded rows has take none.
Layout room_beside(const Layout& block, const Int& count) {
  Int cotarget = size(block) * count;
  Layout room = complement(block, IntTuple(cotarget));
  while (size(room).min() > 0 && less(size(room), count).value_or(false)) {
    cotarget *= 2;
    room = complement(block, IntTuple(cotarget));
  }
  return room;
}

}  // namespace

Layout logical_product(const Layout& block, const Tiler& tiler) {
  switch (tiler.kind()) {
    case Tiler::Kind::underscore:
      return block;
    case Tiler::Kind::layout: {
      const Layout& t = tiler.layout();
      return make_layout({block, composition(room_beside(block, cosize(t)), t)});
    }
    case Tiler::Kind::by_mode:
      break;
  }
  return transform_modes("logical_product", block, tiler, logical_product);
}

Layout zipped_product(const Layout& block, const Tiler& tiler) {
  return unzip("zipped_product", logical_product(block, tiler), tiler, Whole::block);
}

Layout tiled_product(const Layout& block, const Tiler& tiler) {
  return unpack_rest(zipped_product(block, tiler));
}

Layout flat_product(const Layout& block, const Tiler& tiler) {
  return unpack_both(zipped_product(block, tiler));
}

namespace {

Layout padded_product(const Layout& block, const Layout& tiler) {
  const int modes = std::max(block.rank(), tiler.rank());
  const bool wrap = modes == 1 && block.shape().is_tuple() && !tiler.shape().is_tuple();
  return logical_product(append_to_rank(block, modes),
                         wrap ? make_layout({tiler}) : append_to_rank(tiler, modes));
}

}  // namespace

Layout blocked_product(const Layout& block, const Layout& tiler) {
  const Layout product = padded_product(block, tiler);
  return zip(product.mode(0), product.mode(1));
}

Layout raked_product(const Layout& block, const Layout& tiler) {
  const Layout product = padded_product(block, tiler);
  return zip(product.mode(1), product.mode(0));
}

Layout tile_to_shape(const Layout& block, const Shape& target) {
  std::vector<IntTuple> order;
  for (int i = 0; i < target.rank(); ++i) {
    order.emplace_back(i);
  }
  return tile_to_shape(block, target, IntTuple::tuple(std::move(order)));
}

Layout tile_to_shape(const Layout& block, const Shape& target, const IntTuple& order) {
  if (block.rank() > target.rank()) {
    fail("tile_to_shape: the block " + to_string(block) + " has more modes than the target " +
         to_string(target));
  }
  const Layout padded = append_to_rank(block, target.rank());
  const IntTuple block_shape = product_each(padded.shape());
  const IntTuple target_shape = product_each(target);
  for (int i = 0; i < target.rank(); ++i) {
    if (!is_multiple(target_shape[i].value(), block_shape[i].value())) {
      fail("tile_to_shape: the block's mode " + std::to_string(i) + " has " +
           to_string(block_shape[i]) + " elements, which " +
           (target_shape[i].is_static() && block_shape[i].is_static() ? "does not divide "
                                                                      : "is not known to divide ") +
           to_string(target_shape[i]) + " of the target " + to_string(target) +
           "; use a target that whole blocks fill");
    }
  }
  const IntTuple repeats = ceil_div(target_shape, block_shape);
  return blocked_product(padded, make_ordered_layout(repeats, order));
}

}  // namespace tilewright
