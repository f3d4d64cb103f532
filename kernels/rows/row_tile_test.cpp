// SPDX-License-Identifier: Apache-2.0
// Tiles of a matrix: every element has one thread, in either kind of grid.
#include "kernels/rows/row_tile.h"

#include "device_fixture.h"
#include "kernels/rows/row_arg.h"
#include "tilewright/array.h"
#include "tilewright/compile.h"
#include "tilewright/fragment.h"

#include <algorithm>
#include <array>
#include <span>
#include <vector>

namespace tilewright {
namespace {

using rows::RowTile;
using rows::TileGrid;

const rows::Caller kCaller{"row_tile", SourceLoc::here()};

class RowTiles : public test::DeviceTest {
 protected:
  /// Adds 1 to each element of a matrix of zeros, and returns it.
  std::vector<std::int32_t> covered(const RowTile& tile, std::int64_t row_count,
                                    std::int64_t columns) {
    const std::vector<std::int32_t> zeros(static_cast<std::size_t>(row_count * columns));
    Buffer memory(device, row_count * columns * 4);
    memory.upload(std::as_bytes(std::span(zeros)));
    const View view = make_view(memory.address(), s32, std::array{row_count, columns});
    const TensorArg arg = rows::rows_arg(view);
    auto body = [&](const Tensor& matrix) {
      for (const rows::RowShare& share :
           rows::row_shares(tile, matrix.shape()[0].value(), columns)) {
        const Element first = matrix(share.row, share.column);
        store_if(share.inside, first, load_if(share.inside, first, tile.vector_elems) + 1);
      }
    };
    Parameters parameters;
    pack(parameters, arg, view);
    compile(device,
            trace({.name = "cover", .target = device.target(), .block = {tile.threads, 1, 1}}, body,
                  arg))
        .launch(rows::row_tile_launch(tile, row_count, columns, kCaller), parameters, stream);
    stream.synchronize();
    return download<std::int32_t>(memory);
  }
};

TEST_F(RowTiles, GiveEveryElementOneThread) {
  const struct {
    const char* name;
    std::int64_t rows, columns;
    int vector_elems, threads, accesses;
  } cases[] = {
      {"one element", 1, 1, 1, 32, 1},
      {"whole tiles", 3, 384, 4, 32, 1},
      {"a part of a tile along rows", 3, 300, 4, 32, 1},
      {"a power of two of tiles, and accesses", 5, 1024, 2, 32, 4},
      {"accesses beyond the end", 2, 100, 1, 32, 8},
      {"rows of less than a warp", 21, 6, 2, 64, 1},
      {"rows of a tile's width", 19, 32, 4, 64, 1},
  };
  for (const auto& each : cases) {
    for (const TileGrid grid : {TileGrid::by_row, TileGrid::numbered}) {
      SCOPED_TRACE(std::string(each.name) + (grid == TileGrid::numbered ? ", numbered" : ""));
      const View matrix = make_view(0, s32, std::array{each.rows, each.columns});
      RowTile tile = rows::make_row_tile(matrix, each.vector_elems, each.threads, each.accesses);
      tile.grid = grid;
      const std::vector<std::int32_t> counts = covered(tile, each.rows, each.columns);
      EXPECT_EQ(std::ranges::count(counts, 1), each.rows * each.columns);
    }
  }
}

TEST_F(RowTiles, AreNumberedWhereAGridHasTooFewRows) {
  for (const std::int64_t row_count : {65'535, 65'536}) {
    const View matrix = make_view(0, s32, std::array{row_count, std::int64_t{300}});
    const RowTile tile = rows::make_row_tile(matrix, 4, 32, 1);
    const Dim3 grid = rows::row_tile_launch(tile, row_count, 300, kCaller).grid;
    const Dim3 expected = row_count == 65'535 ? Dim3{3, 65'535, 1} : Dim3{3 * 65'536, 1, 1};
    EXPECT_EQ(grid, expected) << to_string(grid);
  }
  const View folded = make_view(0, s32, std::array{std::int64_t{131'070}, std::int64_t{64}});
  EXPECT_EQ(rows::make_row_tile(folded, 4, 32, 1).grid, TileGrid::by_row);  // two rows a tile
}

}  // namespace
}  // namespace tilewright
