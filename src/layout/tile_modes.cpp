// SPDX-License-Identifier: Apache-2.0
// Going by the modes of a tiler, and regrouping the halves of what results.
#include "layout/tile_modes.h"

#include "layout/fail.h"

namespace tilewright {
namespace {

void check_rank(const char* operation, const Layout& layout, const Tiler& tiler) {
  if (static_cast<int>(tiler.modes().size()) > layout.rank()) {
    fail(std::string(operation) + ": the tiler " + to_string(tiler) + " has more modes than " +
         to_string(layout));
  }
}

}  // namespace

Layout transform_modes(const char* operation, const Layout& layout, const Tiler& tiler,
                       Layout (*f)(const Layout&, const Tiler&)) {
  check_rank(operation, layout, tiler);
  std::vector<Layout> modes;
  for (int i = 0; i < layout.rank(); ++i) {
    const auto mode = static_cast<std::size_t>(i);
    modes.push_back(mode < tiler.modes().size() ? f(layout.mode(i), tiler.modes()[mode])
                                                : layout.mode(i));
  }
  return make_layout(modes);
}

Layout unzip(const char* operation, const Layout& layout, const Tiler& tiler, Whole whole) {
  switch (tiler.kind()) {
    case Tiler::Kind::layout:
      return layout;
    case Tiler::Kind::underscore:
      return whole == Whole::rest ? make_layout({Layout(), layout})
                                  : make_layout({layout, Layout()});
    case Tiler::Kind::by_mode:
      break;
  }
  check_rank(operation, layout, tiler);
  std::vector<Layout> first;
  std::vector<Layout> second;
  for (int i = 0; i < layout.rank(); ++i) {
    const auto mode = static_cast<std::size_t>(i);
    if (mode < tiler.modes().size()) {
      const Layout halves = unzip(operation, layout.mode(i), tiler.modes()[mode], whole);
      first.push_back(halves.mode(0));
      second.push_back(halves.mode(1));
    } else {
      second.push_back(layout.mode(i));
    }
  }
  return make_layout({make_layout(first), make_layout(second)});
}

namespace {

// The modes of a half, or as CuTe does the half itself if it has one mode only.
void unpack(const Layout& half, std::vector<Layout>& out) {
  if (half.rank() == 1) {
    out.push_back(half);
    return;
  }
  for (int i = 0; i < half.rank(); ++i) {
    out.push_back(half.mode(i));
  }
}

}  // namespace

Layout unpack_rest(const Layout& zipped) {
  std::vector<Layout> modes{zipped.mode(0)};
  unpack(zipped.mode(1), modes);
  return make_layout(modes);
}

Layout unpack_both(const Layout& zipped) {
  std::vector<Layout> modes;
  unpack(zipped.mode(0), modes);
  unpack(zipped.mode(1), modes);
  return make_layout(modes);
}

}  // namespace tilewright
