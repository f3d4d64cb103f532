// SPDX-License-Identifier: Apache-2.0
// Eviction policies and prefetches as PTX, and what is refused.
#include "tilewright/cache_policy.h"

#include "lang/trace_fixture.h"
#include "tilewright/bulk_copy.h"
#include "tilewright/fragment.h"

namespace tilewright {
namespace {

using test::error_of;
using test::expect_ptx;
using test::vector_arg;

TEST(CachePolicy, GoesWithLoadsStoresAndBulkCopies) {
  auto kernel = [](const Tensor& x, const Tensor& y) {
    Value stream = cache_policy(Eviction::first);
    Value keep = cache_policy(Eviction::last, 0.5);
    Tensor tile = shared(f32, Layout(Shape{64}));
    Mbarriers full;
    prefetch(x(64));
    prefetch(x(96), CacheLevel::l1);
    bulk_load(tile(0), x(0), 256, full[0], {.policy = keep});
    Fragment four = load(x(4), 4, {.policy = keep});
    Value one = x(8).load({.cache = Cache::no_allocate, .read_only = true, .policy = stream});
    store(y(4), four, {.cache = Cache::evict_first, .policy = stream});
    y(0).store(one, {.cache = Cache::evict_last});
    bulk_store(y(64), tile(0), 256, {.policy = stream});
  };
  expect_ptx("cache_policy", {90, '\0'}, kernel, vector_arg(f32, 128), vector_arg(f32, 128));
}

TEST(CachePolicy, RefusesWhatHasNoL2Lines) {
  EXPECT_EQ(error_of([] { cache_policy(Eviction::last, 1.5); }),
            "cache_policy: the fraction is 1.500000; it must be above 0 and at most 1");
  EXPECT_EQ(error_of([] {
              Tensor tile = shared(f32, Layout(Shape{64}));
              tile(0).load({.policy = cache_policy(Eviction::last)});
            }),
            "load: a policy of type b64 for shared memory; it must come from cache_policy(), for "
            "global memory that is not volatile");
  EXPECT_EQ(error_of(
                [](const Tensor& x) {
                  x(0).store(1,
                             {.cache = Cache::volatile_, .policy = cache_policy(Eviction::first)});
                },
                vector_arg(f32, 1)),
            "store: a policy of type b64 for volatile global memory; it must come from "
            "cache_policy(), for global memory that is not volatile");
  EXPECT_EQ(
      error_of([](const Tensor& x) { x(0).load({.policy = x(1).load()}); }, vector_arg(f32, 2)),
      "load: a policy of type f32 for global memory; it must come from cache_policy(), for "
      "global memory that is not volatile");
  EXPECT_EQ(error_of(
                [](const Tensor& x) {
                  Tensor tile = shared(f32, Layout(Shape{64}));
                  bulk_store(x(0), tile(0), 16, {.policy = x(1).load()});
                },
                vector_arg(f32, 4)),
            "bulk_store: a policy of type f32; it must come from cache_policy()");
  EXPECT_EQ(error_of([] { prefetch(shared(f32, Layout(Shape{64}))(0)); }),
            "prefetch: the element is in shared memory; it must be in global");
}

}  // namespace
}  // namespace tilewright
