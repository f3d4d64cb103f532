// SPDX-License-Identifier: Apache-2.0
// The second kernel of lesson 9: the same product by mma.sync, its stages filled by the copy
// engine.
#pragma once

#include "tilewright/tilewright.h"

#include <algorithm>
#include <vector>

namespace lesson {

namespace tw = tilewright;

// As in mma_gemm.h, but one thread of a warp of its own fills the stages (TMA, sm_90a): the warps
// that multiply issue no copies, and wait for stages instead of for one another. The grid is
// persistent.
struct MmaTmaGemm {
  int tile_m = 128, tile_n = 256, stages = 4;
  int warps_m = 2, warps_n = 4;
  int band = 8;  // of tiles, for the L2 cache

  static constexpr int kTileK = 64;  // 128 bytes of bf16: one swizzled row
  static constexpr int kSteps = kTileK / 16;
  static constexpr int kCopyWarps = 4;  // setmaxnreg takes whole warpgroups

  int warps() const { return warps_m * warps_n; }
  int threads() const { return (warps() + kCopyWarps) * 32; }
  std::int64_t stage_bytes() const { return std::int64_t{tile_m + tile_n} * kTileK * 2; }
  std::int64_t smem_bytes() const { return stages * stage_bytes(); }
  tw::TensorMapArg map(int rows) const {
    return tw::tile_map(tw::bf16, rows, kTileK, tw::TensorSwizzle::b128);
  }

  struct Step {  // the operands of one step of 16 along k
    std::vector<tw::Fragment> a, b;
    void assign(const Step& from) const {
      for (std::size_t i = 0; i < a.size(); ++i)
        a[i].assign(from.a[i]);
      for (std::size_t i = 0; i < b.size(); ++i)
        b[i].assign(from.b[i]);
    }
  };

  void operator()(const tw::TensorMapParam& a, const tw::TensorMapParam& b, const tw::Tensor& c,
                  const tw::Value& m, const tw::Value& n, const tw::Value& k_extent) const {
    auto ring = [&](int rows, std::int64_t offset_bytes) {
      return tw::dynamic_shared(tw::bf16, tw::make_row_major(tw::Shape{stages, rows * kTileK}),
                                offset_bytes);
    };
    tw::Tensor ring_a = ring(tile_m, 0), ring_b = ring(tile_n, stages * tile_m * kTileK * 2);
    auto tile_a = [&](const tw::Value& stage) {
      return tw::MatrixTile(ring_a(stage, tw::_), tile_m, kTileK, tw::TensorSwizzle::b128);
    };
    auto tile_b = [&](const tw::Value& stage) {
      return tw::MatrixTile(ring_b(stage, tw::_), tile_n, kTileK, tw::TensorSwizzle::b128);
    };
    tw::BulkPipeline pipe(stages, warps());
    tw::Value k_tiles = (k_extent + (kTileK - 1)) / kTileK;
    tw::TileScheduler tiles((m + (tile_m - 1)) / tile_m, (n + (tile_n - 1)) / tile_n, band);
    auto each_tile = [&](auto body) { tiles.for_each(tw::block_idx().x, tw::grid_dim().x, body); };

    auto produce = [&] {
      tw::if_(tw::warp_idx() == warps() && tw::elect_one(), [&] {
        tw::StageCursor fill = pipe.cursor();
        each_tile([&](const tw::Value& i, const tw::Value& j) {
          tw::for_(k_tiles, [&](const tw::Value& kt) {
            tw::Mbarrier full = pipe.acquire(fill);
            full.arrive_expect_tx(stage_bytes());
            tw::load_tile(tile_a(fill.stage()), a, {kt * kTileK, i * tile_m}, full);
            tw::load_tile(tile_b(fill.stage()), b, {kt * kTileK, j * tile_n}, full);
            fill.advance();
          });
        });
      });
    };

    auto consume = [&] {
      tw::Value thread = tw::thread_idx().x.assume({1, 0, warps() * 32 - 1});
      tw::TiledMma mma(tw::mma_atom(tw::bf16), warps_m, warps_n);
      auto read = [&](const tw::Value& stage, int k) {  // braces keep the order
        return Step{tw::load_fragments_a(mma, tile_a(stage), k, thread),
                    tw::load_fragments_b(mma, tile_b(stage), k, thread)};
      };
      tw::StageCursor full = pipe.cursor(), done = pipe.cursor();
      each_tile([&](const tw::Value& i, const tw::Value& j) {
        tw::Fragment sums = tw::make_fragment_c(mma, tw::f32, tile_m, tile_n);
        sums.fill(0.0f);
        pipe.wait_full(full);
        Step first = read(full.stage(), 0);
        tw::for_(k_tiles, [&](const tw::Value& kt) {
          tw::Value stage = full.stage();
          Step now = first;
          for (int k = 0; k < kSteps; ++k) {
            Step next = k + 1 < kSteps ? read(stage, k + 1) : first;
            if (k + 1 == kSteps) {  // the next stage's first step, before the last is multiplied
              full.advance();
              tw::if_(kt + 1 < k_tiles, [&] {
                pipe.wait_full(full);
                first.assign(read(full.stage(), 0));
              });
            }
            tw::multiply(mma, sums, now.a, now.b);
            now = next;
          }
          pipe.release(done);  // all that was read has been multiplied: no copy can overtake it
          done.advance();
        });
        tw::Shape tile{tile_m, tile_n};
        tw::IntTuple at = tw::coord(i, j);
        tw::store_fragment_c(mma, sums.to(tw::bf16), tw::local_tile(c, tile, at),
                             tw::in_bounds(c, tile, at), thread);
      });
    };
    tw::roles(tw::role(warps(), 240, consume), tw::role(kCopyWarps, 24, produce));
  }

  // Host side.
  tw::Traced trace(tw::ptx::Target target, const tw::View& c) const {
    tw::TraceOptions options{.name = "mma_tma_gemm",
                             .target = target,
                             .block = {threads(), 1, 1},
                             .min_blocks_per_sm = 1};
    tw::ScalarArg extent{tw::s32, {1, 1, 1 << 30}};
    return tw::trace(options, *this, map(tile_m), map(tile_n), tw::tensor_arg(c), extent, extent,
                     extent);
  }
  tw::PreparedLaunch prepare(const tw::Kernel& kernel, const tw::View& a, const tw::View& b,
                             const tw::View& c, int multiprocessors) const {
    auto m = static_cast<int>(a.shape[0]), n = static_cast<int>(b.shape[0]);
    tw::Parameters parameters;
    tw::pack(parameters, kernel.device(), map(tile_m), a);
    tw::pack(parameters, kernel.device(), map(tile_n), b);
    tw::pack(parameters, tw::tensor_arg(c), c);
    parameters.add(m).add(n).add(static_cast<int>(a.shape[1]));
    int count = (m + tile_m - 1) / tile_m * ((n + tile_n - 1) / tile_n);
    return kernel.prepare({.grid = {std::min(multiprocessors, count), 1, 1},
                           .block = {threads(), 1, 1},
                           .dynamic_smem_bytes = smem_bytes()},
                          std::move(parameters));
  }
};

}  // namespace lesson
