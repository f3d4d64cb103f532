// SPDX-License-Identifier: Apache-2.0
// Coordinates to indices and back, compact strides, and basis strides.
#include "layout/fail.h"
#include "tilewright/int_tuple.h"

#include <algorithm>

namespace tilewright {
namespace {

using Elems = std::vector<IntTuple>;

[[noreturn]] void fail_coordinate(const Coord& coord, const Shape& shape) {
  fail("crd2idx: the coordinate " + to_string(coord) + " does not fit the shape " +
       to_string(shape) + "; give one number, or one entry a mode");
}

// The integer of a tuple of which all other places are 0: sums of basis elements grow so.
IntTuple place(const Int& value, const BasisPath& path, int level) {
  if (level == path.depth) return value;
  Elems elems(static_cast<std::size_t>(path.at[static_cast<std::size_t>(level)]) + 1, IntTuple(0));
  elems.back() = place(value, path, level + 1);
  return IntTuple::tuple(std::move(elems));
}

IntTuple add(const IntTuple& a, const IntTuple& b) {
  if (a.is_int() && a.value().is_static(0)) return b;
  if (b.is_int() && b.value().is_static(0)) return a;
  if (!a.is_tuple() && !b.is_tuple()) return a.value() + b.value();
  if (a.is_tuple() != b.is_tuple()) {
    fail("a sum of strides adds the integer " + to_string(a.is_tuple() ? b : a) +
         " to the coordinate " + to_string(a.is_tuple() ? a : b) +
         "; use only integer or only basis strides");
  }
  Elems result;
  for (int i = 0; i < std::max(a.rank(), b.rank()); ++i) {
    result.push_back(i >= a.rank() ? b[i] : i >= b.rank() ? a[i] : add(a[i], b[i]));
  }
  return IntTuple::tuple(std::move(result));
}

// Calls visit(coordinate, stride leaf) for each leaf of the shape.
template <class Visit>
void walk(const Coord& coord, const Shape& shape, const Stride& stride, Visit& visit) {
  if (coord.is_underscore()) return;
  if (!shape.is_tuple()) {
    if (coord.is_tuple()) fail_coordinate(coord, shape);
    visit(coord.value(), stride);
    return;
  }
  const int modes = shape.rank();
  if (coord.is_tuple()) {
    if (coord.rank() != modes) fail_coordinate(coord, shape);
    for (int i = 0; i < modes; ++i) {
      walk(coord[i], shape[i], stride[i], visit);
    }
    return;
  }
  Int rest = coord.value();
  for (int i = 0; i < modes; ++i) {
    if (i + 1 == modes) {
      walk(IntTuple(rest), shape[i], stride[i], visit);
      break;
    }
    const Int extent = product(shape[i]);
    walk(IntTuple(rest % extent), shape[i], stride[i], visit);
    rest = rest / extent;
  }
}

void check_congruent(const Shape& shape, const Stride& stride) {
  if (!congruent(shape, stride)) {
    fail("the shape " + to_string(shape) + " and the stride " + to_string(stride) +
         " have different profiles; give one stride a leaf of the shape");
  }
}

}  // namespace

Int crd2idx(const Coord& coord, const Shape& shape, const Stride& stride) {
  check_congruent(shape, stride);
  Int index = 0;
  auto visit = [&index](const Int& c, const IntTuple& d) {
    if (d.is_basis()) {
      fail("crd2idx: the stride " + to_string(d) +
           " is a basis element, so the result is a coordinate; use evaluate");
    }
    index += c * d.value();
  };
  walk(coord, shape, stride, visit);
  return index;
}

IntTuple evaluate(const Coord& coord, const Shape& shape, const Stride& stride) {
  check_congruent(shape, stride);
  IntTuple result(0);
  auto visit = [&result](const Int& c, const IntTuple& d) {
    result = add(result, place(c * d.value(), d.basis(), 0));
  };
  walk(coord, shape, stride, visit);
  return result;
}

Int crd2idx(const Coord& coord, const Shape& shape) {
  return crd2idx(coord, shape, compact_col_major(shape));
}

IntTuple idx2crd(const IntTuple& index, const Shape& shape, const Stride& stride) {
  if (index.is_tuple() && (!shape.is_tuple() || index.rank() != shape.rank())) {
    fail("idx2crd: the index " + to_string(index) + " does not fit the shape " + to_string(shape));
  }
  if (!shape.is_tuple()) {
    if (shape.value().is_static(1)) return 0;
    return index.value() / stride.value() % shape.value();
  }
  const IntTuple strides = stride.is_tuple() ? stride : compact_col_major(shape, stride.value());
  check_congruent(shape, strides);
  Elems result;
  for (int i = 0; i < shape.rank(); ++i) {
    result.push_back(idx2crd(index.is_tuple() ? index[i] : index, shape[i], strides[i]));
  }
  return IntTuple::tuple(std::move(result));
}

IntTuple idx2crd(const IntTuple& index, const Shape& shape) {
  if (!shape.is_tuple() && !index.is_tuple()) return index;
  if (!shape.is_tuple() || (index.is_tuple() && index.rank() != shape.rank())) {
    fail("idx2crd: the index " + to_string(index) + " does not fit the shape " + to_string(shape));
  }
  Elems result;
  if (index.is_tuple()) {
    for (int i = 0; i < shape.rank(); ++i) {
      result.push_back(idx2crd(index[i], shape[i]));
    }
    return IntTuple::tuple(std::move(result));
  }
  Int rest = index.value();
  for (int i = 0; i + 1 < shape.rank(); ++i) {
    const Int extent = product(shape[i]);
    result.push_back(idx2crd(IntTuple(rest % extent), shape[i]));
    rest = rest / extent;
  }
  // The last mode takes what is left, in the shape or beyond it.
  if (shape.rank() > 0) result.push_back(idx2crd(IntTuple(rest), shape[shape.rank() - 1]));
  return IntTuple::tuple(std::move(result));
}

IntTuple crd2crd(const Coord& coord, const Shape& source, const Shape& target) {
  if (coord.is_tuple() && source.is_tuple() && target.is_tuple()) {
    if (coord.rank() != source.rank() || coord.rank() != target.rank()) {
      fail("crd2crd: " + to_string(coord) + ", " + to_string(source) + " and " + to_string(target) +
           " have different ranks");
    }
    Elems result;
    for (int i = 0; i < coord.rank(); ++i) {
      result.push_back(crd2crd(coord[i], source[i], target[i]));
    }
    return IntTuple::tuple(std::move(result));
  }
  return idx2crd(crd2idx(coord, source), target);
}

namespace {

enum class Major : std::uint8_t { col, row };

IntTuple compact(Major major, const Shape& shape, Int& current) {
  if (!shape.is_tuple()) {
    if (shape.value().is_static(1)) return 0;
    IntTuple stride(current);
    current *= shape.value();
    return stride;
  }
  const int modes = shape.rank();
  Elems result(static_cast<std::size_t>(modes));
  for (int i = 0; i < modes; ++i) {
    const int mode = major == Major::col ? i : modes - 1 - i;
    result[static_cast<std::size_t>(mode)] = compact(major, shape[mode], current);
  }
  return IntTuple::tuple(std::move(result));
}

IntTuple ordered(const Shape& shape, const IntTuple& order, const IntTuple& all_shapes,
                 const IntTuple& all_orders) {
  if (order.is_tuple()) {
    Elems result;
    for (int i = 0; i < order.rank(); ++i) {
      result.push_back(ordered(shape[i], order[i], all_shapes, all_orders));
    }
    return IntTuple::tuple(std::move(result));
  }
  Int first = 1;
  for (int i = 0; i < all_orders.rank(); ++i) {
    if (all_orders[i].value().value() < order.value().value()) first *= all_shapes[i].value();
  }
  return compact_col_major(shape, first);
}

// `shape` cut to the depth of `order`: its modes below a leaf of `order` multiplied.
IntTuple product_like(const Shape& shape, const IntTuple& order) {
  if (!order.is_tuple()) return product(shape);
  Elems result;
  for (int i = 0; i < order.rank(); ++i) {
    result.push_back(product_like(shape[i], order[i]));
  }
  return IntTuple::tuple(std::move(result));
}

IntTuple basis_like(const Shape& shape, BasisPath path) {
  if (!shape.is_tuple()) return path.depth == 0 ? IntTuple(1) : IntTuple(1, path);
  if (path.depth == BasisPath::kMaxDepth || shape.rank() > 256) {
    fail("make_identity_layout: " + to_string(shape) + " is nested deeper than " +
         std::to_string(BasisPath::kMaxDepth) + " or wider than 256");
  }
  Elems result;
  for (int i = 0; i < shape.rank(); ++i) {
    BasisPath inner = path;
    inner.at[inner.depth++] = static_cast<std::uint8_t>(i);
    result.push_back(basis_like(shape[i], inner));
  }
  return IntTuple::tuple(std::move(result));
}

}  // namespace

IntTuple compact_col_major(const Shape& shape, const Int& first) {
  Int current = first;
  return compact(Major::col, shape, current);
}

IntTuple compact_row_major(const Shape& shape, const Int& first) {
  Int current = first;
  return compact(Major::row, shape, current);
}

IntTuple compact_order(const Shape& shape, const IntTuple& order) {
  if (!weakly_congruent(order, shape) || !order.is_static()) {
    fail("make_ordered_layout: the order " + to_string(order) + " does not fit the shape " +
         to_string(shape) + "; give one static number a mode");
  }
  return ordered(shape, order, flatten(product_like(shape, order)), flatten(order));
}

IntTuple make_basis_like(const Shape& shape) { return basis_like(shape, {}); }

}  // namespace tilewright
