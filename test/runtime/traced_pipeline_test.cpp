// SPDX-License-Identifier: Apache-2.0
// Pipelines and roles of the language, run on the test device.
#include "runtime/traced_fixture.h"
#include "tilewright/bulk_copy.h"
#include "tilewright/matrix_tile.h"
#include "tilewright/pipeline.h"

#include <cstdint>
#include <numeric>

namespace tilewright {
namespace {

using TracedPipeline = test::TracedTest;
using Words = std::vector<std::uint32_t>;

/// Sums of column c over the first `steps` rows of 128 of 0, 1, 2, ...
Words column_sums(std::uint32_t steps) {
  Words sums(128, 0);
  for (std::uint32_t i = 0; i < 128 * steps; ++i)
    sums[i % 128] += i;
  return sums;
}

Words counting(std::size_t n) {
  Words words(n);
  std::iota(words.begin(), words.end(), 0U);
  return words;
}

TEST_F(TracedPipeline, ComputesEveryStepOnce) {
  test::DeviceVector x = vector(u32, counting(1024));
  test::DeviceVector y = vector(u32, Words(128 * 9, 99));
  auto kernel = [](const Tensor& in, const Tensor& out) {
    Tensor ring = shared(u32, Layout(Shape{Int(128), Int(3)}));
    Value t = thread_idx().x;
    Var sum(u32, 0);
    pipeline(
        3, block_idx().x,  // block b takes b steps
        [&](const Value& i, const Value& stage) { copy_async(ring(t, stage), in(i * 128 + t), 4); },
        [&](const Value&, const Value& stage) {
          sum += ring(t ^ 64, stage).load();  // another warp's copy
        });
    out(block_idx().x * 128 + (t ^ 64)) = sum;
  };
  run({.grid = {9, 1, 1}, .block = {128, 1, 1}}, kernel, x, y);
  Words expected;
  for (std::uint32_t steps = 0; steps < 9; ++steps) {
    Words sums = column_sums(steps);
    expected.insert(expected.end(), sums.begin(), sums.end());
  }
  EXPECT_EQ(download<std::uint32_t>(y.buffer), expected);
}

TEST_F(TracedPipeline, RolesPassStagesThroughMbarriers) {
  test::DeviceVector x = vector(u32, counting(1024));
  for (std::uint32_t steps : {0U, 1U, 2U, 8U}) {
    test::DeviceVector n = vector(u32, Words{steps});
    test::DeviceVector y = vector(u32, Words(128, 99));
    auto kernel = [](const Tensor& in, const Tensor& count, const Tensor& out) {
      Tensor ring = shared(u32, Layout(Shape{Int(128), Int(2)}), 128);
      Value t = thread_idx().x - 32;
      Value end = count(0).load().to(s32);
      BulkPipeline stages(2, 4);
      roles(role(1, 0,
                 [&] {
                   stages.produce(end,
                                  [&](const Value& i, const Value& stage, const Mbarrier& full) {
                                    full.arrive_expect_tx(512);
                                    bulk_load(ring(0, stage), in(i * 128), 512, full);
                                  });
                 }),
            role(4, 0, [&] {
              Var sum(u32, 0);
              stages.consume(
                  end, [&](const Value&, const Value& stage) { sum += ring(t, stage).load(); });
              out(t) = sum;
            }));
    };
    run({.grid = {1, 1, 1}, .block = {160, 1, 1}}, kernel, x, n, y);
    EXPECT_EQ(download<std::uint32_t>(y.buffer), column_sums(steps)) << steps << " steps";
  }
}

TEST_F(TracedPipeline, WarpsThatCopyFillStagesForOthers) {
  constexpr int kRows = 8, kColumns = 32, kCopiers = 64;
  test::DeviceVector x = vector(u32, counting(kRows * kColumns * 9));
  for (std::uint32_t steps : {0U, 1U, 3U, 9U}) {
    test::DeviceVector n = vector(u32, Words{steps});
    test::DeviceVector y = vector(u32, Words(kColumns, 99));
    auto kernel = [](const Tensor& in, const Tensor& count, const Tensor& out) {
      Tensor ring = shared(u32, make_row_major(Shape{3, kRows * kColumns}), 1024);
      auto tile = [&](const Value& stage) {
        return MatrixTile(ring(stage, _), kRows, kColumns, TensorSwizzle::b128);
      };
      Tensor rows = in.with_layout(make_row_major(Shape{kRows * 9, kColumns}));
      Value end = count(0).load().to(s32).assume({1, 0, 9});
      BulkPipeline stages = BulkPipeline::of_copies(3, kCopiers, 1);
      auto copy = [&] {
        StageCursor at = stages.cursor();
        for_(end, [&](const Value& i) {
          Mbarrier full = stages.acquire(at);
          Shape shape{kRows, kColumns};
          load_tile_async(tile(at.stage()), local_tile(rows, shape, coord(i, 0)),
                          in_bounds(rows, shape, coord(i, 0)), thread_idx().x - 32, kCopiers);
          full.arrive_after_copies();
          at.advance();
        });
        cp_async_wait_all();
      };
      auto add = [&] {
        Var sum(u32, 0);
        stages.consume(end, [&](const Value&, const Value& stage) {
          for (int row = 0; row < kRows; ++row)
            sum += tile(stage).element(row, thread_idx().x.assume({1, 0, 31})).load();
        });
        out(thread_idx().x) = sum;
      };
      roles(role(1, 0, add), role(kCopiers / 32, 0, copy));
    };
    run({.grid = {1, 1, 1}, .block = {32 + kCopiers, 1, 1}}, kernel, x, n, y);
    Words sums(kColumns, 0);
    for (std::uint32_t i = 0; i < kRows * kColumns * steps; ++i)
      sums[i % kColumns] += i;
    EXPECT_EQ(download<std::uint32_t>(y.buffer), sums) << steps << " steps";
  }
}

}  // namespace
}  // namespace tilewright
