// SPDX-License-Identifier: Apache-2.0
// wgmma as PTX, its thread-value layouts, and what is refused.
#include "tilewright/wgmma.h"

#include "lang/trace_fixture.h"
#include "tilewright/control.h"
#include "tilewright/pipeline.h"
#include "tilewright/thread.h"

namespace tilewright {
namespace {

using test::error_of;
using test::expect_ptx;
using test::vector_arg;

MatrixTile tile(int rows, int columns, Type type = bf16,
                TensorSwizzle swizzle = TensorSwizzle::b128) {
  return {shared(type, make_row_major(Shape{rows * columns}), 1024), rows, columns, swizzle};
}

TEST(Wgmma, SpellsDescriptorsOfEachStep) {
  auto kernel = [](const Tensor& y) {
    MatrixTile a = tile(64, 64), b = tile(64, 64);
    Accumulator sums(f32, 64, 8);
    wgmma_fence();
    wgmma(sums, a.part(0, 64), b.part(warp_idx() / 4 * 8, 8), false);
    wgmma_commit();
    wgmma_wait();
    y(thread_idx().x) = sums.read()[0];
  };
  expect_ptx("wgmma", {90, 'a'}, kernel, vector_arg(f32, 128));
}

TEST(Wgmma, TakesTransposedOperandsAndRegisters) {
  auto kernel = [](const Tensor& y) {
    MatrixTile b = tile(16, 64).transposed();
    Fragment a(bf16, 8);
    a.fill(1);
    Accumulator sums(f32, 64, 64);
    wgmma_fence();
    wgmma(sums, a, b, false);
    wgmma(sums, tile(16, 64).transposed(), b, true);
    wgmma_commit();
    wgmma_wait();
    y(thread_idx().x) = sums.read()[31];
  };
  expect_ptx("wgmma_transposed", {90, 'a'}, kernel, vector_arg(f32, 128));
}

TEST(Wgmma, HasCuTesThreadValueLayouts) {
  EXPECT_EQ(to_string(wgmma_layout_c(16)), "((4,8,4),(2,2,2)):((128,1,16),(64,8,512))");
  EXPECT_EQ(to_string(wgmma_layout_a(bf16)), "((4,8,4),(2,2,2)):((128,1,16),(64,8,512))");
  EXPECT_EQ(to_string(wgmma_layout_a(tf32)), "((4,8,4),(1,2,2)):((64,1,16),(64,8,256))");
  EXPECT_EQ(to_string(wgmma_layout_a(s8)), "((4,8,4),(4,2,2)):((256,1,16),(64,8,1024))");
}

TEST(Wgmma, WaitsAreKnownOnEveryPath) {
  auto reads = [](auto&& part) {
    Accumulator sums(f32, 64, 8);
    MatrixTile a = tile(64, 16, bf16, TensorSwizzle::b32);
    MatrixTile b = tile(8, 16, bf16, TensorSwizzle::b32);
    wgmma_fence();
    auto add = [&] {
      wgmma(sums, a, b, true);
      wgmma_commit();
    };
    part(add);
    sums.read();
  };
  const char* early =
      "Accumulator: read while a wgmma may still be adding to it; call wgmma_commit() and "
      "wgmma_wait() first, on every path to here";
  EXPECT_EQ(error_of([&] { reads([](auto add) { add(); }); }), early);
  EXPECT_EQ(error_of([&] {
              reads([](auto add) {
                add();
                wgmma_wait(1);
              });
            }),
            early);
  EXPECT_EQ(error_of([&] {  // the wait may be skipped
              reads([](auto add) {
                add();
                if_(block_idx().x == 0, [] { wgmma_wait(); });
              });
            }),
            early);
  EXPECT_EQ(error_of([&] {  // the wait came before
              reads([](auto add) {
                wgmma_wait();
                add();
              });
            }),
            early);
  TraceOptions options{.name = "good", .target = {90, 'a'}, .block = {128, 1, 1}};
  auto good = [&](auto part) { EXPECT_NO_THROW(trace(options, [&] { reads(part); })); };
  good([](auto add) {
    for_(4, [&](const Value&) {
      add();
      wgmma_wait(1);
    });
    wgmma_wait();
  });
  good([](auto add) {
    for_(4, [&](const Value&) {
      add();
      wgmma_wait();
    });
  });
}

struct Mistake {
  const char* message;
  void (*body)();
};

const Mistake kMistakes[] = {
    {"wgmma: not defined for f32; it takes f16, bf16, tf32, e4m3, e5m2, s8 and u8",
     [] { wgmma_k(f32); }},
    {"Accumulator: 64 x 12 of f32; it takes f32, f16 or s32, m a multiple of 64, n of 8 up to 256 "
     "(s32: of 16 from 32 on)",
     [] { Accumulator(f32, 64, 12); }},
    {"Accumulator: 64 x 40 of s32; it takes f32, f16 or s32, m a multiple of 64, n of 8 up to 256 "
     "(s32: of 16 from 32 on)",
     [] { Accumulator(s32, 64, 40); }},
    {"Accumulator: read before any wgmma has written it; begin with wgmma(sums, a, b, false), or "
     "with fill()",
     [] { Accumulator(f32, 64, 8).read(); }},
    {"Accumulator: filled while a wgmma may still be adding to it; call wgmma_commit() and "
     "wgmma_wait() first, on every path to here",
     [] {
       Accumulator sums(f32, 64, 8);
       wgmma_fence();
       wgmma(sums, tile(64, 64), tile(8, 64), false);
       sums.fill(0.0f);
     }},
    {"wgmma: no wgmma_fence() lies before it; call it before the first wgmma, and after writing "
     "registers that one uses",
     [] {
       Accumulator sums(f32, 64, 8);
       wgmma_fence();
       sums.fill(0.0f);
       wgmma(sums, tile(64, 64), tile(8, 64), true);
     }},
    {"wgmma_wait: 8 pending groups; it takes 0 (all are done) to 7", [] { wgmma_wait(8); }},
    {"wgmma: A has 128 rows and the sums 64; give each warpgroup its part of A",
     [] {
       Accumulator sums(f32, 64, 8);
       wgmma(sums, tile(128, 64), tile(8, 64), false);
     }},
    {"wgmma: sums of 64 x 8 of f32 from A of 64 x 64 of bf16 and B of 16 x 64 of bf16; A is m x k, "
     "B is n x k, k a multiple of 16, sums of f32",
     [] {
       Accumulator sums(f32, 64, 8);
       wgmma(sums, tile(64, 64), tile(16, 64), false);
     }},
    {"wgmma: sums of 64 x 8 of f32 from A of 64 x 64 of bf16 and B of 8 x 64 of f16; A is m x k, B "
     "is n x k, k a multiple of 16, sums of f32",
     [] {
       Accumulator sums(f32, 64, 8);
       wgmma(sums, tile(64, 64), tile(8, 64, f16), false);
     }},
    {"wgmma: sums of 64 x 8 of f16 from A of 64 x 64 of bf16 and B of 8 x 64 of bf16; A is m x k, "
     "B "
     "is n x k, k a multiple of 16, sums of f32",
     [] {
       Accumulator sums(f16, 64, 8);
       wgmma(sums, tile(64, 64), tile(8, 64), false);
     }},
    {"wgmma: a transposed operand of s8; only 16-bit types may have neighbours along m or n, store "
     "the others along k",
     [] {
       Accumulator sums(s32, 64, 128);
       wgmma(sums, tile(64, 128, s8), tile(128, 128, s8).transposed(), false);
     }},
    {"wgmma: no wgmma_fence() lies before it; call it before the first wgmma, and after writing "
     "registers that one uses",
     [] {
       Accumulator sums(f32, 64, 8);
       wgmma(sums, tile(64, 64), tile(8, 64), false);
     }},
    {"wgmma: A has 4 elements a thread; 64 x 64 of bf16 are 32",
     [] {
       Accumulator sums(f32, 64, 8);
       wgmma(sums, Fragment(bf16, 4), tile(8, 64), false);
     }},
    {"wgmma: all threads of the warp must execute it, but it stands under a condition that differs "
     "between threads; move it out of that if_ or loop, or make the condition uniform (a Var takes "
     "Uniformity::block or warp)",
     [] {
       Accumulator sums(f32, 64, 8);
       if_(lane_idx() == 0, [&] { wgmma(sums, tile(64, 64), tile(8, 64), false); });
     }},
    {"matrix tile: 64 x 32 of bf16; with this swizzle it takes rows by 8 and columns by 64",
     [] { tile(64, 32); }},
    {"matrix tile: 64 x 64 of e2m1; it takes elements of 8 to 64 bits",
     [] { tile_map(e2m1, 64, 64, TensorSwizzle::b128); }},
    {"matrix tile: it is known to be aligned to 128 bytes; its swizzle needs 1024, as "
     "dynamic_shared() and its multiples have",
     [] { MatrixTile(shared(bf16, Layout(Shape{4096}), 128), 64, 64, TensorSwizzle::b128); }},
    {"matrix tile: 64 x 64 of bf16 in memory of 64 elements; allocate as many",
     [] { MatrixTile(shared(bf16, Layout(Shape{64}), 1024), 64, 64, TensorSwizzle::b128); }},
    {"matrix tile: 8 rows from 4 on of a tile of 64 x 64 of bf16; a part takes rows by 8 inside "
     "the tile",
     [] { tile(64, 64).part(4, 8); }},
    {"matrix tile: 16 rows from 56 on of a tile of 64 x 64 of bf16; a part takes rows by 8 inside "
     "the tile",
     [] { tile(64, 64).part(56, 16); }},
    {"matrix tile: 32 rows from 0 on of a transposed tile of 64 x 64 of bf16; a part takes rows by "
     "64 inside the tile",
     [] { tile(64, 64).transposed().part(0, 32); }},
    {"matrix tile: 8 rows from ? on of a tile of 64 x 64 of bf16; a part takes rows by 8 inside "
     "the "
     "tile",
     [] { tile(64, 64).part(warp_idx(), 8); }},
    {"matrix tile: element (64,0) lies outside of 64 x 64 of bf16; indices count from 0",
     [] { tile(64, 64).element(64, 0).load(); }},
    {"matrix tile: panel 2 of 2; panels count from 0, before the tile is transposed",
     [] { tile(64, 128).panel(2); }},
    {"store_matrix: 8 elements of f16 for a tile of 16 x 64 of bf16; it takes half as many 16-bit "
     "elements as the tile has columns, 16 columns at a time",
     [] { store_matrix(tile(16, 64), 0, Fragment(f16, 8)); }},
};

TEST(Wgmma, RefusesMistakes) {
  for (const Mistake& mistake : kMistakes)
    EXPECT_EQ(error_of(mistake.body), mistake.message);
}

TEST(Wgmma, RefusesMapsOfOtherTiles) {
  TensorMapArg narrow = tile_map(bf16, 64, 64, TensorSwizzle::b64);
  auto load = [](const TensorMapParam& map) {
    load_tile(tile(64, 64), map, {0, 0}, Mbarriers()[0]);
  };
  EXPECT_EQ(error_of(load, narrow),
            "load_tile: the map's box is 32 x 64 of bf16, a panel of the tile 64 x 64 of bf16, or "
            "their swizzles differ; make the map with tile_map() for the same tile");
}

TEST(MatrixTile, HasCuTesLayouts) {
  EXPECT_EQ(to_string(matrix_tile_layout(bf16, 64, 128, TensorSwizzle::b128)),
            "Sw<3,3,3> o 0 o (64,(64,2)):(64,(1,4096))");
  EXPECT_EQ(to_string(matrix_tile_layout(s8, 64, 64, TensorSwizzle::b64)),
            "Sw<2,4,3> o 0 o (64,(64,1)):(64,(1,4096))");
  EXPECT_EQ(to_string(matrix_tile_layout(tf32, 8, 16, TensorSwizzle::none)),
            "(8,(4,4)):(4,(1,32))");
  EXPECT_EQ(widest_swizzle(bf16, 96), TensorSwizzle::b64);
  EXPECT_EQ(widest_swizzle(e4m3, 16), TensorSwizzle::none);
}

TEST(Pipeline, CountsTheConsumersOfTheWholeCluster) {
  TraceOptions options{.name = "mistake", .target = {90, 'a'}, .block = {128, 1, 1}};
  EXPECT_EQ(error_of(options, [] { BulkPipeline(2, 4, 2); }),
            "BulkPipeline: for clusters of 2 blocks; TraceOptions::cluster has 1");
}

}  // namespace
}  // namespace tilewright
