// SPDX-License-Identifier: Apache-2.0
// Functions of expressions that combine layouts: composition, inverses, divides and products.
#include "layout/functions.h"

namespace tilewright {
namespace {

using A = const Args&;
using V = LayoutValue;

V composition_of(A a) {
  if (a.size() == 3) {
    return plain(ComposedLayout(a.swizzle(0), a.integer(1), a.layout(2)));
  }
  if (a.holds_swizzle(0) && a.holds_swizzle(1)) return composition(a.swizzle(0), a.swizzle(1));
  if (a.holds_swizzle(0)) return plain(composition(a.swizzle(0), a.composed(1)));
  if (a.holds_swizzle(1)) return plain(composition(a.layout(0), a.swizzle(1)));
  return plain(composition(a.composed(0), a.tiler(1)));
}

// "Sw<..> o offset o layout" alone, or what composition takes.
V composition_swizzle_of(A a) { return a.size() == 1 ? plain(a.composed(0)) : composition_of(a); }

V complement_of(A a) {
  return a.size() > 1 ? complement(a.composed(0).layout,
                                   a.holds_layout(1) ? a.layout(1).shape() : a.tuple(1))
                      : complement(a.composed(0).layout);
}

V right_inverse_of(A a) {
  return a.holds_swizzle(0) ? V(a.swizzle(0)) : plain(right_inverse(a.composed(0)));
}

V left_inverse_of(A a) {
  return a.holds_swizzle(0) ? V(a.swizzle(0)) : plain(left_inverse(a.composed(0)));
}

V tile_to_shape_of(A a) {
  return plain(a.size() > 2 ? tile_to_shape(a.composed(0), a.tuple(1), a.tuple(2))
                            : tile_to_shape(a.composed(0), a.tuple(1)));
}

V local_tile_of(A a) {
  if (a.size() == 4) return local_tile(a.layout(0), a.tiler(1), a.tuple(2), a.tuple(3));
  if (a.holds_composed(0)) return local_tile(a.composed(0), a.tiler(1), a.tuple(2));
  return local_tile(a.layout(0), a.tiler(1), a.tuple(2));
}

V local_partition_of(A a) {
  if (a.holds_composed(0)) return local_partition(a.composed(0), a.layout(1), a.integer(2));
  return local_partition(a.layout(0), a.layout(1), a.integer(2));
}

constexpr FunctionRow kTileRows[] = {
    {"composition", "layout or swizzle, tiler or swizzle", 2, 3, composition_of,
     "the second, then the first"},
    {"composition_swizzle", "swizzle (, offset), layout", 1, 3, composition_swizzle_of,
     "a layout behind a swizzle"},
    {"complement", "layout (, cotarget)", 1, 2, complement_of,
     "what the layout leaves out of the cotarget"},
    {"right_inverse", "layout", 1, 1, right_inverse_of, "layout(result(i)) is i"},
    {"left_inverse", "layout", 1, 1, left_inverse_of, "result(layout(i)) is i"},
    {"nullspace", "layout", 1, 1, [](A a) -> V { return nullspace(a.layout(0)); },
     "layout(result(i)) is 0"},
    {"logical_divide", "layout, tiler", 2, 2,
     [](A a) -> V { return plain(logical_divide(a.composed(0), a.tiler(1))); },
     "(tile, rest) in each mode"},
    {"zipped_divide", "layout, tiler", 2, 2,
     [](A a) -> V { return plain(zipped_divide(a.composed(0), a.tiler(1))); },
     "((tiles), (rests))"},
    {"tiled_divide", "layout, tiler", 2, 2,
     [](A a) -> V { return plain(tiled_divide(a.composed(0), a.tiler(1))); },
     "((tiles), rest, rest...)"},
    {"flat_divide", "layout, tiler", 2, 2,
     [](A a) -> V { return plain(flat_divide(a.composed(0), a.tiler(1))); },
     "(tile, tile..., rest, rest...)"},
    {"logical_product", "block, tiler", 2, 2,
     [](A a) -> V { return plain(logical_product(a.composed(0), a.tiler(1))); },
     "(block, its repetitions) in each mode"},
    {"zipped_product", "block, tiler", 2, 2,
     [](A a) -> V { return plain(zipped_product(a.composed(0), a.tiler(1))); },
     "((block), (repetitions))"},
    {"tiled_product", "block, tiler", 2, 2,
     [](A a) -> V { return plain(tiled_product(a.composed(0), a.tiler(1))); },
     "((block), repetition...)"},
    {"flat_product", "block, tiler", 2, 2,
     [](A a) -> V { return plain(flat_product(a.composed(0), a.tiler(1))); },
     "(block..., repetition...)"},
    {"blocked_product", "block, tiler", 2, 2,
     [](A a) -> V { return plain(blocked_product(a.composed(0), a.layout(1))); },
     "blocks side by side"},
    {"raked_product", "block, tiler", 2, 2,
     [](A a) -> V { return plain(raked_product(a.composed(0), a.layout(1))); },
     "blocks interleaved"},
    {"tile_to_shape", "block, shape (, order)", 2, 3, tile_to_shape_of,
     "the block repeated to the shape"},
    {"tile_unzip", "layout, tiler", 2, 2,
     [](A a) -> V { return tile_unzip(a.layout(0), a.tiler(1)); },
     "(tile, rest) in each mode to ((tiles), (rests))"},
    {"max_common_vector", "layout, layout", 2, 2,
     [](A a) -> V { return IntTuple(max_common_vector(a.composed(0), a.composed(1))); },
     "elements contiguous in both"},
    {"max_common_layout", "layout, layout", 2, 2,
     [](A a) -> V { return max_common_layout(a.composed(0), a.layout(1)); },
     "where the elements contiguous in both are"},
    {"domain_distribute", "shape, extent", 2, 2,
     [](A a) -> V { return domain_distribute(a.tuple(0), a.integer(1)); },
     "the extent spread over the modes"},
    {"make_layout_tv", "threads, values", 2, 2,
     [](A a) -> V { return make_layout_tv(a.layout(0), a.layout(1)); },
     "(thread, value) to the coordinate in the tile"},
    {"local_tile", "layout, tiler, coordinate (, step)", 3, 4, local_tile_of,
     "one tile of the grid"},
    {"local_partition", "layout, threads, index", 3, 3, local_partition_of, "what one thread owns"},
};

}  // namespace

std::span<const FunctionRow> tile_functions() { return kTileRows; }

}  // namespace tilewright
