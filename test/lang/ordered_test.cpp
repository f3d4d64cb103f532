// SPDX-License-Identifier: Apache-2.0
// Strong loads, stores and fences as PTX.
#include "tilewright/ordered.h"

#include "lang/trace_fixture.h"

namespace tilewright {
namespace {

using test::error_of;
using test::expect_ptx;
using test::vector_arg;

TEST(Ordered, SpellsScopeSpaceAndWidth) {
  auto kernel = [](const Tensor& words, const Tensor& halves) {
    Tensor flags = shared(u64, Layout(Shape{Int(4)}));
    store_release(words(1), load_acquire(words(0), Scope::gpu), Scope::sys);
    store_relaxed(flags(1), load_relaxed(flags(0), Scope::cta), Scope::cta);
    store_relaxed(halves(1), load_relaxed(halves(0), Scope::cluster), Scope::cluster);
    fence_sc(Scope::gpu);
    fence(Scope::sys);
  };
  expect_ptx("ordered", {90, '\0'}, kernel, vector_arg(u32, 8), vector_arg(f16, 8));
}

TEST(Ordered, SpellsProxyFences) {
  auto kernel = [] {
    fence_async_proxy();
    fence_async_proxy(ProxySpace::global);
    fence_async_proxy(ProxySpace::shared);
    fence_async_proxy(ProxySpace::cluster);
    fence_mbarrier_init();
  };
  expect_ptx("ordered_proxy", {90, '\0'}, kernel);
}

TEST(Ordered, NeverSharesTwoLoads) {
  auto kernel = [](const Tensor& words) {
    words(1) = load_relaxed(words(0), Scope::gpu) + load_relaxed(words(0), Scope::gpu);
  };
  Traced traced = trace(TraceOptions{.name = "twice"}, kernel, vector_arg(u32, 2));
  std::string text = ptx::print(traced.module());
  std::size_t first = text.find("ld.relaxed");
  ASSERT_NE(first, std::string::npos);
  EXPECT_NE(text.find("ld.relaxed", first + 1), std::string::npos);
}

TEST(Ordered, RefusesAValueOfAnotherType) {
  auto kernel = [](const Tensor& x) { store_release(x(0), constant(f32, 1.0f), Scope::gpu); };
  EXPECT_EQ(error_of(kernel, vector_arg(u32, 1)).find("store_release: "), 0U);
}

}  // namespace
}  // namespace tilewright
