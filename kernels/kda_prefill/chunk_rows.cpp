// SPDX-License-Identifier: Apache-2.0
// Threads over a chunk, and their places in swizzled tiles.
#include "kernels/kda_prefill/chunk_rows.h"

#include "tilewright/thread.h"

namespace tilewright {
namespace {

constexpr int kPanelColumns = 64;  // of 16 bits: the 128 bytes that TensorSwizzle::b128 permutes
constexpr int kSwizzleRows = 8;

}  // namespace

ThreadRows thread_rows(const ChunkShape& shape) {
  int pairs = shape.k / 2;
  Value thread = thread_idx().x;
  return {(warp_idx() / (pairs / 32)).assume({1, 0, shape.blocks() - 1}),
          (thread % pairs * 2).assume({2, 0, shape.k - 2})};
}

PairPlaces::PairPlaces(const ChunkShape& shape, const ThreadRows& rows, int tile_rows) {
  Value panel = rows.channel / kPanelColumns, column = rows.channel % kPanelColumns;
  Value base = panel * (tile_rows * kPanelColumns) + rows.first_row() * kPanelColumns;
  for (int row = 0; row < kSwizzleRows; ++row) {
    Value place = base + (column ^ (row * kSwizzleRows));
    places_.push_back(place.assume({2, 0, tile_rows * shape.k - 2}));
  }
}

Element PairPlaces::in(const Tensor& tile, int row) const {
  Int place = to_int(places_[static_cast<std::size_t>(row % kSwizzleRows)]);
  return {tile, place + Int(row * kPanelColumns), SourceLoc::here()};
}

Fragment factor_for(const Fragment& values, const Fragment& factor) {
  return values.type() == f16 ? factor.to(f16) : factor;
}

Fragment scaled_pair(const Fragment& values, int row, const Fragment& factor) {
  if (factor.type() == f32) return (values.part(2 * row, 2).to(f32) * factor).to(values.type());
  return (values.part(2 * row, 2).recast(f16x2) * factor.recast(f16x2)).recast(f16);
}

Fragment pair_of(const Value& first, const Value& second) {
  Fragment pair(f32, 2);
  pair[0] = first;
  pair[1] = second;
  return pair;
}

}  // namespace tilewright
