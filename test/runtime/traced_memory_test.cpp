// SPDX-License-Identifier: Apache-2.0
// Atomics, ordered accesses and clusters of the language, run on the test device.
#include "runtime/traced_fixture.h"
#include "tilewright/atomic.h"
#include "tilewright/cluster.h"
#include "tilewright/control.h"
#include "tilewright/sync.h"
#include "tilewright/thread.h"

#include <algorithm>
#include <cstdint>
#include <numeric>

namespace tilewright {
namespace {

using TracedMemory = test::TracedTest;
using Words = std::vector<std::uint32_t>;

TEST_F(TracedMemory, HistogramCountsEveryElement) {
  Words values(1000);
  std::iota(values.begin(), values.end(), 0U);
  test::DeviceVector x = vector(u32, values);
  test::DeviceVector bins = vector(u32, Words(8, 0));
  auto kernel = [](const Tensor& in, const Tensor& out) {
    Tensor counts = shared(u32, Layout(Shape{Int(8)}));
    Value t = thread_idx().x;
    if_(t < 8, [&] { counts(t) = 0; });
    barrier();
    Value i = block_idx().x * 128 + t;
    if_(i < 1000, [&] { red_add(counts(in(i).load() % 8), 1, {Scope::cta}); });
    barrier();
    if_(t < 8, [&] { red_add(out(t), counts(t)); });
  };
  run({.grid = {8, 1, 1}, .block = {128, 1, 1}}, kernel, x, bins);
  EXPECT_EQ(download<std::uint32_t>(bins.buffer), Words(8, 125));
}

TEST_F(TracedMemory, AtomicsGiveTheOldValue) {
  test::DeviceVector state = vector(u32, Words{10, 20, 0b1100, 0b1100, 0b1100, 5, 0, 7, 8});
  test::DeviceVector old = vector(u32, Words(9, 99));
  auto kernel = [](const Tensor& s, const Tensor& o) {
    o(0) = atomic_min(s(0), 3);
    o(1) = atomic_max(s(1), 30);
    o(2) = atomic_and(s(2), 0b0110);
    o(3) = atomic_or(s(3), 0b0110);
    o(4) = atomic_xor(s(4), 0b0110);
    o(5) = atomic_inc(s(5), 5);
    o(6) = atomic_dec(s(6), 5);
    o(7) = atomic_exch(s(7), 70);
    o(8) = atomic_cas(s(8), 8, 80);
  };
  run({.grid = {1, 1, 1}, .block = {1, 1, 1}}, kernel, state, old);
  EXPECT_EQ(download<std::uint32_t>(old.buffer), (Words{10, 20, 12, 12, 12, 5, 0, 7, 8}));
  EXPECT_EQ(download<std::uint32_t>(state.buffer), (Words{3, 30, 4, 14, 10, 0, 5, 70, 80}));
}

TEST_F(TracedMemory, VectorReductionsAddEveryElement) {
  test::DeviceVector sums = vector(f32, std::vector<float>(4, 0.5F));
  auto kernel = [](const Tensor& s) {
    Fragment ones(f32, 4);
    for (int i = 0; i < 4; ++i)
      ones[i] = static_cast<float>(i);
    red_add(s(0), ones);
  };
  run({.grid = {2, 1, 1}, .block = {64, 1, 1}}, kernel, sums);
  EXPECT_EQ(download<float>(sums.buffer), (std::vector<float>{0.5F, 128.5F, 256.5F, 384.5F}));
}

TEST_F(TracedMemory, AReleasedFlagPublishesData) {
  test::DeviceVector data = vector(u32, Words{0, 0});  // the data, then the flag
  test::DeviceVector out = vector(u32, Words{0});
  auto kernel = [](const Tensor& d, const Tensor& o) {
    if_(block_idx().x == 0, [&] {
      d(0) = 42;
      store_release(d(1), 1, Scope::gpu);
    }).else_([&] {
      while_([&] { return load_acquire(d(1), Scope::gpu) == 0; }, [] {});
      o(0) = d(0).load();
    });
  };
  run({.grid = {2, 1, 1}, .block = {1, 1, 1}, .cooperative = true}, kernel, data, out);
  EXPECT_EQ(download<std::uint32_t>(out.buffer), Words{42});
}

TEST_F(TracedMemory, ClusterSumsThroughPeersSharedMemory) {
  test::DeviceVector x = vector(f32, std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8});
  test::DeviceVector y = vector(f32, std::vector<float>(8, 0));
  auto kernel = [](const Tensor& in, const Tensor& out) {
    Tensor sums = shared(f32, Layout(Shape{Int(4)}));
    cluster_arrive_relaxed();
    Value mine = in(block_idx().x).load();
    cluster_wait();  // the peers have begun
    if_(thread_idx().x < 4, [&] { peer(sums, thread_idx().x)(cluster_rank()) = mine; });
    cluster_barrier();
    if_(thread_idx().x == 0, [&] {
      out(block_idx().x) =
          reduce(load(sums(0), 4), [](const Value& a, const Value& b) { return a + b; });
    });
  };
  run({.grid = {8, 1, 1}, .block = {32, 1, 1}, .cluster = {4, 1, 1}}, kernel, x, y);
  EXPECT_EQ(download<float>(y.buffer), (std::vector<float>{10, 10, 10, 10, 26, 26, 26, 26}));
}

}  // namespace
}  // namespace tilewright
