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
    // One of three parts of a step's tiles begins its way to a stage: A, and the halves of B.
    constexpr int kParts = 3, kSteps = kTileK / 16;
    auto fetch = [&](const tw::Value& kt, const tw::Value& stage, int part) {
      int half = tile_n / 2;
      tw::MatrixTile to = part == 0 ? tile_a(stage) : tile_b(stage).part((part - 1) * half, half);
      const tw::Tensor& from = part == 0 ? a : b;
      tw::IntTuple at = part == 0 ? tw::coord(mine.m, kt) : tw::coord(mine.n * 2 + (part - 1), kt);
      tw::Shape tile{to.rows(), kTileK};
      tw::load_tile_async(to, tw::local_tile(from, tile, at), tw::in_bounds(from, tile, at));
    };
    struct Step {  // the operands of one step of 16 along k
      std::vector<tw::Fragment> a, b;
      void assign(const Step& from) const {
        for (std::size_t i = 0; i < a.size(); ++i)
          a[i].assign(from.a[i]);
        for (std::size_t i = 0; i < b.size(); ++i)
          b[i].assign(from.b[i]);
      }
    };
    auto read = [&](const tw::Value& stage, int k) {  // braces keep the order
      return Step{tw::load_fragments_a(mma, tile_a(stage), k, thread),
                  tw::load_fragments_b(mma, tile_b(stage), k, thread)};
    };

    tw::Fragment sums = tw::make_fragment_c(mma, tw::f32, tile_m, tile_n);
    sums.fill(0.0f);
    tw::Value k_tiles = tiles(extent(a, 1), kTileK);
    for (int s = 0; s < stages - 1; ++s) {
      tw::Value kt = tw::constant(tw::s32, s);
      for (int part = 0; part < kParts; ++part)
        tw::if_(kt < k_tiles, [&] { fetch(kt, kt, part); });
      tw::cp_async_commit();
    }
    tw::cp_async_wait(stages - 2);
    tw::barrier();
    tw::StageCursor at_stage(stages, 0), fill(stages, stages - 1);
    Step first = read(at_stage.stage(), 0);
    // begin main_loop
    tw::for_(k_tiles, [&](const tw::Value& kt) {
      tw::Value stage = at_stage.stage(), free = fill.stage();
      at_stage.advance();
      fill.advance();
      Step now = first;
      for (int k = 0; k < kSteps; ++k) {
        Step next = k + 1 < kSteps ? read(stage, k + 1) : first;
        if (k + 1 == kSteps) {  // the next stage's first step, before the last one is multiplied
          tw::if_(kt + 1 < k_tiles, [&] {
            tw::cp_async_wait(stages - 2);
            tw::barrier();
            first.assign(read(at_stage.stage(), 0));
          });
        }
        if (k < kParts)
          tw::if_(kt + (stages - 1) < k_tiles, [&] { fetch(kt + (stages - 1), free, k); });
        if (k == kParts - 1) tw::cp_async_commit();
        tw::multiply(mma, sums, now.a, now.b, tw::MmaOrder::b_outer);
        now = next;
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
