// SPDX-License-Identifier: Apache-2.0
// Layouts: construction, measures, and their modes handled as a list.
#include "tilewright/layout.h"

#include "layout/fail.h"
#include "layout/modes.h"

#include <algorithm>

namespace tilewright {
namespace {

void check_extents(const Shape& shape) {
  if (shape.is_tuple()) {
    for (const IntTuple& e : shape.elems()) {
      check_extents(e);
    }
    return;
  }
  if (!shape.is_int()) {
    fail("layout: the shape holds " + to_string(shape) + "; extents are integers");
  }
  if (shape.value().max() < 0) {
    fail("layout: the extent " + to_string(shape) + " is negative; extents are at least 0");
  }
}

Layout with(const Layout& layout, IntTuple (*f)(const IntTuple&)) {
  return {f(layout.shape()), f(layout.stride())};
}

}  // namespace

Layout::Layout(Shape shape) : shape_(std::move(shape)), stride_(compact_col_major(shape_)) {
  check_extents(shape_);
}

Layout::Layout(Shape shape, Stride stride) : shape_(std::move(shape)), stride_(std::move(stride)) {
  if (!congruent(shape_, stride_)) {
    fail("layout: the shape " + to_string(shape_) + " and the stride " + to_string(stride_) +
         " have different profiles; give one stride a leaf of the shape");
  }
  check_extents(shape_);
}

Layout Layout::mode(int i) const { return {shape_[i], stride_[i]}; }

Tiler::Tiler(const Shape& shape) {
  if (shape.is_underscore()) {
    kind_ = Kind::underscore;
  } else if (!shape.is_tuple()) {
    layout_ = Layout(shape);
  } else {
    kind_ = Kind::by_mode;
    modes_.assign(shape.elems().begin(), shape.elems().end());
  }
}

Tiler Tiler::by_mode(std::vector<Tiler> modes) {
  Tiler result(_);
  result.kind_ = Kind::by_mode;
  result.modes_ = std::move(modes);
  return result;
}

Layout make_layout(std::span<const Layout> modes) {
  std::vector<IntTuple> shapes;
  std::vector<IntTuple> strides;
  shapes.reserve(modes.size());
  strides.reserve(modes.size());
  for (const Layout& mode : modes) {
    shapes.push_back(mode.shape());
    strides.push_back(mode.stride());
  }
  return {IntTuple::tuple(std::move(shapes)), IntTuple::tuple(std::move(strides))};
}

Layout make_layout(std::initializer_list<Layout> modes) {
  return make_layout(std::span<const Layout>(modes.begin(), modes.size()));
}

Layout make_layout(const Shape& shape) { return Layout(shape); }
Layout make_row_major(const Shape& shape) { return {shape, compact_row_major(shape)}; }

Layout make_ordered_layout(const Shape& shape, const IntTuple& order) {
  return {shape, compact_order(shape, order)};
}

Layout make_layout_like(const Layout& layout) {
  refuse_basis("make_layout_like", layout);
  const Modes modes = modes_of(filter_zeros(layout));
  std::vector<std::size_t> order(modes.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    order[i] = i;
    modes[i].stride.value();  // an order needs static strides
  }
  std::stable_sort(order.begin(), order.end(), [&modes](std::size_t a, std::size_t b) {
    return abs(modes[a].stride).value() < abs(modes[b].stride).value();
  });
  std::vector<IntTuple> strides(modes.size());
  Int next = 1;
  for (std::size_t i : order) {
    strides[i] = modes[i].extent.is_static(1) ? IntTuple(0) : IntTuple(next);
    next *= modes[i].extent;
  }
  return {layout.shape(), unflatten(IntTuple::tuple(std::move(strides)), layout.shape())};
}

Layout make_identity_layout(const Shape& shape) { return {shape, make_basis_like(shape)}; }

int rank(const Layout& layout) { return layout.rank(); }
int depth(const Layout& layout) { return depth(layout.shape()); }
Int size(const Layout& layout) { return product(layout.shape()); }

Int cosize(const Layout& layout) {
  refuse_basis("cosize", layout);
  Int last = 0;
  for (const Mode& mode : modes_of(layout)) {
    last += (mode.extent - 1) * abs(mode.stride);
  }
  return last + 1;
}

namespace {

IntTuple plus_one(const IntTuple& t) {
  if (!t.is_tuple()) return t.value() + 1;
  std::vector<IntTuple> result;
  for (const IntTuple& e : t.elems()) {
    result.push_back(plus_one(e));
  }
  return IntTuple::tuple(std::move(result));
}

IntTuple absolute(const IntTuple& t) {
  if (!t.is_tuple()) return {abs(t.value()), t.basis()};
  std::vector<IntTuple> result;
  for (const IntTuple& e : t.elems()) {
    result.push_back(absolute(e));
  }
  return IntTuple::tuple(std::move(result));
}

}  // namespace

IntTuple coshape(const Layout& layout) {
  return plus_one(evaluate(IntTuple(size(layout) - 1), layout.shape(), absolute(layout.stride())));
}

IntTuple evaluate(const Layout& layout, const Coord& coord) {
  return evaluate(coord, layout.shape(), layout.stride());
}

Int crd2idx(const Coord& coord, const Layout& layout) { return layout(coord); }

IntTuple get_hier_coord(const Layout& layout, const IntTuple& index) {
  return idx2crd(index, layout.shape(), layout.stride());
}

Layout flatten(const Layout& layout) { return with(layout, flatten); }

Layout unflatten(const Layout& flat, const IntTuple& profile) {
  return {unflatten(flat.shape(), profile), unflatten(flat.stride(), profile)};
}

Layout group(const Layout& layout, int begin, int end) {
  return {group(layout.shape(), begin, end), group(layout.stride(), begin, end)};
}

Layout take(const Layout& layout, int begin, int end) {
  return {take(layout.shape(), begin, end), take(layout.stride(), begin, end)};
}

Layout select(const Layout& layout, std::span<const int> modes) {
  return {select(layout.shape(), modes), select(layout.stride(), modes)};
}

Layout append(const Layout& layout, const Layout& x) {
  return {append(layout.shape(), x.shape()), append(layout.stride(), x.stride())};
}

Layout prepend(const Layout& layout, const Layout& x) {
  return {prepend(layout.shape(), x.shape()), prepend(layout.stride(), x.stride())};
}

Layout append_to_rank(const Layout& layout, int rank, const Layout& x) {
  return {append_to_rank(layout.shape(), rank, x.shape()),
          append_to_rank(layout.stride(), rank, x.stride())};
}

Layout prepend_to_rank(const Layout& layout, int rank, const Layout& x) {
  return {prepend_to_rank(layout.shape(), rank, x.shape()),
          prepend_to_rank(layout.stride(), rank, x.stride())};
}

Layout replace(const Layout& layout, int mode, const Layout& x) {
  return {replace(layout.shape(), mode, x.shape()), replace(layout.stride(), mode, x.stride())};
}

Layout zip(const Layout& layout) { return with(layout, zip); }

Layout zip(const Layout& a, const Layout& b) {
  return {zip(IntTuple::tuple({a.shape(), b.shape()})),
          zip(IntTuple::tuple({a.stride(), b.stride()}))};
}

Layout slice(const Coord& coord, const Layout& layout) {
  return {slice(coord, layout.shape()), slice(coord, layout.stride())};
}

Layout dice(const Coord& coord, const Layout& layout) {
  return {dice(coord, layout.shape()), dice(coord, layout.stride())};
}

OffsetLayout slice_and_offset(const Coord& coord, const Layout& layout) {
  return {slice(coord, layout), layout(coord)};
}

OffsetLayout domain_offset(const Coord& coord, const Layout& layout) {
  return {layout, layout(coord)};
}

}  // namespace tilewright
