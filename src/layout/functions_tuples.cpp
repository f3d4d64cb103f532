// SPDX-License-Identifier: Apache-2.0
// Functions of expressions over shapes, strides and coordinates.
#include "layout/functions.h"

namespace tilewright {
namespace {

using A = const Args&;
using V = LayoutValue;

// A shape, or that of a layout.
IntTuple shape_of(A a, std::size_t i) {
  return a.holds_layout(i) ? a.composed(i).shape() : a.tuple(i);
}

V crd2idx_of(A a) {
  if (a.holds_composed(1)) return IntTuple(a.composed(1)(a.tuple(0)));
  if (a.holds_layout(1)) return evaluate(a.layout(1), a.tuple(0));
  if (a.size() == 2) return IntTuple(crd2idx(a.tuple(0), a.tuple(1)));
  return evaluate(a.tuple(0), a.tuple(1), a.tuple(2));
}

V composed_layout_eval_of(A a) {
  const ComposedLayout layout = a.size() == 2 ? a.composed(0)
                                : a.size() == 3
                                    ? ComposedLayout(a.swizzle(0), 0, a.layout(1))
                                    : ComposedLayout(a.swizzle(0), a.integer(1), a.layout(2));
  return IntTuple(layout(a.tuple(a.size() - 1)));
}

V idx2crd_of(A a) {
  if (a.size() == 3) return idx2crd(a.tuple(0), a.tuple(1), a.tuple(2));
  return a.holds_layout(1) ? get_hier_coord(a.layout(1), a.tuple(0))
                           : idx2crd(a.tuple(0), a.tuple(1));
}

V compact_col_major_of(A a) {
  return compact_col_major(a.tuple(0), a.size() > 1 ? a.integer(1) : Int(1));
}

V compact_row_major_of(A a) {
  return compact_row_major(a.tuple(0), a.size() > 1 ? a.integer(1) : Int(1));
}

V ceil_div_of(A a) {
  return a.holds_layout(1) ? ceil_div(a.tuple(0), a.layout(1)) : ceil_div(a.tuple(0), a.tuple(1));
}

constexpr FunctionRow kTupleRows[] = {
    {"product", "tuple", 1, 1, [](A a) -> V { return IntTuple(product(a.tuple(0))); },
     "the product of all leaves"},
    {"sum", "tuple", 1, 1, [](A a) -> V { return IntTuple(sum(a.tuple(0))); },
     "the sum of all leaves"},
    {"product_each", "tuple", 1, 1, [](A a) -> V { return product_each(a.tuple(0)); },
     "the product of each mode"},
    {"inner_product", "tuple, tuple", 2, 2,
     [](A a) -> V { return IntTuple(inner_product(a.tuple(0), a.tuple(1))); },
     "the sum of the products of the leaves"},
    {"shape_div", "shape, divisor", 2, 2,
     [](A a) -> V { return shape_div(a.tuple(0), a.tuple(1)); },
     "the divisor used up mode by mode"},
    {"ceil_div", "shape, divisor", 2, 2, ceil_div_of, "division that rounds up"},
    {"round_up", "shape, multiple", 2, 2, [](A a) -> V { return round_up(a.tuple(0), a.tuple(1)); },
     "the next multiple"},
    {"elem_scale", "tuple, tuple", 2, 2,
     [](A a) -> V { return elem_scale(a.tuple(0), a.tuple(1)); },
     "each leaf times the product of its partner"},
    {"congruent", "tuple, tuple", 2, 2,
     [](A a) -> V { return congruent(shape_of(a, 0), shape_of(a, 1)); }, "the same nesting"},
    {"weakly_congruent", "tuple, tuple", 2, 2,
     [](A a) -> V { return weakly_congruent(shape_of(a, 0), shape_of(a, 1)); },
     "the nesting of the first, or finer"},
    {"compatible", "shape, shape", 2, 2,
     [](A a) -> V { return compatible(shape_of(a, 0), shape_of(a, 1)); },
     "coordinates of the first are coordinates of the second"},
    {"evenly_divides", "shape, tile", 2, 2,
     [](A a) -> V { return evenly_divides(a.tuple(0), a.tuple(1)); }, "no rest remains"},
    {"crd2idx", "coordinate, layout (or shape, stride)", 2, 3, crd2idx_of,
     "the index of a coordinate"},
    {"evaluate", "coordinate, layout", 2, 2, crd2idx_of, "the value at a coordinate"},
    {"composed_layout_eval", "layout (or swizzle (, offset), layout), coordinate", 2, 4,
     composed_layout_eval_of, "the index of a coordinate behind a swizzle"},
    {"idx2crd", "index, shape (, stride)", 2, 3, idx2crd_of, "the coordinate of an index"},
    {"crd2crd", "coordinate, shape, shape", 3, 3,
     [](A a) -> V { return crd2crd(a.tuple(0), a.tuple(1), a.tuple(2)); },
     "a coordinate of one shape as one of another"},
    {"compact_col_major", "shape (, first)", 1, 2, compact_col_major_of,
     "strides, the first mode contiguous"},
    {"compact_row_major", "shape (, first)", 1, 2, compact_row_major_of,
     "strides, the last mode contiguous"},
    {"compact_order", "shape, order", 2, 2,
     [](A a) -> V { return compact_order(a.tuple(0), a.tuple(1)); },
     "strides, contiguous by rising order"},
    {"make_basis_like", "shape", 1, 1, [](A a) -> V { return make_basis_like(a.tuple(0)); },
     "the basis element of each leaf"},
    {"repeat_like", "profile, leaf", 2, 2,
     [](A a) -> V { return repeat_like(a.tuple(0), a.tuple(1)); }, "the leaf at every leaf"},
    {"unwrap", "tuple", 1, 1, [](A a) -> V { return unwrap(a.tuple(0)); }, "((4)) is 4"},
    {"make_swizzle", "source bits, target bits", 2, 2,
     [](A a) -> V { return make_swizzle(a.integer(0).value(), a.integer(1).value()); },
     "the swizzle that reads and changes these bits"},
    {"swizzle_apply", "swizzle, index", 2, 2,
     [](A a) -> V { return IntTuple(a.swizzle(0)(a.integer(1))); }, "the swizzled index"},
};

}  // namespace

std::span<const FunctionRow> tuple_functions() { return kTupleRows; }

}  // namespace tilewright
