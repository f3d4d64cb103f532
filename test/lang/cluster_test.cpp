// SPDX-License-Identifier: Apache-2.0
// Clusters as PTX: ranks, peers' shared memory, the cluster barrier.
#include "tilewright/cluster.h"

#include "lang/trace_fixture.h"
#include "tilewright/control.h"
#include "tilewright/fragment.h"

namespace tilewright {
namespace {

using test::error_of;
using test::vector_arg;

TraceOptions cluster_of(int blocks, std::string name) {
  return {.name = std::move(name),
          .target = {90, '\0'},
          .block = {128, 1, 1},
          .cluster = {blocks, 1, 1}};
}

TEST(Cluster, ExchangesThroughPeersSharedMemory) {
  auto kernel = [](const Tensor& x, const Tensor& y) {
    Tensor sums = shared(f32, Layout(Shape{Int(2)}));
    Value mine = thread_idx().x;
    if_(mine == 0, [&] {
      for (int rank = 0; rank < 2; ++rank)
        peer(sums, rank)(cluster_rank()) = x(block_idx().x);
    });
    cluster_barrier();
    if_(mine == 0, [&] { y(block_idx().x) = sums(0) + sums(1); });
  };
  Traced traced =
      trace(cluster_of(2, "cluster_exchange"), kernel, vector_arg(f32, 8), vector_arg(f32, 8));
  test::expect_golden("lang/cluster_exchange.ptx", ptx::print(traced.module()));
}

TEST(Cluster, ReadsVectorsOfAPeerAndItsPlace) {
  auto kernel = [](const Tensor& y) {
    Tensor tile = shared(f32, Layout(Shape{Int(512)}));
    Value i = thread_idx().x * 4;
    store(tile(i), load(y(i), 4));
    cluster_arrive();
    cluster_wait();
    Value next = (cluster_rank() + 1) % cluster_size();
    store(y(i), load(peer(tile, next)(i), 4));
    cluster_arrive_relaxed();
    cluster_wait();
    y(0) = (cluster_block_idx().x + cluster_dim().x).to(f32);
  };
  Traced traced =
      trace(TraceOptions{.name = "cluster_read", .target = {90, '\0'}, .block = {128, 1, 1}},
            kernel, vector_arg(f32, 512));
  test::expect_golden("lang/cluster_read.ptx", ptx::print(traced.module()));
}

TEST(Cluster, FoldsAKnownShape) {
  auto kernel = [](const Tensor&) {
    EXPECT_EQ(cluster_size().constant(), 4);
    EXPECT_EQ(cluster_dim().x.constant(), 4);
    EXPECT_EQ(cluster_dim().y.constant(), 1);
    EXPECT_EQ(cluster_block_idx().y.constant(), 0);
  };
  trace(cluster_of(4, "known"), kernel, vector_arg(f32, 4));
}

TEST(Cluster, RefusesWhatIsNoPeer) {
  auto beyond = [](const Tensor&) { peer(shared(f32, Layout(Shape{Int(2)})), 2); };
  EXPECT_EQ(error_of(cluster_of(2, "mistake"), beyond, vector_arg(f32, 1)),
            "peer: rank 2 in a cluster of 2 blocks; ranks count from 0");
  auto global = [](const Tensor& x) { peer(x, 0); };
  EXPECT_EQ(error_of(cluster_of(2, "mistake"), global, vector_arg(f32, 1)),
            "peer: the tensor is in global memory; it takes one in the block's own shared memory");
  auto real = [](const Tensor& x) { peer(shared(f32, Layout(Shape{Int(2)})), x(0)); };
  EXPECT_EQ(error_of(cluster_of(2, "mistake"), real, vector_arg(f32, 1)),
            "peer: the rank has type f32; it must be s32 or u32");
}

TEST(Cluster, RefusesABarrierThatPartOfAWarpSkips) {
  auto kernel = [](const Tensor&) { if_(thread_idx().x < 3, [] { cluster_barrier(); }); };
  EXPECT_EQ(error_of(cluster_of(2, "mistake"), kernel, vector_arg(f32, 1)),
            "cluster_barrier: all threads of the warp must execute it, but it stands under a "
            "condition that differs between threads; move it out of that if_ or loop, or make the "
            "condition uniform (a Var takes Uniformity::block or warp)");
}

}  // namespace
}  // namespace tilewright
