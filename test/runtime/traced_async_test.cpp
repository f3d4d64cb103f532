// SPDX-License-Identifier: Apache-2.0
// Mbarriers, bulk copies and the grid barrier of the language, run on the test device.
#include "runtime/traced_fixture.h"
#include "tilewright/bulk_copy.h"
#include "tilewright/cluster.h"
#include "tilewright/control.h"
#include "tilewright/fragment.h"
#include "tilewright/grid_barrier.h"
#include "tilewright/mbarrier.h"
#include "tilewright/ordered.h"
#include "tilewright/sync.h"
#include "tilewright/thread.h"

#include <cstdint>
#include <numeric>

namespace tilewright {
namespace {

using TracedAsync = test::TracedTest;
using Words = std::vector<std::uint32_t>;

Words counting(std::size_t n) {
  Words words(n);
  std::iota(words.begin(), words.end(), 0U);
  return words;
}

TEST_F(TracedAsync, BulkCopiesGoThroughSharedMemory) {
  test::DeviceVector x = vector(u32, counting(1024));
  test::DeviceVector y = vector(u32, Words(1024, 0));
  auto kernel = [](const Tensor& in, const Tensor& out) {
    Tensor tile = shared(u32, Layout(Shape{Int(256)}));
    Mbarriers full;
    Value first = block_idx().x * 256;
    Value t = thread_idx().x;
    if_(t == 0, [&] { full.init(1); });
    barrier();
    if_(t == 0, [&] {
      full[0].arrive_expect_tx(1024);
      bulk_load(tile(0), in(first), 1024, full[0]);
    });
    full[0].wait(0);
    tile(t) = tile(t) + 1u;
    fence_async_proxy(ProxySpace::shared);
    barrier();
    if_(t == 0, [&] {
      bulk_store(out(first), tile(0), 1024);
      bulk_commit();
      bulk_wait_read();
    });
  };
  run({.grid = {4, 1, 1}, .block = {256, 1, 1}}, kernel, x, y);
  Words expected = counting(1024);
  for (std::uint32_t& word : expected)
    ++word;
  EXPECT_EQ(download<std::uint32_t>(y.buffer), expected);
}

TEST_F(TracedAsync, BulkAddAccumulatesOverBlocks) {
  test::DeviceVector sums = vector(u32, Words(64, 1));
  auto kernel = [](const Tensor& out) {
    Tensor tile = shared(u32, Layout(Shape{Int(64)}));
    Value t = thread_idx().x;
    tile(t) = t.to(u32);
    fence_async_proxy(ProxySpace::shared);
    barrier();
    if_(t == 0, [&] {
      bulk_add(out(0), tile(0), 256);
      bulk_commit();
      bulk_wait();
    });
  };
  run({.grid = {3, 1, 1}, .block = {64, 1, 1}}, kernel, sums);
  Words expected = counting(64);
  for (std::uint32_t& word : expected)
    word = 1 + 3 * word;
  EXPECT_EQ(download<std::uint32_t>(sums.buffer), expected);
}

TEST_F(TracedAsync, BulkReductionsCombineOverBlocks) {
  test::DeviceVector least = vector(s32, std::vector<std::int32_t>(8, 100));
  test::DeviceVector bits = vector(u32, Words(8, 1));
  auto kernel = [](const Tensor& low, const Tensor& mask) {
    Tensor values = shared(s32, Layout(Shape{8}));
    Tensor ones = shared(u32, Layout(Shape{8}));
    Value t = thread_idx().x;
    values(t) = t - block_idx().x * 10;
    ones(t) = (constant(u32, 2) << block_idx().x);
    fence_async_proxy(ProxySpace::shared);
    barrier();
    if_(t == 0, [&] {
      bulk_min(low(0), values(0), 32);
      bulk_or(mask(0), ones(0), 32);
      bulk_commit();
      bulk_wait();
    });
  };
  run({.grid = {3, 1, 1}, .block = {8, 1, 1}}, kernel, least, bits);
  EXPECT_EQ(download<std::int32_t>(least.buffer),
            (std::vector<std::int32_t>{-20, -19, -18, -17, -16, -15, -14, -13}));
  EXPECT_EQ(download<std::uint32_t>(bits.buffer), Words(8, 15));
}

TEST_F(TracedAsync, AParityLoopWaitsForEachPhase) {
  test::DeviceVector x = vector(u32, counting(256));
  test::DeviceVector y = vector(u32, Words(32, 0));
  auto kernel = [](const Tensor& in, const Tensor& out) {
    Tensor tile = shared(u32, Layout(Shape{Int(32)}));
    Mbarriers full;
    Value t = thread_idx().x;
    if_(t == 0, [&] { full.init(1); });
    barrier();
    Var sum(u32, 0);
    for_(8, [&](const Value& i) {
      if_(t == 0, [&] {
        full[0].arrive_expect_tx(128);
        bulk_load(tile(0), in(i * 32), 128, full[0]);
      });
      full[0].wait(i & 1);
      sum += tile(t).load();
      barrier();
    });
    out(t) = sum;
  };
  run({.grid = {1, 1, 1}, .block = {32, 1, 1}}, kernel, x, y);
  Words expected(32);
  for (std::uint32_t i = 0; i < 256; ++i)
    expected[i % 32] += i;
  EXPECT_EQ(download<std::uint32_t>(y.buffer), expected);
}

TEST_F(TracedAsync, CpAsyncArrivesAtAMbarrier) {
  test::DeviceVector x = vector(u32, counting(128));
  test::DeviceVector y = vector(u32, Words(128, 0));
  auto kernel = [](const Tensor& in, const Tensor& out) {
    Tensor tile = shared(u32, Layout(Shape{Int(128)}));
    Mbarriers full;
    Value t = thread_idx().x;
    if_(t == 0, [&] { full.init(32); });
    barrier();
    copy_async(tile(t * 4), in(t * 4), 16);
    full[0].arrive_after_copies();
    full[0].wait(0);
    for (int i = 0; i < 4; ++i)
      out(t + 32 * i) = tile((t + 32 * i) ^ 127);
  };
  run({.grid = {1, 1, 1}, .block = {32, 1, 1}}, kernel, x, y);
  Words expected = counting(128);
  for (std::uint32_t& word : expected)
    word ^= 127;
  EXPECT_EQ(download<std::uint32_t>(y.buffer), expected);
}

TEST_F(TracedAsync, ClusterSumsByAsynchronousStores) {
  test::DeviceVector x = vector(f32, std::vector<float>{1, 2, 3, 4});
  test::DeviceVector y = vector(f32, std::vector<float>(4, 0));
  auto kernel = [](const Tensor& in, const Tensor& out) {
    Tensor sums = shared(f32, Layout(Shape{Int(2)}));
    Mbarriers full;
    Value t = thread_idx().x;
    if_(t == 0, [&] {
      full.init(1);
      fence_mbarrier_init();
      full[0].arrive_expect_tx(8);
    });
    cluster_barrier();
    if_(t < 2, [&] {
      store_async(peer(sums, t)(cluster_rank()), in(block_idx().x).load(), full[0].peer(t));
    });
    full[0].wait(0);
    if_(t == 0, [&] { out(block_idx().x) = sums(0) + sums(1); });
    cluster_barrier();
  };
  run({.grid = {4, 1, 1}, .block = {32, 1, 1}, .cluster = {2, 1, 1}}, kernel, x, y);
  EXPECT_EQ(download<float>(y.buffer), (std::vector<float>{3, 3, 7, 7}));
}

TEST_F(TracedAsync, MulticastReachesEveryBlockOfTheCluster) {
  test::DeviceVector x = vector(u32, counting(32));
  test::DeviceVector y = vector(u32, Words(64, 0));
  auto kernel = [](const Tensor& in, const Tensor& out) {
    Tensor tile = shared(u32, Layout(Shape{Int(32)}));
    Mbarriers full;
    Value t = thread_idx().x;
    if_(t == 0, [&] {
      full.init(1);
      fence_mbarrier_init();
      full[0].arrive_expect_tx(128);
    });
    cluster_barrier();
    if_(t == 0 && cluster_rank() == 0,
        [&] { bulk_load_multicast(tile(0), in(0), 128, full[0], 0b11); });
    full[0].wait(0);
    out(block_idx().x * 32 + t) = tile(t);
    cluster_barrier();
  };
  run({.grid = {2, 1, 1}, .block = {32, 1, 1}, .cluster = {2, 1, 1}}, kernel, x, y);
  Words expected = counting(64);
  for (std::uint32_t& word : expected)
    word %= 32;
  EXPECT_EQ(download<std::uint32_t>(y.buffer), expected);
}

TEST_F(TracedAsync, GridBarrierSeparatesRoundsAndResetsItself) {
  test::DeviceVector counter = vector(u32, Words{0});
  test::DeviceVector ring = vector(u32, Words(12, 1));  // three rounds of four blocks
  auto kernel = [](const Tensor& word, const Tensor& cells) {
    GridBarrier grid(word(0));
    Value b = block_idx().x;
    for (int round = 0; round < 2; ++round) {
      if_(thread_idx().x == 33, [&] {
        Value next = (b + 1) % 4;
        cells((round + 1) * 4 + b) = cells(round * 4 + b) + cells(round * 4 + next);
      });
      grid.sync();
    }
  };
  for (int launch = 0; launch < 2; ++launch) {
    run({.grid = {4, 1, 1}, .block = {64, 1, 1}, .cooperative = true}, kernel, counter, ring);
    EXPECT_EQ(download<std::uint32_t>(ring.buffer), (Words{1, 1, 1, 1, 2, 2, 2, 2, 4, 4, 4, 4}));
    EXPECT_EQ(download<std::uint32_t>(counter.buffer)[0] & 0x7fffffffU, 0U);
  }
}

TEST_F(TracedAsync, GridBarrierRefusesLaunchesThatAreNotCooperative) {
  test::DeviceVector counter = vector(u32, Words{0});
  auto kernel = [](const Tensor& word) { GridBarrier(word(0)).sync(); };
  try {
    run({.grid = {4, 1, 1}, .block = {64, 1, 1}}, kernel, counter);
    FAIL() << "nothing says that all blocks are resident";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(),
              "launch of traced: the kernel has a GridBarrier, which waits for all blocks; set "
              "LaunchConfig::cooperative, with which a grid that does not fit is refused");
  }
}

TEST_F(TracedAsync, CooperativeGridsThatDoNotFitAreRefused) {
  test::DeviceVector counter = vector(u32, Words{0});
  auto kernel = [](const Tensor& word) { GridBarrier(word(0)).sync(); };
  EXPECT_THROW(
      run({.grid = {100'000, 1, 1}, .block = {64, 1, 1}, .cooperative = true}, kernel, counter),
      Error);
}

}  // namespace
}  // namespace tilewright
