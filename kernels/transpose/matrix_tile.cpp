// SPDX-License-Identifier: Apache-2.0
// Which rows the lanes name for ldmatrix, so that each gets an access to dst.
#include "kernels/transpose/matrix_tile.h"

#include "tilewright/fragment.h"
#include "tilewright/mma.h"
#include "tilewright/sync.h"
#include "tilewright/thread.h"

#include <utility>
#include <vector>

namespace tilewright {
namespace {

constexpr int kAccess = 8;       // elements of 16 bytes, and the side of a matrix
constexpr int kMatrices = 4;     // of an ldmatrix
constexpr int kRowsOfWarp = 32;  // of src that one ldmatrix reads

}  // namespace

MatrixTile::MatrixTile(const TransposeConfig& config, const Tensor& src, const Tensor& dst,
                       TransposeCorner corner)
    : c_(config),
      src_(src),
      dst_(dst),
      tile_(dynamic_shared(
          src.type(), Layout(Shape{config.tile_m(), config.tile_n()}, Stride{config.tile_n(), 1}))),
      corner_(std::move(corner)) {}

void MatrixTile::transpose() const {
  read();
  barrier();
  write();
}

/// Rows of a matrix are 8, 8 and one apart: see write().
Element MatrixTile::access(const Value& row, const Value& column) const {
  const Value place = ((row >> 2) & 6) | (row & 1);
  return tile_(row, (column ^ place) * kAccess);
}

/// All loads are on their way before the first store.
void MatrixTile::read() const {
  const int at_once = c_.threads / c_.across;
  const Value column = linear_thread_idx() % c_.across;
  const Value down = linear_thread_idx() / c_.across;
  const Value n = corner_.n + (column * kAccess).to(s64);
  const Value rows = to_value(src_.shape()[1].value()).to(s64);
  const Value in_row = n < to_value(src_.shape()[2].value()).to(s64);
  std::vector<Fragment> loaded;
  for (int i = 0; i < c_.tile_m(); i += at_once) {
    const Value m = corner_.m + (down + i).to(s64);
    loaded.push_back(load_if(in_row && m < rows, src_(corner_.batch, m, n), kAccess));
  }
  for (int i = 0; i < c_.tile_m(); i += at_once)
    store(access(down + i, column), loaded[static_cast<std::size_t>(i / at_once)]);
}

/// Row j of matrix i is row 8 (j / 2) + 2 i + j % 2 of 32: of its four matrices, transposed, lane l
/// gets elements 2 i and + 1 of the eight rows from 8 (l % 4) on, in column l / 4. A warp writes
/// all that rows of dst get.
void MatrixTile::write() const {
  const int warps = c_.threads / 32;
  const Value lane = lane_idx(), j = lane % kAccess, matrix = lane / kAccess;
  const Value named = (j >> 1) * kAccess + matrix * 2 + (j & 1);
  const Value rows = to_value(src_.shape()[1].value()).to(s64);
  const Value columns = to_value(src_.shape()[2].value()).to(s64);
  for (int first = 0; first < c_.across; first += warps) {
    const Value column = warp_idx() + first;
    const Value n = corner_.n + (column * kAccess + lane / kMatrices).to(s64);
    for (int row = 0; row < c_.tile_m(); row += kRowsOfWarp) {
      const Fragment turned =
          ldmatrix(access(named + row, column), kMatrices, Transposed::yes).recast(dst_.type());
      const Value m = corner_.m + (lane % kMatrices * kAccess + row).to(s64);
      store_if(n < columns && m < rows, dst_(corner_.batch, n, m), turned);
    }
  }
}

}  // namespace tilewright
