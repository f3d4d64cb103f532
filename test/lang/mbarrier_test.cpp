// SPDX-License-Identifier: Apache-2.0
// Mbarriers as PTX, and what is refused.
#include "tilewright/mbarrier.h"

#include "lang/trace_fixture.h"
#include "tilewright/cluster.h"
#include "tilewright/control.h"
#include "tilewright/fragment.h"
#include "tilewright/sync.h"
#include "tilewright/thread.h"

namespace tilewright {
namespace {

using test::error_of;
using test::expect_ptx;
using test::vector_arg;

TEST(Mbarrier, SpellsItsLife) {
  auto kernel = [](const Tensor& stages) {
    Mbarriers full(2);
    if_(thread_idx().x == 0, [&] { full.init(1); });
    barrier();
    Value stage = stages(0);
    full[0].arrive();
    full[stage].arrive_expect_tx(512);
    full[1].expect_tx(stage);
    full[stage].wait(stage & 1);
    full[0].wait(0);
    if_(thread_idx().x == 0, [&] { full[0].invalidate(); });
  };
  expect_ptx("mbarrier", {90, '\0'}, kernel, vector_arg(s32, 1));
}

TEST(Mbarrier, WaitsForCopiesOnAmpere) {
  auto kernel = [](const Tensor& x) {
    Mbarriers full(1);
    Tensor tile = shared(f32, Layout(Shape{Int(512)}));
    if_(thread_idx().x == 0, [&] { full.init(128); });
    barrier();
    copy_async(tile(thread_idx().x * 4), x(thread_idx().x * 4), 16);
    full[0].arrive_after_copies();
    full[0].wait(0);
    x(thread_idx().x) = tile(127 - thread_idx().x);
  };
  expect_ptx("mbarrier_sm80", {80, '\0'}, kernel, vector_arg(f32, 512));
}

TEST(Mbarrier, ReachesPeers) {
  auto kernel = [](const Tensor& x) {
    Mbarriers full(1);
    Tensor sums = shared(f32, Layout(Shape{Int(4)}));
    Mbarrier theirs = full[0].peer(1);
    theirs.arrive();
    theirs.arrive_expect_tx(16);
    theirs.expect_tx(16);
    store_async(peer(sums, 1)(2), x(0).load(), theirs);
  };
  TraceOptions options{
      .name = "mbarrier_peer", .target = {90, '\0'}, .block = {128, 1, 1}, .cluster = {2, 1, 1}};
  Traced traced = trace(options, kernel, vector_arg(f32, 1));
  test::expect_golden("lang/mbarrier_peer.ptx", ptx::print(traced.module()));
}

TEST(Mbarrier, RefusesImpossibleNumbers) {
  EXPECT_EQ(error_of([] { Mbarriers(0); }), "Mbarriers: 0 of them; take at least 1");
  EXPECT_EQ(error_of([] { Mbarriers().init(0); }),
            "init: a mbarrier of 0 arrivals; a phase takes 1 to 1048575");
  EXPECT_EQ(error_of([] { Mbarriers()[0].arrive_expect_tx(1 << 20); }),
            "arrive_expect_tx: 1048576 bytes; a phase takes 0 to 1048575");
  EXPECT_EQ(error_of([] { Mbarriers()[0].wait(2); }), "wait: the parity is 2; it must be 0 or 1");
  EXPECT_EQ(error_of([] { Mbarriers()[0].wait(constant(f32, 1.0f)); }),
            "wait: the parity has type f32; it must be u32 or s32, 0 or 1");
}

TEST(Mbarrier, RefusesToWaitForAPeers) {
  EXPECT_EQ(error_of([] { Mbarriers()[0].peer(0).wait(0); }),
            "wait: the mbarrier is a peer's; only arrive() and expect_tx() reach other blocks");
}

TEST(Mbarrier, RefusesAnAsynchronousStoreAtHome) {
  auto kernel = [](const Tensor& x) {
    store_async(shared(f32, Layout(Shape{Int(4)}))(0), x(0).load(), Mbarriers()[0]);
  };
  EXPECT_EQ(error_of(kernel, vector_arg(f32, 1)),
            "store_async: an element of f32 in shared memory with a mbarrier in shared memory; it "
            "takes 32 or 64 bits, and both by peer()");
}

}  // namespace
}  // namespace tilewright
