// SPDX-License-Identifier: Apache-2.0
// The shape of row tiles, on the host and traced.
#include "kernels/rows/row_tile.h"

#include "tilewright/thread.h"
#include "tilewright/trace.h"

namespace tilewright::rows {
namespace {

constexpr std::int64_t kMaxGridY = 65'535;  // CUDA Programming Guide, technical specifications

}  // namespace

std::string to_string(const RowTile& tile) {
  return "v=" + std::to_string(tile.vector_elems) + " t=" + std::to_string(tile.threads) + "/" +
         std::to_string(tile.threads_n) + " n=" + std::to_string(tile.accesses) +
         (tile.grid == TileGrid::numbered ? " numbered" : "");
}

RowTile make_row_tile(const View& matrix, int vector_elems, int threads, int accesses) {
  RowTile tile{
      .vector_elems = vector_elems, .threads = threads, .threads_n = 1, .accesses = accesses};
  while (tile.threads_n < tile.threads && tile.columns() < matrix.shape[1])
    tile.threads_n *= 2;
  if (ceil_div(matrix.shape[0], tile.rows()) > kMaxGridY) tile.grid = TileGrid::numbered;
  return tile;
}

std::int64_t tiles_along_row(const RowTile& tile, std::int64_t columns) {
  return ceil_div(columns, tile.columns());
}

LaunchConfig row_tile_launch(const RowTile& tile, std::int64_t row_count, std::int64_t columns,
                             const Caller& caller) {
  const std::int64_t tiles_n = tiles_along_row(tile, columns);
  const std::int64_t tiles_m = ceil_div(row_count, tile.rows());
  if (tiles_m * tiles_n > 2'147'483'647) {
    caller.refuse(std::to_string(row_count) + " rows of " + std::to_string(columns) +
                  " elements take " + std::to_string(tiles_m * tiles_n) +
                  " blocks; a launch has 2147483647");
  }
  const bool by_row = tile.grid == TileGrid::by_row;
  LaunchConfig launch;
  launch.grid.x = static_cast<int>(by_row ? tiles_n : tiles_m * tiles_n);
  launch.grid.y = static_cast<int>(by_row ? tiles_m : 1);
  launch.block.x = tile.threads;
  return launch;
}

namespace {

/// Of a block's tile: down the rows, and along them.
struct TilePlace {
  Value m, n;
};
TilePlace tile_of_block(const RowTile& tile, std::int64_t tiles_n) {
  const bool by_row = tile.grid == TileGrid::by_row;
  const Value block = block_idx().x;
  if (tiles_n == 1) return {by_row ? block_idx().y : block, constant(s32, 0)};
  if (by_row) return {block_idx().y, block.assume({1, 0, tiles_n - 1})};
  const Value m = block / tiles_n;
  return {m, block - m * tiles_n};
}

/// Whether access j of a thread whose first one is at `first` is inside of rows of `columns`.
Value inside_row(const RowTile& tile, std::int64_t columns, int j, const Value& column) {
  const std::int64_t end = std::int64_t{j + 1} * tile.threads_n * tile.vector_elems;
  const bool whole = columns % tile.columns() == 0 || (columns < tile.columns() && end <= columns);
  return whole ? constant(pred, true) : column < columns;
}

}  // namespace

std::vector<RowShare> row_shares(const RowTile& tile, const Int& row_count, std::int64_t columns) {
  const Type row_type = is_short_extent(row_count) ? s32 : s64;
  const Type column_type = is_short_extent(Int(columns)) ? s32 : s64;
  const TilePlace place = tile_of_block(tile, tiles_along_row(tile, columns));
  const Value thread = linear_thread_idx();
  const Value row = place.m.to(row_type) * tile.rows() + (thread / tile.threads_n).to(row_type);
  const Value first = place.n.to(column_type) * (tile.threads_n * tile.accesses) +
                      (thread % tile.threads_n).to(column_type);
  const Value exists = tile.rows() == 1 ? constant(pred, true) : row < to_value(row_count);
  std::vector<RowShare> shares;
  for (int j = 0; j < tile.accesses; ++j) {
    // What would begin beyond the end whatever the thread is none.
    if (std::int64_t{j} * tile.threads_n * tile.vector_elems >= columns) break;
    const Value column = (first + j * tile.threads_n) * tile.vector_elems;
    shares.push_back({row, column, exists, exists && inside_row(tile, columns, j, column)});
  }
  return shares;
}

}  // namespace tilewright::rows
