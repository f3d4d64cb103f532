// SPDX-License-Identifier: Apache-2.0
// How the threads of a grid cover a matrix: for operators that work on elements.
#pragma once

#include "kernels/rows/rows.h"
#include "tilewright/tensor.h"
#include "tilewright/value.h"

#include <vector>

namespace tilewright::rows {

/// How blocks find their tiles, which lie along rows first either way.
enum class TileGrid : std::uint8_t {
  by_row,   ///< in two dimensions: no arithmetic stands before the first address
  numbered  ///< in one: for more tiles down the rows than a grid has, and for blocks behind them
};

/// A block's tile of rows and accesses; the grid has all tiles of the matrix.
struct RowTile {
  int vector_elems = 8;  ///< of an access
  int threads = 128;
  int threads_n = 128;  ///< of them along a row
  int accesses = 1;     ///< of a thread along its row, threads_n accesses apart
  TileGrid grid = TileGrid::by_row;
  friend bool operator==(const RowTile&, const RowTile&) = default;
  int rows() const { return threads / threads_n; }
  std::int64_t columns() const { return std::int64_t{threads_n} * accesses * vector_elems; }
};
std::string to_string(const RowTile& tile);

/// As many threads along a row of the matrix as it has accesses for. Pre: threads is a power of
/// two.
RowTile make_row_tile(const View& matrix, int vector_elems, int threads, int accesses);
std::int64_t tiles_along_row(const RowTile& tile, std::int64_t columns);
/// Refuses more tiles than a grid takes.
LaunchConfig row_tile_launch(const RowTile& tile, std::int64_t row_count, std::int64_t columns,
                             const Caller& caller);

/// One access of this thread; indices are s64 beyond 2^30.
struct RowShare {
  Value row, column;  ///< of the access's first element
  Value in_rows;      ///< predicate: there is such a row
  Value inside;       ///< predicate: and such a column
};
/// All accesses of a thread, in its one row. `inside` is constant where tiles fill the matrix.
/// Traced. Pre: the trace's block is RowTile::threads wide, its grid row_tile_launch's, with other
/// blocks behind it at most. `row_count` is a leaf of a shape.
std::vector<RowShare> row_shares(const RowTile& tile, const Int& row_count, std::int64_t columns);

}  // namespace tilewright::rows
