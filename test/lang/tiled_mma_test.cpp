// SPDX-License-Identifier: Apache-2.0
// Thread-value layouts of tiled multiplications, and what is refused.
#include "tilewright/tiled_mma.h"

#include "lang/trace_fixture.h"
#include "tilewright/thread.h"

#include <map>

namespace tilewright {
namespace {

using test::error_of;
using test::vector_arg;

/// How many (thread, value) pairs hold each place of the tile.
std::map<std::int64_t, int> holders(const LayoutTV& tv) {
  std::map<std::int64_t, int> count;
  auto pairs = size(tv.layout).value();
  for (std::int64_t i = 0; i < pairs; ++i)
    ++count[tv.layout(Int(i)).value()];
  return count;
}

void expect_each_held(const LayoutTV& tv, int times) {
  std::map<std::int64_t, int> count = holders(tv);
  EXPECT_EQ(static_cast<std::int64_t>(count.size()), size(tv.tiler).value());
  EXPECT_EQ(count.rbegin()->first, size(tv.tiler).value() - 1);
  for (const auto& [place, n] : count)
    EXPECT_EQ(n, times) << place;
}

TEST(TiledMma, GroupsOfThreadsShareOperandsAndSplitSums) {
  for (Type type : {bf16, tf32, s8, f64}) {
    TiledMma mma(mma_atom(type), 2, 4);
    EXPECT_EQ(mma.threads(), 256);
    EXPECT_EQ(to_string(mma.tv_c().tiler), "(32,64)");
    expect_each_held(mma.tv_a(), 4);
    expect_each_held(mma.tv_b(), 2);
    expect_each_held(mma.tv_c(), 1);
  }
  TiledMma warpgroups(wgmma_atom(bf16, 64), 2, 1);
  EXPECT_EQ(to_string(warpgroups.tv_a().tiler), "(128,16)");
  expect_each_held(warpgroups.tv_a(), 128);
  expect_each_held(warpgroups.tv_b(), 256);
  expect_each_held(warpgroups.tv_c(), 1);
}

TEST(TiledMma, LaysAtomsSideBySide) {
  TiledMma mma(mma_atom(f16), 2, 2);
  EXPECT_EQ(to_string(mma.tv_c().layout),
            "(((4,8),(2,2)),((2,2),2)):(((64,1),(16,512)),((32,8),256))");
  EXPECT_EQ(to_string(mma.tv_a().layout), "(((4,8),(2,2)),(2,2,2)):(((64,1),(16,0)),(32,8,256))");
  EXPECT_EQ(to_string(mma.tv_b().layout),
            "(((4,8),(2,2)),((2,2),2)):(((64,1),(0,16)),((32,256),8))");
}

TEST(TiledMma, PartitionsHaveOneModeForEachRest) {
  auto kernel = [](const Tensor& x) {
    TiledMma mma(mma_atom(f16), 2, 2);
    Tensor tile = x.with_layout(make_row_major(Shape{64, 96}));
    EXPECT_EQ(to_string(partition_c(mma, tile, thread_idx().x).layout()),
              "(((2,2),2),2,3):(((1,768),8),3072,32)");
    EXPECT_EQ(to_string(partition_a(mma, tile, thread_idx().x).layout()),
              "((2,2,2),2,6):((1,768,8),3072,16)");
    EXPECT_EQ(to_string(partition_b(mma, tile, thread_idx().x).layout()),
              "(((2,2),2),2,6):(((1,8),768),3072,16)");
  };
  TraceOptions options{.name = "partition", .target = {90, 'a'}, .block = {128, 1, 1}};
  trace(options, kernel, vector_arg(f16, 64 * 96));
}

TEST(TiledMma, RefusesMistakes) {
  auto tile = [](const Tensor& x, int m, int n) {
    return x.with_layout(make_row_major(Shape{m, n}));
  };
  TensorArg arg = vector_arg(bf16, 4096);
  EXPECT_EQ(error_of([] { TiledMma(mma_atom(bf16), 0, 1); }),
            "TiledMma: 0 x 1 groups of threads; take at least 1 x 1");
  EXPECT_EQ(error_of(
                [&](const Tensor& x) {
                  partition_c(TiledMma(mma_atom(bf16), 2, 2), tile(x, 48, 32), thread_idx().x);
                },
                arg),
            "partition_c: the tile (48,32):(32,1) is not a multiple of the (32,32) elements that "
            "the threads cover; choose a tile of whole multiples");
  EXPECT_EQ(error_of([] { make_fragment_c(TiledMma(mma_atom(bf16), 2, 2), f32, 32, 40); }),
            "make_fragment_c: a tile of 40; it takes multiples of 32");
  auto shared_tile = [](Type type) {
    return MatrixTile(shared(type, Layout(Shape{2048}), 1024), 16, 128 / bytes(type),
                      TensorSwizzle::b128);
  };
  EXPECT_EQ(error_of([&] {
              load_fragments_a(TiledMma(wgmma_atom(bf16, 64), 1, 1), shared_tile(bf16), 0,
                               thread_idx().x);
            }),
            "load_fragments_a: for mma.sync of 8- to 32-bit types; wgmma() reads tiles itself");
  EXPECT_EQ(error_of([&] {
              load_fragments_a(TiledMma(mma_atom(bf16), 1, 1), shared_tile(bf16), 4,
                               thread_idx().x);
            }),
            "load_matrix_a: rows from 0 and columns from 64 on of a tile of 16 x 64 of bf16; 16 "
            "rows and 32 bytes must lie inside, and only 16-bit types may be transposed");
  EXPECT_EQ(error_of([&] {
              TiledMma mma(mma_atom(bf16), 1, 1);
              auto a = load_fragments_a(mma, shared_tile(bf16), 0, thread_idx().x);
              multiply(mma, Fragment(f32, 4), a, a);
            }),
            "multiply: 4 sums for 1 fragments A and 1 fragments B of mma.sync; it takes 8 sums for "
            "each pair");
  EXPECT_EQ(error_of([&](const Tensor& x) { load_fragments(tile(x, 8, 8)(_, 0)); }, arg),
            "load_fragments: a part of shape (8); give (values, rest), a partition at one step "
            "along k");
  EXPECT_EQ(error_of(
                [&](const Tensor& x) {
                  TiledMma mma(mma_atom(bf16), 2, 2);
                  Tensor c = tile(x, 32, 32);
                  store_fragment_c(mma, Fragment(f32, 8), c,
                                   in_bounds(c, Shape{32, 32}, coord(0, 0)), thread_idx().x);
                },
                arg),
            "store_fragment_c: 8 sums of f32 for a part of shape (((2,2),2),1,1) and type bf16; "
            "both must be equal");
  EXPECT_EQ(
      error_of(
          [&](const Tensor& x) {
            Tensor from = tile(x, 16, 32);
            load_tile_async(shared_tile(bf16), from, in_bounds(from, Shape{16, 32}, coord(0, 0)));
          },
          arg),
      "load_tile_async: a source of (16,32) and type bf16 for a tile of 16 x 64 of bf16 by "
      "128 threads; the shapes must be equal, and all threads take 16 bytes each of whole "
      "groups of 8 rows");
}

}  // namespace
}  // namespace tilewright
