// SPDX-License-Identifier: Apache-2.0
// The grid barrier as PTX, and what is refused.
#include "tilewright/grid_barrier.h"

#include "lang/trace_fixture.h"
#include "tilewright/control.h"
#include "tilewright/thread.h"

namespace tilewright {
namespace {

using test::error_of;
using test::expect_ptx;
using test::vector_arg;

TEST(GridBarrier, TakesOneReductionAndOneSpin) {
  auto kernel = [](const Tensor& counter) {
    GridBarrier grid(counter(0));
    grid.sync();
  };
  expect_ptx("grid_barrier", {70, '\0'}, kernel, vector_arg(u32, 1));
}

TEST(GridBarrier, RefusesACounterThatIsNoWord) {
  EXPECT_EQ(error_of([](const Tensor& x) { GridBarrier(x(0)); }, vector_arg(s32, 1)),
            "GridBarrier: the counter is a s32 in global memory; it must be a u32 in global "
            "memory");
}

TEST(GridBarrier, RefusesToStandUnderADivergentCondition) {
  auto kernel = [](const Tensor& x) {
    GridBarrier grid(x(0));
    if_(thread_idx().x < 64, [&] { grid.sync(); });
  };
  EXPECT_EQ(error_of(kernel, vector_arg(u32, 1)).find("barrier: all threads of the block"), 0U);
}

TEST(GridBarrier, NeedsTheBlocksShape) {
  auto kernel = [](const Tensor& x) { GridBarrier grid(x(0)); };
  EXPECT_EQ(error_of(TraceOptions{.name = "unknown"}, kernel, vector_arg(u32, 1)),
            "block_threads: the trace does not know the block's shape; set TraceOptions::block");
}

}  // namespace
}  // namespace tilewright
