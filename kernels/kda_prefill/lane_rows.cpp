// SPDX-License-Identifier: Apache-2.0
// Swizzled places of lanes.
#include "kernels/kda_prefill/lane_rows.h"

#include "tilewright/thread.h"

namespace tilewright {
namespace {

constexpr int kTypeBytes = 2;
constexpr int kSwizzledElems = 64;  // a swizzle looks at which 128 bytes an element is in

}  // namespace

LaneRows::LaneRows(TensorSwizzle swizzle, SecondMatrix second)
    : panel_columns_(swizzle_bytes(swizzle) / kTypeBytes) {
  Value lane = lane_idx(), odd = lane / 8 % 2, upper = lane / 16;
  bool below = second == SecondMatrix::below;
  Value row = lane % 8 + (below ? odd : upper) * 8, column = (below ? upper : odd) * 8;
  // The swizzle's bits: those of the row that count whole 128 bytes, onto chunks of 8 elements.
  int chunks = panel_columns_ / 8;
  Value flipped = lane % 8 * panel_columns_ / kSwizzledElems % chunks * 8;
  for (int first = 0; first < panel_columns_; first += 16) {
    Value place = row * panel_columns_ + ((column + first) ^ flipped);
    places_.push_back(place.assume({8, 0, 16 * panel_columns_ - 8}));
  }
}

Element LaneRows::at(const MatrixTile& tile, const Int& row, int column) const {
  Int place = to_int(places_[static_cast<std::size_t>(column % panel_columns_ / 16)]);
  Int first = row * Int(panel_columns_) +
              Int(column / panel_columns_ * std::int64_t{tile.panel_stride_elems()});
  return {tile.memory(), first + place, SourceLoc::here()};
}

}  // namespace tilewright
