// SPDX-License-Identifier: Apache-2.0
// How the threads of a grid cover a matrix, one access each: for operators that work on elements.
#pragma once

#include "kernels/rows/rows.h"
#include "tilewright/tensor.h"
#include "tilewright/value.h"

namespace tilewright::rows {

/// A block's tile of rows and accesses; the grid has all tiles of the matrix, along rows first.
/// One access a thread in blocks of 128 threads reached the bandwidth of a copy on an H200.
struct RowTile {
  int vector_elems = 8;  ///< of an access
  int threads = 128;
  int threads_n = 128;  ///< of them along a row
  friend bool operator==(const RowTile&, const RowTile&) = default;
  int rows() const { return threads / threads_n; }
  std::int64_t columns() const { return std::int64_t{threads_n} * vector_elems; }
};
std::string to_string(const RowTile& tile);

RowTile choose_row_tile(int vector_elems, std::int64_t columns);
std::int64_t tiles_along_row(const RowTile& tile, std::int64_t columns);
/// Refuses more tiles than a grid takes.
LaunchConfig row_tile_launch(const RowTile& tile, std::int64_t row_count, std::int64_t columns,
                             const Caller& caller);

/// The part of the matrix that this thread handles; indices are s64 beyond 2^30.
struct RowShare {
  Value row, column;  ///< of the access's first element
  Value inside;       ///< predicate
};
/// Traced. Pre: the trace's block is RowTile::threads wide, its grid row_tile_launch's.
/// `row_count` and `columns` are leaves of a shape.
RowShare row_share(const RowTile& tile, const Value& tiles_n, const Int& row_count,
                   const Int& columns);

}  // namespace tilewright::rows
