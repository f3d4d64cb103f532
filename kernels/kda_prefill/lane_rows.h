// SPDX-License-Identifier: Apache-2.0
// The rows of 16 bytes that lanes name for ldmatrix and stmatrix in swizzled tiles, with the
// swizzle done once for all tiles.
#pragma once

#include "tilewright/matrix_tile.h"
#include "tilewright/mma.h"

#include <vector>

namespace tilewright {

/// Which of four matrices of 8 x 8 comes second: the one below the first, or the one beside it.
enum class SecondMatrix : std::uint8_t { below, beside };

/// Lanes' places for 16 x 16 elements of 16 bits in tiles of one swizzle: rows come by 8, so that
/// only a lane and the column in a panel decide what the swizzle does.
class LaneRows {
 public:
  LaneRows(TensorSwizzle swizzle, SecondMatrix second);
  /// Pre: `row` is a multiple of 8, `column` of 16, as the tile lies in memory.
  Element at(const MatrixTile& tile, const Int& row, int column) const;

 private:
  int panel_columns_;
  std::vector<Value> places_;
};

/// The operands of mma(), as load_matrix_a() and load_matrix_b() load them.
class OperandLoader {
 public:
  explicit OperandLoader(TensorSwizzle swizzle)
      : a_(swizzle, SecondMatrix::below), b_(swizzle, SecondMatrix::beside) {}
  /// Rows [row, row + 16) and columns [column, column + 16) as A.
  Fragment a(const MatrixTile& tile, const Int& row, int column) const {
    return ldmatrix(a_.at(tile, row, column), 4).recast(tile.type());
  }
  /// The same of a tile of n x k as B, in two halves of 8 rows.
  Fragment b(const MatrixTile& tile, const Int& row, int column) const {
    return ldmatrix(b_.at(tile, row, column), 4).recast(tile.type());
  }
  /// Of a tile of k x n: rows of k [row, row + 16) and columns [column, column + 16) as B.
  Fragment b_transposed(const MatrixTile& tile, const Int& row, int column) const {
    return ldmatrix(a_.at(tile, row, column), 4, Transposed::yes).recast(tile.type());
  }

 private:
  LaneRows a_, b_;
};

}  // namespace tilewright
