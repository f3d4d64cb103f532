// SPDX-License-Identifier: Apache-2.0
// What the tile scheduler refuses. That its order is right, runs test/runtime/traced_schedule_test.
#include "tilewright/tile_scheduler.h"

#include "lang/trace_fixture.h"

namespace tilewright {
namespace {

TEST(TileScheduler, RefusesEmptyGridsAndBands) {
  EXPECT_EQ(test::error_of([] { TileScheduler(0, 4, 1); }),
            "TileScheduler: 0 tiles; take at least 1");
  EXPECT_EQ(test::error_of([] { TileScheduler(4, 4, 0); }),
            "TileScheduler: bands of 0 rows; take at least 1");
}

}  // namespace
}  // namespace tilewright
