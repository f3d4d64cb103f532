// SPDX-License-Identifier: Apache-2.0
// mma.sync, ldmatrix and stmatrix as PTX, fragment layouts, and what is refused.
#include "tilewright/mma.h"

#include "lang/trace_fixture.h"
#include "tilewright/control.h"
#include "tilewright/thread.h"

#include <set>

namespace tilewright {
namespace {

using test::error_of;
using test::expect_ptx;
using test::vector_arg;

TEST(Mma, MultipliesFragmentsInPlace) {
  auto kernel = [](const Tensor& y) {
    Tensor tile = shared(bf16, Layout(Shape{Int(16), Int(32)}, Stride{Int(32), Int(1)}));
    Value row = lane_idx() % 16;
    Value half = lane_idx() / 16 * 8;
    Fragment a = ldmatrix(tile(row, half), 4);
    Fragment b = ldmatrix(tile(row, 16), 2, Transposed::yes);
    Fragment c(f32, 4);
    c.fill(0.0f);
    mma(c, a, b);
    mma(c, a, b);
    store(y(thread_idx().x * 4), c);
  };
  expect_ptx("mma", {80, '\0'}, kernel, vector_arg(f32, 512));
}

TEST(Mma, SpellsEveryType) {
  auto kernel = [](const Tensor&) {
    auto one = [](Type type, Type sum) {
      MmaShape shape = mma_shape(type);
      Fragment a(type, shape.m * shape.k / 32);
      Fragment b(type, shape.n * shape.k / 32);
      Fragment c(sum, 4);
      mma(c, a, b);
    };
    one(f16, f32);
    one(f16, f16);
    one(tf32, f32);
    one(s8, s32);
    one(u8, s32);
    one(e4m3, f32);
    one(e5m2, f32);
  };
  expect_ptx("mma_types", {89, '\0'}, kernel, vector_arg(f32, 1));
}

TEST(Mma, TakesTheShapeOfDoublesFromTheFragments) {
  auto kernel = [](const Tensor&) {
    for (MmaShape shape : {MmaShape{8, 8, 4}, {16, 8, 4}, {16, 8, 8}, {16, 8, 16}}) {
      Fragment a(f64, shape.m * shape.k / 32), b(f64, shape.n * shape.k / 32);
      mma(Fragment(f64, shape.m * shape.n / 32), a, b);
    }
  };
  expect_ptx("mma_f64", {90, '\0'}, kernel, vector_arg(f32, 1));
}

TEST(Mma, StoresMatrices) {
  auto kernel = [](const Tensor&) {
    Tensor tile = shared(f16, Layout(Shape{Int(32), Int(8)}, Stride{Int(8), Int(1)}));
    stmatrix(tile(lane_idx(), 0), ldmatrix(tile(lane_idx(), 0), 4), Transposed::yes);
  };
  expect_ptx("mma_stmatrix", {90, '\0'}, kernel, vector_arg(f32, 1));
}

TEST(Mma, LayoutsCoverTheMatrices) {
  for (Type type : {f16, bf16, tf32, s8, e4m3, f64}) {
    MmaShape shape = mma_shape(type);
    struct Row {
      Layout layout;
      int size;
    };
    for (const Row& row :
         {Row{mma_layout_a(type), shape.m * shape.k}, Row{mma_layout_b(type), shape.n * shape.k},
          Row{mma_layout_c(), shape.m * shape.n}}) {
      std::set<std::int64_t> places;
      for (int i = 0; i < row.size; ++i)
        places.insert(row.layout(Int(i)).value());
      EXPECT_EQ(places.size(), static_cast<std::size_t>(row.size)) << name(type);
      EXPECT_EQ(*places.rbegin(), row.size - 1) << name(type);
    }
  }
  EXPECT_EQ(to_string(mma_layout_a(f16)), "((4,8),(2,2,2)):((32,1),(16,8,128))");
  EXPECT_EQ(to_string(mma_layout_b(f16)), "((4,8),(2,2)):((16,1),(8,64))");
  EXPECT_EQ(to_string(mma_layout_c()), "((4,8),(2,2)):((32,1),(16,8))");
}

TEST(Mma, RefusesFragmentsOfTheWrongSize) {
  auto kernel = [] { mma(Fragment(f32, 4), Fragment(bf16, 4), Fragment(bf16, 4)); };
  EXPECT_EQ(error_of(kernel),
            "mma: A, B and C hold 4 bf16, 4 bf16 and 4 f32; for A of bf16 they hold 8, 4 and 4, A "
            "and B of one type, C of f32");
  EXPECT_EQ(error_of([] { mma(Fragment(f32, 4), Fragment(f64, 4), Fragment(f64, 4)); }),
            "mma: A, B and C hold 4 f64, 4 f64 and 4 f32; for A of f64 they hold 4, 2 and 4, A and "
            "B of one type, C of f64");
  EXPECT_EQ(error_of([] { mma(Fragment(f32, 4), Fragment(s16, 4), Fragment(s16, 4)); }),
            "mma: not defined for s16; it takes f16, bf16, tf32, s8, u8, e4m3, e5m2 and f64");
  EXPECT_EQ(error_of([] {
              mma_layout_a(bf16, {16, 8, 8});
            }),
            "mma: no shape m16n8k8 for bf16; see mma_shape()");
}

TEST(Mma, RefusesRowsThatAreNotAligned) {
  auto odd = [] {
    Tensor tile = shared(f16, Layout(Shape{Int(8), Int(12)}, Stride{Int(12), Int(1)}));
    ldmatrix(tile(lane_idx() % 8, 0), 1);
  };
  EXPECT_EQ(error_of(odd),
            "ldmatrix: the row is known to be aligned to 8 bytes; it must be to 16: pad or "
            "swizzle by whole rows of 8 elements");
  EXPECT_EQ(error_of([](const Tensor& x) { ldmatrix(x(0), 3); }, vector_arg(f32, 64)),
            "ldmatrix: 3 matrices of f32 in global memory; it takes 1, 2 or 4 of elements of 8 "
            "to 32 bits in shared memory");
}

}  // namespace
}  // namespace tilewright
