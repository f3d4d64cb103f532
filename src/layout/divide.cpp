// SPDX-License-Identifier: Apache-2.0
// Division of a layout by a tiler.
#include "layout/fail.h"
#include "layout/modes.h"
#include "layout/tile_modes.h"

namespace tilewright {

Layout logical_divide(const Layout& layout, const Tiler& tiler) {
  switch (tiler.kind()) {
    case Tiler::Kind::underscore:
      return layout;
    case Tiler::Kind::layout: {
      const Layout rest = complement("logical_divide", tiler.layout(), coalesce(layout).shape(),
                                     Gaps::refuse);  // elements in a gap would be lost
      return composition(layout, make_layout({tiler.layout(), rest}));
    }
    case Tiler::Kind::by_mode:
      break;
  }
  return transform_modes("logical_divide", layout, tiler, logical_divide);
}

Layout zipped_divide(const Layout& layout, const Tiler& tiler) {
  return unzip("zipped_divide", logical_divide(layout, tiler), tiler, Whole::rest);
}

Layout tiled_divide(const Layout& layout, const Tiler& tiler) {
  return unpack_rest(zipped_divide(layout, tiler));
}

Layout flat_divide(const Layout& layout, const Tiler& tiler) {
  return unpack_both(zipped_divide(layout, tiler));
}

Layout tile_unzip(const Layout& layout, const Tiler& tiler) {
  return unzip("tile_unzip", layout, tiler, Whole::rest);
}

IntTuple ceil_div(const Shape& target, const Layout& tiler) {
  return complement("ceil_div", tiler, target, Gaps::refuse).shape();
}

}  // namespace tilewright
