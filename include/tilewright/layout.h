// SPDX-License-Identifier: Apache-2.0
// Layouts (a shape and a stride of the same nesting), tilers, and CuTe's algebra of them.
#pragma once

#include "tilewright/int_tuple.h"

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

namespace tilewright {

/// A function from coordinates (or linear indices) to indices. Strides may be negative, 0, dynamic
/// or basis elements (then the function's values are coordinates).
class Layout {
 public:
  Layout() : shape_(1), stride_(0) {}
  /// Compact column-major.
  explicit Layout(Shape shape);
  /// Throws Error(user) unless shape and stride have the same nesting and the extents are not
  /// negative.
  Layout(Shape shape, Stride stride);

  const Shape& shape() const { return shape_; }
  const Stride& stride() const { return stride_; }
  int rank() const { return shape_.rank(); }
  /// The i-th mode as a layout.
  Layout mode(int i) const;
  bool is_static() const { return shape_.is_static() && stride_.is_static(); }

  /// The index of a coordinate, given whole, linear or as one argument a mode.
  Int operator()(const Coord& coord) const { return crd2idx(coord, shape_, stride_); }
  Int operator()(const Coord& c0, const Coord& c1) const { return (*this)(Coord{c0, c1}); }
  Int operator()(const Coord& c0, const Coord& c1, const Coord& c2) const {
    return (*this)(Coord{c0, c1, c2});
  }

  /// The same shape and stride, leaf by leaf.
  friend bool operator==(const Layout&, const Layout&) = default;

 private:
  Shape shape_;
  Stride stride_;
};

/// What a layout is cut by: a layout, `_` (this mode stays whole), or one tiler a mode. An integer
/// n is n:1, a nested shape one tiler a leaf.
class Tiler {
 public:
  enum class Kind : std::uint8_t { layout, underscore, by_mode };
  // NOLINTBEGIN(google-explicit-constructor): `zipped_divide(a, {64, _, Layout(8)})`
  Tiler(Layout layout) : layout_(std::move(layout)) {}
  template <std::integral T>
  Tiler(T extent) : layout_(Shape(extent)) {}
  Tiler(const Int& extent) : layout_(Shape(extent)) {}
  Tiler(Underscore) : kind_(Kind::underscore) {}
  Tiler(const Shape& shape);
  Tiler(std::initializer_list<Tiler> modes) : kind_(Kind::by_mode), modes_(modes) {}
  // NOLINTEND(google-explicit-constructor)
  static Tiler by_mode(std::vector<Tiler> modes);

  Kind kind() const { return kind_; }
  const Layout& layout() const { return layout_; }  ///< Pre: kind() == Kind::layout
  const std::vector<Tiler>& modes() const { return modes_; }
  friend bool operator==(const Tiler& a, const Tiler& b) {
    return a.kind_ == b.kind_ && a.layout_ == b.layout_ && a.modes_ == b.modes_;
  }

 private:
  Kind kind_ = Kind::layout;
  Layout layout_;
  std::vector<Tiler> modes_;
};

/// One layout of several: its i-th mode is `modes[i]`.
Layout make_layout(std::span<const Layout> modes);
Layout make_layout(std::initializer_list<Layout> modes);
Layout make_layout(const Shape& shape);  ///< compact column-major
Layout make_row_major(const Shape& shape);
/// Compact, the mode of lowest `order` contiguous.
Layout make_ordered_layout(const Shape& shape, const IntTuple& order);
/// Compact in the order of the strides of `layout`.
Layout make_layout_like(const Layout& layout);
/// Maps each coordinate to itself.
Layout make_identity_layout(const Shape& shape);

int rank(const Layout& layout);
int depth(const Layout& layout);
Int size(const Layout& layout);
/// One more than the largest index, for |strides|. Throws Error(user) for basis strides.
Int cosize(const Layout& layout);
/// As cosize, for basis strides too: one number a mode of the result.
IntTuple coshape(const Layout& layout);
/// The value at a coordinate: an integer, or a coordinate for basis strides.
IntTuple evaluate(const Layout& layout, const Coord& coord);
Int crd2idx(const Coord& coord, const Layout& layout);
/// The coordinate in `layout.shape()` of an index. Pre: the layout is compact.
IntTuple get_hier_coord(const Layout& layout, const IntTuple& index);

Layout flatten(const Layout& layout);
Layout unflatten(const Layout& flat, const IntTuple& profile);
Layout group(const Layout& layout, int begin, int end);
Layout take(const Layout& layout, int begin, int end);
Layout select(const Layout& layout, std::span<const int> modes);
Layout append(const Layout& layout, const Layout& x);
Layout prepend(const Layout& layout, const Layout& x);
Layout append_to_rank(const Layout& layout, int rank, const Layout& x = {});
Layout prepend_to_rank(const Layout& layout, int rank, const Layout& x = {});
Layout replace(const Layout& layout, int mode, const Layout& x);
Layout zip(const Layout& layout);
Layout zip(const Layout& a, const Layout& b);
Layout slice(const Coord& coord, const Layout& layout);
Layout dice(const Coord& coord, const Layout& layout);

/// A layout and the index that it starts at.
struct OffsetLayout {
  Layout layout;
  Int offset;
  friend bool operator==(const OffsetLayout&, const OffsetLayout&) = default;
};
OffsetLayout slice_and_offset(const Coord& coord, const Layout& layout);
OffsetLayout domain_offset(const Coord& coord, const Layout& layout);

/// Post: the same function on [0, size), depth at most 1, no mode of size 1, none mergeable.
Layout coalesce(const Layout& layout);
/// Coalesces at each leaf of `profile`.
Layout coalesce(const Layout& layout, const IntTuple& profile);
/// Modes of stride 0 get extent 1.
Layout filter_zeros(const Layout& layout);
Layout filter_zeros(const Layout& layout, const IntTuple& profile);
/// Without modes of stride 0 or extent 1.
Layout filter(const Layout& layout);
Layout filter(const Layout& layout, const IntTuple& profile);

/// Post: compatible(rhs, result) and result(c) == lhs(rhs(c)) for all c. Throws Error(user) where
/// no layout of rhs's profile has that property, or none can be shown to have it.
Layout composition(const Layout& lhs, const Layout& rhs);
/// Mode by mode; modes of `lhs` beyond the tiler are dropped.
Layout composition(const Layout& lhs, const Tiler& rhs);

/// Post: ordered, and disjoint from `layout` but for 0; with it, it covers [0, cotarget) but for
/// what no layout reaches: the ends of gaps that are no multiple of what lies below them.
/// Throws Error(user) if `layout` overlaps itself.
Layout complement(const Layout& layout, const Shape& cotarget);
Layout complement(const Layout& layout);
/// Post: layout(result(i)) == i for i < size(result).
Layout right_inverse(const Layout& layout);
/// Post: layout(result(layout(i))) == layout(i), and result(layout(i)) == i if it is injective.
Layout left_inverse(const Layout& layout);
/// Post: layout(result(i)) == 0, size(result) == size(layout) / size(filter(layout)).
Layout nullspace(const Layout& layout);

/// ((tile),(rest)) in place of each mode that is cut.
Layout logical_divide(const Layout& layout, const Tiler& tiler);
/// ((tiles...),(rests...)); a mode under `_` is all rest.
Layout zipped_divide(const Layout& layout, const Tiler& tiler);
Layout tiled_divide(const Layout& layout, const Tiler& tiler);  ///< ((tiles...),rest,rest...)
Layout flat_divide(const Layout& layout, const Tiler& tiler);   ///< (tile,tile...,rest,rest...)
Layout logical_product(const Layout& block, const Tiler& tiler);
Layout zipped_product(const Layout& block, const Tiler& tiler);
Layout tiled_product(const Layout& block, const Tiler& tiler);
Layout flat_product(const Layout& block, const Tiler& tiler);
/// Mode i is (block mode i, tiler mode i): the blocks stand side by side.
Layout blocked_product(const Layout& block, const Layout& tiler);
/// Mode i is (tiler mode i, block mode i): the blocks interleave.
Layout raked_product(const Layout& block, const Layout& tiler);
/// `block` repeated to `target`, in the mode order given (default: first mode first).
Layout tile_to_shape(const Layout& block, const Shape& target);
Layout tile_to_shape(const Layout& block, const Shape& target, const IntTuple& order);
/// ((a,b),(c,d)) from ((a,c),(b,d)) along the profile of the tiler: what zipped_divide does last.
Layout tile_unzip(const Layout& layout, const Tiler& tiler);
/// The shape of the rest of a division of `target`.
IntTuple ceil_div(const Shape& target, const Layout& tiler);

/// The same memory seen as elements n times as wide (upcast) or as narrow (downcast).
Layout upcast(const Layout& layout, std::int64_t n);
Layout downcast(const Layout& layout, std::int64_t n);
Layout recast_layout(int new_bits, int old_bits, const Layout& layout);

/// Post: a(result(i)) == b(result(i)) == i, as many i as possible.
Layout max_common_layout(const Layout& a, const Layout& b);
Int max_common_vector(const Layout& a, const Layout& b);
/// The largest n that upcast(layout, n) takes.
Int max_alignment(const Layout& layout);
/// `extent` spread over the modes of `shape`, so that division by the result is exact.
Layout domain_distribute(const Shape& shape, const Int& extent);

/// A thread-value layout and the tile it covers.
struct LayoutTV {
  IntTuple tiler;  ///< the shape of the tile
  Layout layout;   ///< (thread, value) -> linear coordinate in the tile
};
/// Threads laid out as `threads`, each with the values `values`.
LayoutTV make_layout_tv(const Layout& threads, const Layout& values);

/// The tile at `coord` of the grid of tiles, with its offset; `_` in the coordinate keeps a mode.
OffsetLayout local_tile(const Layout& layout, const Tiler& tiler, const Coord& coord);
/// The same with the modes of tiler and coordinate where `step` is `_` left out: one tiler and one
/// coordinate of a block for operands that have some of their modes each.
OffsetLayout local_tile(const Layout& layout, const Tiler& tiler, const Coord& coord,
                        const IntTuple& step);
/// What thread `index` of the thread layout owns of a tile.
OffsetLayout local_partition(const Layout& layout, const Layout& threads, const Int& index);

/// CuTe's notation: "((2,4),8):((1,2),8)", "<4:1,_>".
std::string to_string(const Layout& layout);
std::string to_string(const Tiler& tiler);

}  // namespace tilewright
