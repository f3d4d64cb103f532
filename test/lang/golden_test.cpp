// SPDX-License-Identifier: Apache-2.0
// The PTX of one construct each, in test/golden/lang: a refactoring changes none of it.
#include "golden.h"

#include "tilewright/control.h"
#include "tilewright/copy.h"
#include "tilewright/fragment.h"
#include "tilewright/inline_ptx.h"
#include "tilewright/module.h"
#include "tilewright/sync.h"
#include "tilewright/thread.h"
#include "tilewright/trace.h"

#include <gtest/gtest.h>
#include <string>

namespace tilewright {
namespace {

const TensorArg kVector{f32, Shape{256}, Stride{1}, 16};
const TensorArg kHalves{f16, Shape{64, 64}, Stride{64, 1}, 16};
const TensorArg kBytes{u8, Shape{256}, Stride{1}, 16};

Int dynamic(std::int64_t divisor = 1) { return Int::symbol(0, {divisor, 0, 1 << 30}); }

template <class Body, class... A>
void expect_ptx(const std::string& name, const Body& body, const A&... args) {
  Traced traced = trace({.name = "k", .block = {32, 1, 1}}, body, args...);
  test::expect_golden("lang/" + name + ".ptx", ptx::print(traced.module()));
}

TEST(Golden, IfElse) {
  expect_ptx(
      "if_else",
      [](const Tensor& t, const Value& n) {
        Value i = thread_idx().x;
        if_(i < n, [&] { t(i) = 1; }).else_([&] { t(i) = 2; });
      },
      kVector, ScalarArg{s32, {}});
}

TEST(Golden, IfOfAConstant) {
  expect_ptx(
      "if_constant",
      [](const Tensor& t) {
        if_(true, [&] { t(0) = 1; }).else_([&] { t(0) = 2; });
        if_(thread_idx().x < 32, [&] { t(1) = 3; });
      },
      kVector);
}

TEST(Golden, ForWithABreak) {
  expect_ptx(
      "for_break",
      [](const Tensor& t, const Value& n) {
        Var sum(f32, 0);
        for_(2, n, 3, [&](const Value& i) {
          sum += t(i).load();
          if_(sum > 100, [] { break_(); });
        });
        t(0) = sum;
      },
      kVector, ScalarArg{s32, {}});
}

TEST(Golden, While) {
  expect_ptx(
      "while",
      [](const Tensor& t, const Value& n) {
        Var left(n);
        while_([&] { return left > 0; }, [&] { left -= 2; });
        t(0) = left.to(f32);
      },
      kVector, ScalarArg{s32, {}});
}

TEST(Golden, VarSnapshotsAndResultsThatTheyTakeOver) {
  expect_ptx(
      "var",
      [](const Tensor& t, const Value& x) {
        Var v(x * 2);  // the product is made in v
        Value old = v;
        v = old + 1;
        v += x;
        t(0) = old + v;
      },
      kVector, ScalarArg{f32, {}});
}

TEST(Golden, CommonSubexpressionsByRegion) {
  expect_ptx(
      "common_subexpressions",
      [](const Tensor& t, const Value& n) {
        Value i = thread_idx().x;
        t(0) = (i * n).to(f32);
        if_(i < n, [&] {
          t(1) = (i * n).to(f32);  // shared with the outer one
          t(2) = (i / n).to(f32);
        });
        t(3) = (i / n).to(f32);  // the inner one may not have run
      },
      kVector, ScalarArg{s32, {}});
}

TEST(Golden, ConstantsFoldAndGatherInAddresses) {
  expect_ptx(
      "constants",
      [](const Tensor& t) {
        Value i = thread_idx().x;
        t(i + 1) = constant(f32, 2) * 3 + 1;
        t((i + 2) * 4 - 5) = 0;
        t(i / 32) = (i % 64).to(f32);  // by bounds: 0 and i
        t(i * 4 / 2 % 16) = 1;
      },
      kVector);
}

TEST(Golden, VectorsAsAlignmentAllows) {
  expect_ptx(
      "vectors",
      [](const Tensor& t) {
        Value i = thread_idx().x;
        store(t(i * 4), load(t(i * 4 + 128), 4));
        store(t(i * 2), load(t(i * 2), 2));
        store(t(i), load(t(i), 2));
      },
      kVector);
}

TEST(Golden, CacheOperators) {
  expect_ptx(
      "cache_operators",
      [](const Tensor& t) {
        Fragment a = load(t(0), 4, {.cache = Cache::streaming});
        store(t(4), a, {.cache = Cache::global});
        store(t(8), load(t(12), 4, {.cache = Cache::no_allocate, .read_only = true}));
        store(t(16), load(t(20), 4, {.cache = Cache::volatile_}), {.cache = Cache::volatile_});
      },
      kVector);
}

TEST(Golden, PredicatedLoadsAndStores) {
  expect_ptx(
      "predicated",
      [](const Tensor& t, const Value& n) {
        Value i = thread_idx().x;
        store_if(i < n, t(i * 4), load_if(i * 2 < n, t(i * 4), 4));
      },
      kVector, ScalarArg{s32, {}});
}

TEST(Golden, FragmentConversions) {
  expect_ptx(
      "fragment_conversions",
      [](const Tensor& h) {
        Fragment x = load(h(0, 0), 4).to(f32);
        store(h(1, 0), (x * 2.0f).to(f16));
        store(h(2, 0), x.to(bf16).part(0, 2).to(f32).to(f16));
      },
      kHalves);
}

TEST(Golden, FragmentElementsOfPackedWords) {
  expect_ptx(
      "fragment_elements",
      [](const Tensor& h, const Tensor& b) {
        Fragment f = load(h(0, 0), 2);
        Value low = f[0];
        f[0] = f[1].get();
        f[1] = low;
        store(h(0, 0), f);
        Fragment g = load(b(0), 4);
        g[2] = g[3].get();
        store(b(0), g);
      },
      kHalves, kBytes);
}

TEST(Golden, AsynchronousCopies) {
  expect_ptx(
      "cp_async",
      [](const Tensor& t, const Value& n) {
        Tensor s = shared(f32, make_row_major(Shape{128}));
        Value i = thread_idx().x;
        copy_async(s(i * 4), t(i * 4), 16);
        copy_async_if(i < n, s(i), t(i), 4);
        cp_async_commit();
        cp_async_wait(1);
        cp_async_wait_all();
        barrier();
      },
      kVector, ScalarArg{s32, {}});
}

TEST(Golden, ShufflesVotesAndReductions) {
  expect_ptx(
      "shuffles",
      [](const Tensor& t, const Value& x) {
        t(0) = warp_reduce(
            x, [](const Value& a, const Value& b) { return max(a, b); }, 4);
        t(1) = shuffle(x, 0, 8);
        t(2) = shuffle_up(x.to(f16), 1).to(f32);
        t(3) = shuffle_down(x.to(f64), 2).to(f32);
        t(4) = ballot(x > 0).to(f32);
      },
      kVector, ScalarArg{f32, {}});
}

TEST(Golden, NamedBarriersAndFences) {
  Traced traced = trace({.name = "k", .block = {128, 1, 1}}, [] {
    Group half = named_barrier(64);
    if_(warp_idx() < 2, [&] { barrier(half); });
    if_(warp_idx() >= 2, [&] { barrier_arrive(named_barrier(128)); });
    barrier(named_barrier(128));
    warp_barrier();
    fence(Scope::gpu);
    barrier();
  });
  test::expect_golden("lang/barriers.ptx", ptx::print(traced.module()));
}

TEST(Golden, TiledCopyOfARaggedTile) {
  TensorArg matrix{f16, Shape{dynamic(), 64}, Stride{64, 1}, 16};
  expect_ptx(
      "tiled_copy",
      [](const Tensor& source, const Tensor& destination) {
        const Shape tile{16, 64};
        TiledCopy how = tiled_copy(Universal{128}, f16, make_row_major(Shape{4, 8}), Shape{1, 8});
        Coord at = coord(block_idx().x, 0);
        copy_if(how, local_tile(source, tile, at), local_tile(destination, tile, at),
                in_bounds(source, tile, at));
      },
      matrix, matrix);
}

TEST(Golden, AddressesOfDynamicStrides) {
  TensorArg matrix{f32, Shape{dynamic(), dynamic()}, Stride{dynamic(4), 1}, 16};
  expect_ptx(
      "dynamic_strides",
      [](const Tensor& m) {
        Value i = thread_idx().x;
        store(m(i, i * 4), load(m(i + 1, i * 4), 4));
      },
      matrix);
}

TEST(Golden, IndicesOfSixtyFourBits) {
  TensorArg far{f32, Shape{8, 1 << 20}, Stride{std::int64_t{1} << 32, 1}, 4};
  expect_ptx(
      "wide_indices",
      [](const Tensor& m) {
        Value b = block_idx().x;
        m(b, b) = m(b, b + 3).load();
      },
      far);
}

TEST(Golden, SpecialRegistersAtTheEntry) {
  Traced traced = trace(
      {.name = "k"},
      [](const Tensor& t) {
        Index3 i = thread_idx();
        if_(i.x == 0, [&] { t(block_idx().y) = (i.y + block_dim().x).to(f32); });
        t(lane_idx()) = grid_dim().z.to(f32);
      },
      kVector);
  test::expect_golden("lang/special_registers.ptx", ptx::print(traced.module()));
}

TEST(Golden, InlinePtx) {
  expect_ptx(
      "inline_ptx",
      [](const Tensor& t, const Value& x) {
        auto twice = [&](const Value& v) {
          return inline_ptx(".reg .f32 %y; add.rn.f32 %y, $1, $1; max.f32 $0, %y, $1;", {f32},
                            {v})[0];
        };
        t(0) = twice(twice(x));
      },
      kVector, ScalarArg{f32, {}});
}

TEST(Golden, PackedAndMixedArithmetic) {
  expect_ptx(
      "arithmetic",
      [](const Tensor& t, const Value& n) {
        Value u = n.to(u32);
        t(0) = (n / 7 + n % 8).to(f32);
        t(1) = (u / 8u + u % 8u).to(f32);
        t(2) = (mul_hi(u, 12345u) >> 3).to(f32);
        t(3) = fma(n.to(f32), 2, 1) / 3;
        t(4) = select(n > 3, min(n, 9), -n).to(f32);
        t(5) = (n.bitcast(bf16x2) * n.bitcast(bf16x2)).bitcast(f32);
      },
      kVector, ScalarArg{s32, {}});
}

}  // namespace
}  // namespace tilewright
