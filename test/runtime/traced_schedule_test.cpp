// SPDX-License-Identifier: Apache-2.0
// The order of a tile scheduler, run on the test device.
#include "runtime/traced_fixture.h"
#include "tilewright/tile_scheduler.h"

namespace tilewright {
namespace {

using TracedSchedule = test::TracedTest;

TEST_F(TracedSchedule, TakesEveryTileOnceInBands) {
  struct Grid {
    int m, n, band;
  };
  for (Grid g : {Grid{5, 3, 2}, Grid{1, 7, 4}, Grid{8, 2, 8}, Grid{3, 1, 1}}) {
    test::DeviceVector sizes = vector(s32, std::vector<std::int32_t>{g.m, g.n});
    auto count = static_cast<std::size_t>(g.m * g.n);
    test::DeviceVector order = vector(s32, std::vector<std::int32_t>(2 * count, -1));
    auto kernel = [&](const Tensor& size, const Tensor& out) {
      TileScheduler tiles(size(0).load(), size(1).load(), g.band);
      Var place(block_idx().x * 2);
      tiles.for_each(block_idx().x, grid_dim().x, [&](const Value& m, const Value& n) {
        out(place) = m;
        out(Value(place) + 1) = n;
        place += grid_dim().x * 2;
      });
    };
    run({.grid = {2, 1, 1}, .block = {1, 1, 1}}, kernel, sizes, order);
    std::vector<std::int32_t> expected;
    for (int first = 0; first < g.m; first += g.band) {
      for (int n = 0; n < g.n; ++n) {
        for (int m = first; m < g.m && m < first + g.band; ++m) {
          expected.push_back(m);
          expected.push_back(n);
        }
      }
    }
    EXPECT_EQ(download<std::int32_t>(order.buffer), expected) << g.m << " x " << g.n;
  }
}

}  // namespace
}  // namespace tilewright
