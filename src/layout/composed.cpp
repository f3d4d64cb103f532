// SPDX-License-Identifier: Apache-2.0
// The algebra of layouts behind a swizzle: mostly that of the layout.
#include "layout/fail.h"
#include "tilewright/swizzle.h"

#include <algorithm>
#include <numeric>

namespace tilewright {

ComposedLayout logical_divide(const ComposedLayout& layout, const Tiler& tiler) {
  return layout.with(logical_divide(layout.layout, tiler));
}

ComposedLayout zipped_divide(const ComposedLayout& layout, const Tiler& tiler) {
  return layout.with(zipped_divide(layout.layout, tiler));
}

ComposedLayout tiled_divide(const ComposedLayout& layout, const Tiler& tiler) {
  return layout.with(tiled_divide(layout.layout, tiler));
}

ComposedLayout flat_divide(const ComposedLayout& layout, const Tiler& tiler) {
  return layout.with(flat_divide(layout.layout, tiler));
}

ComposedLayout logical_product(const ComposedLayout& block, const Tiler& tiler) {
  return block.with(logical_product(block.layout, tiler));
}

ComposedLayout zipped_product(const ComposedLayout& block, const Tiler& tiler) {
  return block.with(zipped_product(block.layout, tiler));
}

ComposedLayout tiled_product(const ComposedLayout& block, const Tiler& tiler) {
  return block.with(tiled_product(block.layout, tiler));
}

ComposedLayout flat_product(const ComposedLayout& block, const Tiler& tiler) {
  return block.with(flat_product(block.layout, tiler));
}

ComposedLayout blocked_product(const ComposedLayout& block, const Layout& tiler) {
  return block.with(blocked_product(block.layout, tiler));
}

ComposedLayout raked_product(const ComposedLayout& block, const Layout& tiler) {
  return block.with(raked_product(block.layout, tiler));
}

ComposedLayout group(const ComposedLayout& layout, int begin, int end) {
  return layout.with(group(layout.layout, begin, end));
}

ComposedLayout take(const ComposedLayout& layout, int begin, int end) {
  return layout.with(take(layout.layout, begin, end));
}

ComposedLayout coalesce(const ComposedLayout& layout) {
  return layout.with(coalesce(layout.layout));
}

ComposedLayout coalesce(const ComposedLayout& layout, const IntTuple& profile) {
  return layout.with(coalesce(layout.layout, profile));
}

ComposedLayout filter(const ComposedLayout& layout) { return layout.with(filter(layout.layout)); }
ComposedLayout flatten(const ComposedLayout& layout) { return layout.with(flatten(layout.layout)); }

ComposedLayout tile_to_shape(const ComposedLayout& block, const Shape& target) {
  return block.with(tile_to_shape(block.layout, target));
}

ComposedLayout tile_to_shape(const ComposedLayout& block, const Shape& target,
                             const IntTuple& order) {
  return block.with(tile_to_shape(block.layout, target, order));
}

namespace {

ComposedLayout moved(const ComposedLayout& layout, OffsetLayout part) {
  return {layout.swizzle, layout.offset + part.offset, std::move(part.layout)};
}

ComposedLayout inverse_of(const char* operation, const ComposedLayout& layout,
                          Layout (*inverse)(const Layout&)) {
  if (!layout.offset.is_static(0)) {
    fail(std::string(operation) + ": " + to_string(layout) +
         " has an offset, so its inverse is not a swizzle after a layout; take the inverse first");
  }
  return composition(inverse(layout.layout), layout.swizzle);
}

}  // namespace

ComposedLayout slice(const Coord& coord, const ComposedLayout& layout) {
  return moved(layout, slice_and_offset(coord, layout.layout));
}

ComposedLayout domain_offset(const Coord& coord, const ComposedLayout& layout) {
  return moved(layout, domain_offset(coord, layout.layout));
}

ComposedLayout local_tile(const ComposedLayout& layout, const Tiler& tiler, const Coord& coord) {
  return moved(layout, local_tile(layout.layout, tiler, coord));
}

ComposedLayout local_partition(const ComposedLayout& layout, const Layout& threads,
                               const Int& index) {
  return moved(layout, local_partition(layout.layout, threads, index));
}

ComposedLayout right_inverse(const ComposedLayout& layout) {
  return inverse_of("right_inverse", layout, right_inverse);
}

ComposedLayout left_inverse(const ComposedLayout& layout) {
  return inverse_of("left_inverse", layout, left_inverse);
}

namespace {

// How many elements a swizzle moves as one block.
std::int64_t block_of(const Swizzle& swizzle) { return std::int64_t{1} << swizzle.base(); }

}  // namespace

Int max_common_vector(const ComposedLayout& a, const ComposedLayout& b) {
  Int vector = max_common_vector(a.layout, b.layout);
  if (a.swizzle == b.swizzle && a.offset == b.offset) return vector;
  for (const ComposedLayout* side : {&a, &b}) {
    if (side->is_plain()) continue;
    const std::int64_t offset = side->offset.is_static(0) ? 0 : side->offset.divisor();
    vector =
        min(vector,
            Int(side->swizzle.is_identity() ? offset : std::gcd(block_of(side->swizzle), offset)));
  }
  return vector;
}

Layout max_common_layout(const ComposedLayout& a, const Layout& b) {
  const Layout common = max_common_layout(a.layout, b);
  if (a.swizzle.is_identity() || size(common).max() <= block_of(a.swizzle)) return common;
  return composition(common, Layout(Shape(block_of(a.swizzle))));
}

Int max_alignment(const ComposedLayout& layout) {
  std::int64_t n = max_alignment(layout.layout).value();
  if (!layout.swizzle.is_identity()) n = std::gcd(n, block_of(layout.swizzle));
  return std::gcd(n, layout.offset.divisor());
}

}  // namespace tilewright
