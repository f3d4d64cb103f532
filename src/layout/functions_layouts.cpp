// SPDX-License-Identifier: Apache-2.0
// Functions of expressions over single layouts.
#include "layout/fail.h"
#include "layout/functions.h"

namespace tilewright {
namespace {

using A = const Args&;
using V = LayoutValue;

V make_layout_of(A a) {
  if (a.size() == 1) {
    return a.holds_layout(0) ? V(a.layout(0)) : V(make_layout(a.tuple(0)));
  }
  if (a.size() == 2 && a.holds_tuple(0) && a.holds_tuple(1)) {
    return Layout(a.tuple(0), a.tuple(1));
  }
  std::vector<Layout> modes;
  for (std::size_t i = 0; i < a.size(); ++i) {
    modes.push_back(a.layout(i));
  }
  return make_layout(modes);
}

V size_of(A a) {
  IntTuple shape = a.holds_layout(0) ? a.composed(0).shape() : a.tuple(0);
  for (std::size_t i = 1; i < a.size(); ++i) {
    shape = IntTuple(shape[a.number(i)]);
  }
  return IntTuple(size(shape));
}

V rank_of(A a) { return IntTuple(a.holds_layout(0) ? a.composed(0).rank() : a.tuple(0).rank()); }
V depth_of(A a) { return IntTuple(depth(a.holds_layout(0) ? a.composed(0).shape() : a.tuple(0))); }

V coalesce_of(A a) {
  return plain(a.size() > 1 ? coalesce(a.composed(0), a.tuple(1)) : coalesce(a.composed(0)));
}

V filter_of(A a) {
  return a.size() > 1 ? V(filter(a.layout(0), a.tuple(1))) : plain(filter(a.composed(0)));
}

V filter_zeros_of(A a) {
  return a.size() > 1 ? filter_zeros(a.layout(0), a.tuple(1)) : filter_zeros(a.layout(0));
}

V mode_of(A a) {
  if (!a.holds_layout(0)) return a.tuple(0)[a.number(1)];
  return plain(a.composed(0).mode(a.number(1)));
}

V flatten_of(A a) {
  return a.holds_layout(0) ? plain(flatten(a.composed(0))) : V(flatten(a.tuple(0)));
}

V unflatten_of(A a) {
  return a.holds_layout(0) ? V(unflatten(a.layout(0), a.tuple(1)))
                           : V(unflatten(a.tuple(0), a.tuple(1)));
}

V group_of(A a) {
  return a.holds_layout(0) ? plain(group(a.composed(0), a.number(1), a.number(2)))
                           : V(group(a.tuple(0), a.number(1), a.number(2)));
}

V take_of(A a) {
  return a.holds_layout(0) ? plain(take(a.composed(0), a.number(1), a.number(2)))
                           : V(take(a.tuple(0), a.number(1), a.number(2)));
}

V select_of(A a) {
  std::vector<int> modes;
  for (std::size_t i = 1; i < a.size(); ++i) {
    modes.push_back(a.number(i));
  }
  return a.holds_layout(0) ? V(select(a.layout(0), modes)) : V(select(a.tuple(0), modes));
}

V append_of(A a) {
  return a.holds_layout(0) ? V(append(a.layout(0), a.layout(1)))
                           : V(append(a.tuple(0), a.tuple(1)));
}

V prepend_of(A a) {
  return a.holds_layout(0) ? V(prepend(a.layout(0), a.layout(1)))
                           : V(prepend(a.tuple(0), a.tuple(1)));
}

V replace_of(A a) {
  return a.holds_layout(0) ? V(replace(a.layout(0), a.number(1), a.layout(2)))
                           : V(replace(a.tuple(0), a.number(1), a.tuple(2)));
}

V zip_of(A a) {
  if (a.size() == 2) return zip(a.layout(0), a.layout(1));
  return a.holds_layout(0) ? V(zip(a.layout(0))) : V(zip(a.tuple(0)));
}

V slice_of(A a) {
  if (a.holds_composed(1)) return plain(slice(a.tuple(0), a.composed(1)));
  return a.holds_layout(1) ? V(slice(a.tuple(0), a.layout(1))) : V(slice(a.tuple(0), a.tuple(1)));
}

V dice_of(A a) {
  return a.holds_layout(1) ? V(dice(a.tuple(0), a.layout(1))) : V(dice(a.tuple(0), a.tuple(1)));
}

V slice_and_offset_of(A a) {
  if (a.holds_composed(1)) return slice(a.tuple(0), a.composed(1));
  return slice_and_offset(a.tuple(0), a.layout(1));
}

V recast_of(A a) {
  if (a.holds_swizzle(2)) return recast_layout(a.number(0), a.number(1), a.swizzle(2));
  return plain(recast_layout(a.number(0), a.number(1), a.composed(2)));
}

constexpr FunctionRow kLayoutRows[] = {
    {"make_layout", "shape (, stride), or layouts", 1, 64, make_layout_of,
     "a layout, column-major without a stride; of layouts, one mode each"},
    {"make_row_major", "shape", 1, 1, [](A a) -> V { return make_row_major(a.tuple(0)); },
     "compact, the last mode contiguous"},
    {"make_ordered_layout", "shape, order", 2, 2,
     [](A a) -> V { return make_ordered_layout(a.tuple(0), a.tuple(1)); },
     "compact, contiguous by rising order"},
    {"make_layout_like", "layout", 1, 1, [](A a) -> V { return make_layout_like(a.layout(0)); },
     "compact, in the order of the strides"},
    {"make_identity_layout", "shape", 1, 1,
     [](A a) -> V { return make_identity_layout(a.tuple(0)); }, "coordinates to themselves"},
    {"shape", "layout", 1, 1, [](A a) -> V { return a.composed(0).shape(); }, "its shape"},
    {"stride", "layout", 1, 1, [](A a) -> V { return a.layout(0).stride(); }, "its stride"},
    {"rank", "layout or tuple", 1, 1, rank_of, "the number of modes"},
    {"depth", "layout or tuple", 1, 1, depth_of, "the depth of the nesting"},
    {"size", "layout or shape (, mode...)", 1, 8, size_of, "the number of coordinates"},
    {"cosize", "layout", 1, 1, [](A a) -> V { return IntTuple(cosize(a.composed(0))); },
     "one more than the largest index"},
    {"coshape", "layout", 1, 1, [](A a) -> V { return coshape(a.layout(0)); },
     "as cosize, one number a basis mode"},
    {"coalesce", "layout (, profile)", 1, 2, coalesce_of, "the same function with fewest modes"},
    {"filter", "layout (, profile)", 1, 2, filter_of, "without strides of 0 and extents of 1"},
    {"filter_zeros", "layout (, profile)", 1, 2, filter_zeros_of, "extent 1 where the stride is 0"},
    {"get", "layout or tuple, mode", 2, 2, mode_of, "one mode"},
    {"flatten", "layout or tuple", 1, 1, flatten_of, "depth at most 1"},
    {"unflatten", "layout or tuple, profile", 2, 2, unflatten_of, "a flat one nested again"},
    {"group", "layout or tuple, begin, end", 3, 3, group_of, "modes [begin, end) as one"},
    {"take", "layout or tuple, begin, end", 3, 3, take_of, "modes [begin, end)"},
    {"select", "layout or tuple, modes...", 2, 64, select_of, "these modes in this order"},
    {"append", "layout or tuple, mode", 2, 2, append_of, "one more mode at the end"},
    {"prepend", "layout or tuple, mode", 2, 2, prepend_of, "one more mode in front"},
    {"replace", "layout or tuple, mode, new", 3, 3, replace_of, "one mode replaced"},
    {"zip", "layout (, layout)", 1, 2, zip_of, "((a,b),(c,d)) to ((a,c),(b,d))"},
    {"slice", "coordinate, layout or tuple", 2, 2, slice_of, "the modes under _"},
    {"dice", "coordinate, layout or tuple", 2, 2, dice_of, "the modes not under _"},
    {"slice_and_offset", "coordinate, layout", 2, 2, slice_and_offset_of,
     "the modes under _, and where they start"},
    {"domain_offset", "coordinate, layout", 2, 2,
     [](A a) -> V { return domain_offset(a.tuple(0), a.layout(1)); }, "the layout moved"},
    {"upcast", "layout, n", 2, 2, [](A a) -> V { return upcast(a.layout(0), a.number(1)); },
     "elements n times as wide"},
    {"downcast", "layout, n", 2, 2, [](A a) -> V { return downcast(a.layout(0), a.number(1)); },
     "elements n times as narrow"},
    {"recast_layout", "new bits, old bits, layout", 3, 3, recast_of,
     "the same memory as elements of other width"},
    {"recast_layout_swizzle", "new bits, old bits, layout", 3, 3, recast_of, "as recast_layout"},
    {"max_alignment", "layout", 1, 1,
     [](A a) -> V { return IntTuple(max_alignment(a.composed(0))); },
     "the largest n that upcast takes"},
};

}  // namespace

std::span<const FunctionRow> layout_rows() { return kLayoutRows; }

}  // namespace tilewright
