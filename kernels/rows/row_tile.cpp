// SPDX-License-Identifier: Apache-2.0
// The shape of row tiles, on the host and traced.
#include "kernels/rows/row_tile.h"

#include "tilewright/thread.h"
#include "tilewright/trace.h"

namespace tilewright::rows {

std::string to_string(const RowTile& tile) {
  return "v=" + std::to_string(tile.vector_elems) + " t=" + std::to_string(tile.threads) + "/" +
         std::to_string(tile.threads_n) + " n=" + std::to_string(tile.accesses);
}

RowTile make_row_tile(int vector_elems, std::int64_t columns, int threads, int accesses) {
  RowTile tile{
      .vector_elems = vector_elems, .threads = threads, .threads_n = 1, .accesses = accesses};
  while (tile.threads_n < tile.threads && tile.columns() < columns)
    tile.threads_n *= 2;
  return tile;
}

std::int64_t tiles_along_row(const RowTile& tile, std::int64_t columns) {
  return ceil_div(columns, tile.columns());
}

LaunchConfig row_tile_launch(const RowTile& tile, std::int64_t row_count, std::int64_t columns,
                             const Caller& caller) {
  std::int64_t tiles = ceil_div(row_count, tile.rows()) * tiles_along_row(tile, columns);
  if (tiles > 2'147'483'647) {
    caller.refuse(std::to_string(row_count) + " rows of " + std::to_string(columns) +
                  " elements take " + std::to_string(tiles) + " blocks; a launch has 2147483647");
  }
  LaunchConfig launch;
  launch.grid.x = static_cast<int>(tiles);
  launch.block.x = tile.threads;
  return launch;
}

std::vector<RowShare> row_shares(const RowTile& tile, const Value& along, const Int& row_count,
                                 const Int& columns) {
  Type row_type = is_short_extent(row_count) ? s32 : s64;
  Type column_type = is_short_extent(columns) ? s32 : s64;
  const Divided block = divided(block_idx().x, along);
  Value thread = linear_thread_idx();
  Value row = block.quotient.to(row_type) * tile.rows() + (thread / tile.threads_n).to(row_type);
  Value first = block.remainder.to(column_type) * (tile.threads_n * tile.accesses) +
                (thread % tile.threads_n).to(column_type);
  std::vector<RowShare> shares;
  for (int j = 0; j < tile.accesses; ++j) {
    Value column = (first + j * tile.threads_n) * tile.vector_elems;
    shares.push_back({row, column, row < to_value(row_count) && column < to_value(columns)});
  }
  return shares;
}

}  // namespace tilewright::rows
