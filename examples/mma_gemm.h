// SPDX-License-Identifier: Apache-2.0
// The kernel of lesson 9: C = A B^T in bf16 with f32 sums, by mma.sync and cp.async.
#pragma once

#include "tilewright/tilewright.h"

#include <vector>

namespace lesson {

namespace tw = tilewright;

//   A (m,k)  (TILE_M,64) -----+  cp.async   +-------+-------+-------+-------+
//                             +-----------> | stage | stage | stage | stage |  shared memory,
//   B (n,k)  (TILE_N,64) -----+             +-------+-------+-------+-------+  swizzled rows
//                                               |  ldmatrix
//                                               v
//      warps of a block, (WARPS_M, WARPS_N)     A: (16,16) fragments, one a warp row
//        +----+----+----+----+                  B: (16,16) fragments, one a warp column
//        | 0  | 2  | 4  | 6  |                  mma.sync: every pair of them
//        +----+----+----+----+                  |
//        | 1  | 3  | 5  | 7  |  repeated to     v
//        +----+----+----+----+  TILE_M x TILE_N    sums in registers ---> C (m,n)
struct MmaGemm {
  int tile_m = 128, tile_n = 256, stages = 4;
  int warps_m = 2, warps_n = 4;
  int band = 8;  // of tiles, for the L2 cache

  static constexpr int kTileK = 64;  // 128 bytes of bf16: one swizzled row

  int threads() const { return warps_m * warps_n * 32; }
  std::int64_t smem_bytes() const { return std::int64_t{stages} * (tile_m + tile_n) * kTileK * 2; }

  void operator()(const tw::Tensor& a, const tw::Tensor& b, const tw::Tensor& c) const {
    auto extent = [](const tw::Tensor& t, int mode) {
      return tw::to_value(t.shape()[mode].value());
    };
    auto tiles = [&](const tw::Value& of, int tile) { return (of + (tile - 1)) / tile; };
    tw::TileScheduler order(tiles(extent(a, 0), tile_m), tiles(extent(b, 0), tile_n), band);
    tw::TileScheduler::Tile mine = order.tile(tw::block_idx().x);
    tw::Value thread = tw::thread_idx().x;
    tw::TiledMma mma(tw::mma_atom(tw::bf16), warps_m, warps_n);

    // The rings of stages, and one stage of each as a swizzled tile.
    auto ring = [&](int elems, std::int64_t offset_bytes) {
      return tw::dynamic_shared(tw::bf16, tw::make_row_major(tw::Shape{stages, elems}),
                                offset_bytes);
    };
    tw::Tensor ring_a = ring(tile_m * kTileK, 0);
    tw::Tensor ring_b = ring(tile_n * kTileK, std::int64_t{stages} * tile_m * kTileK * 2);
    auto tile_a = [&](const tw::Value& stage) {
      return tw::MatrixTile(ring_a(stage, tw::_), tile_m, kTileK, tw::TensorSwizzle::b128);
    };
    auto tile_b = [&](const tw::Value& stage) {
      return tw::MatrixTile(ring_b(stage, tw::_), tile_n, kTileK, tw::TensorSwizzle::b128);
    };
    auto fetch = [&](const tw::MatrixTile& to, const tw::Tensor& from, const tw::IntTuple& at) {
      tw::Shape tile{to.rows(), kTileK};
      tw::load_tile_async(to, tw::local_tile(from, tile, at), tw::in_bounds(from, tile, at));
    };

    // begin main_loop
    tw::Fragment sums = tw::make_fragment_c(mma, tw::f32, tile_m, tile_n);
    sums.fill(0.0f);
    tw::pipeline(
        stages, tiles(extent(a, 1), kTileK),
        [&](const tw::Value& kt, const tw::Value& stage) {
          fetch(tile_a(stage), a, tw::coord(mine.m, kt));
          fetch(tile_b(stage), b, tw::coord(mine.n, kt));
        },
        [&](const tw::Value&, const tw::Value& stage) {
          for (int k = 0; k < kTileK / mma.k(); ++k) {
            std::vector<tw::Fragment> rA = tw::load_fragments_a(mma, tile_a(stage), k, thread);
            std::vector<tw::Fragment> rB = tw::load_fragments_b(mma, tile_b(stage), k, thread);
            tw::multiply(mma, sums, rA, rB);
          }
        });
    // end main_loop

    tw::Shape tile{tile_m, tile_n};
    tw::IntTuple at = tw::coord(mine.m, mine.n);
    tw::store_fragment_c(mma, sums.to(tw::bf16), tw::local_tile(c, tile, at),
                         tw::in_bounds(c, tile, at), thread);
  }

  // Host side. The extents are part of the specialisation: whole tiles need no predicates.
  tw::Traced trace(tw::ptx::Target target, const tw::View& a, const tw::View& b,
                   const tw::View& c) const {
    tw::TraceOptions options{
        .name = "mma_gemm", .target = target, .block = {threads(), 1, 1}, .min_blocks_per_sm = 1};
    return tw::trace(options, *this, tw::tensor_arg(a), tw::tensor_arg(b), tw::tensor_arg(c));
  }
  tw::PreparedLaunch prepare(const tw::Kernel& kernel, const tw::View& a, const tw::View& b,
                             const tw::View& c) const {
    tw::Parameters parameters;
    for (const tw::View& view : {a, b, c})
      tw::pack(parameters, tw::tensor_arg(view), view);
    auto blocks = (c.shape[0] + tile_m - 1) / tile_m * ((c.shape[1] + tile_n - 1) / tile_n);
    return kernel.prepare({.grid = {static_cast<int>(blocks), 1, 1},
                           .block = {threads(), 1, 1},
                           .dynamic_smem_bytes = smem_bytes()},
                          std::move(parameters));
  }
};

}  // namespace lesson
