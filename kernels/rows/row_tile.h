// SPDX-License-Identifier: Apache-2.0
// How the threads of a grid cover a matrix: for operators that work on elements.
#pragma once

#include "kernels/rows/grid_division.h"
#include "kernels/rows/rows.h"
#include "tilewright/tensor.h"
#include "tilewright/value.h"

#include <vector>

namespace tilewright::rows {

/// A block's tile of rows and accesses; the grid has all tiles of the matrix, along rows first.
struct RowTile {
  int vector_elems = 8;  ///< of an access
  int threads = 128;
  int threads_n = 128;  ///< of them along a row
  int accesses = 1;     ///< of a thread along its row, threads_n accesses apart
  friend bool operator==(const RowTile&, const RowTile&) = default;
  int rows() const { return threads / threads_n; }
  std::int64_t columns() const { return std::int64_t{threads_n} * accesses * vector_elems; }
};
std::string to_string(const RowTile& tile);

/// As many threads along a row as it has accesses for. Pre: threads is a power of two.
RowTile make_row_tile(int vector_elems, std::int64_t columns, int threads, int accesses);
std::int64_t tiles_along_row(const RowTile& tile, std::int64_t columns);
/// Refuses more tiles than a grid takes.
LaunchConfig row_tile_launch(const RowTile& tile, std::int64_t row_count, std::int64_t columns,
                             const Caller& caller);

/// One access of this thread; indices are s64 beyond 2^30.
struct RowShare {
  Value row, column;  ///< of the access's first element
  Value inside;       ///< predicate
};
/// All accesses of a thread, in its one row. Traced. Pre: the trace's block is RowTile::threads
/// wide, its grid row_tile_launch's. `along` is the divisor_parameter() of the tiles along a row,
/// `row_count` and `columns` are leaves of a shape.
std::vector<RowShare> row_shares(const RowTile& tile, const Value& along, const Int& row_count,
                                 const Int& columns);

}  // namespace tilewright::rows
