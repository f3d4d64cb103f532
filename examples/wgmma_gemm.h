// SPDX-License-Identifier: Apache-2.0
// The kernel of lesson 11: C = A B^T in bf16 with f32 sums, persistent, warp-specialised, by wgmma.
#pragma once

#include "tilewright/tilewright.h"

#include <algorithm>

namespace lesson {

namespace tw = tilewright;

//   global memory              shared memory, a ring of stages          registers
//   A (m,k)   B (n,k)          (TILE_M,64) of A, (TILE_N,64) of B
//      |         |             +-------+-------+-------+-------+
//      +----+----+   TMA       | full  | full  | empty | empty |
//           |  ------------->  +-------+-------+-------+-------+
//   producer: one thread           |   wgmma                          (TILE_M/2, TILE_N)
//   waits for "empty"              +--------------------------------> sums of warpgroup 0
//   mbarriers, arrives at          +--------------------------------> sums of warpgroup 1
//   "full" ones by its copies                                               |  epilogue, stmatrix
//                              (16,64) a warp, twice  <---------------------+
//   C (m,n)  <---------------  two buffers
//              TMA store
//
// In a cluster of two blocks, both take the same columns of C: each loads half of B's tile and
// multicasts it to both.
struct WgmmaGemm {
  int tile_m = 128, tile_n = 256, stages = 4;
  int cluster = 2;  // blocks, one below the other
  int band = 8;     // of clusters' tiles, for the L2 cache

  static constexpr int kTileK = 64;         // 128 bytes of bf16: one swizzled row
  static constexpr int kConsumerWarps = 8;  // two warpgroups
  static constexpr int kThreads = (kConsumerWarps + 4) * 32;
  static constexpr int kStoreColumns = 64;
  static constexpr int kStoreElems = 16 * kStoreColumns;  // of a warp at a time

  int block_n() const { return tile_n / cluster; }  // the rows of B that a block loads
  tw::TensorMapArg a_map() const { return map(tile_m, kTileK); }
  tw::TensorMapArg b_map() const { return map(block_n(), kTileK); }
  tw::TensorMapArg c_map() const { return map(16, kStoreColumns); }
  std::int64_t stage_bytes() const { return (tile_m + tile_n) * kTileK * 2; }
  std::int64_t smem_bytes() const {
    return stages * stage_bytes() + 2 * kConsumerWarps * kStoreElems * 2;
  }

  void operator()(const tw::TensorMapParam& a, const tw::TensorMapParam& b,
                  const tw::TensorMapParam& c, const tw::Value& m, const tw::Value& n,
                  const tw::Value& k) const {
    tw::Tensor sA = ring(stages, tile_m * kTileK, 0);
    tw::Tensor sB = ring(stages, tile_n * kTileK, stages * tile_m * kTileK * 2);
    tw::Tensor sC = ring(2 * kConsumerWarps, kStoreElems, stages * stage_bytes());
    tw::BulkPipeline pipe(stages, kConsumerWarps, cluster);

    tw::Value k_tiles = (k + (kTileK - 1)) / kTileK;
    tw::TileScheduler tiles((m + (tile_m * cluster - 1)) / (tile_m * cluster),
                            (n + (tile_n - 1)) / tile_n, band);
    tw::Value rank = tw::cluster_rank();
    auto each_tile = [&](auto body) {  // body(first row, first column) of this block's tile
      tiles.for_each(tw::block_idx().x / cluster, tw::grid_dim().x / cluster,
                     [&](const tw::Value& i, const tw::Value& j) {
                       body((i * cluster + rank) * tile_m, j * tile_n);
                     });
    };
    auto tile_a = [&](const tw::Value& stage) {
      return tw::MatrixTile(sA(stage, tw::_), tile_m, kTileK, tw::TensorSwizzle::b128);
    };
    auto tile_b = [&](const tw::Value& stage) {
      return tw::MatrixTile(sB(stage, tw::_), tile_n, kTileK, tw::TensorSwizzle::b128);
    };

    auto produce = [&] {
      tw::if_(tw::warp_idx() == kConsumerWarps && tw::elect_one(), [&] {
        tw::StageCursor at = pipe.cursor();
        each_tile([&](const tw::Value& row, const tw::Value& column) {
          tw::for_(k_tiles, [&](const tw::Value& kt) {
            tw::Mbarrier full = pipe.acquire(at);
            full.arrive_expect_tx(stage_bytes());
            tw::Value stage = at.stage();
            tw::load_tile(tile_a(stage), a, {kt * kTileK, row}, full);
            tw::Value part = rank * block_n();
            tw::MatrixTile half = tile_b(stage).part(part, block_n());
            if (cluster == 1) tw::load_tile(half, b, {kt * kTileK, column}, full);
            if (cluster > 1)
              tw::load_tile_multicast(half, b, {kt * kTileK, column + part}, full,
                                      (1 << cluster) - 1);
            at.advance();
          });
        });
      });
    };

    auto consume = [&] {
      tw::Value warpgroup = tw::warp_idx() / 4;  // 0 or 1
      tw::Value first_row = warpgroup * (tile_m / 2);
      tw::StageCursor at = pipe.cursor();
      tw::StageCursor done = pipe.cursor();  // one step behind: its wgmmas have ended
      tw::Accumulator sums(tw::f32, tile_m / 2, tile_n);
      each_tile([&](const tw::Value& row, const tw::Value& column) {
        tw::for_(k_tiles, [&](const tw::Value& kt) {
          pipe.wait_full(at);
          tw::Value stage = at.stage();
          tw::MatrixTile half_a = tile_a(stage).part(first_row, tile_m / 2);
          tw::MatrixTile whole_b = tile_b(stage);
          tw::wgmma_fence();
          tw::wgmma(sums, half_a, whole_b, kt > 0);
          tw::wgmma_commit();
          at.advance();
          tw::wgmma_wait(1);
          tw::if_(kt > 0, [&] {
            pipe.release(done);
            done.advance();
          });
        });
        tw::wgmma_wait(0);
        pipe.release(done);
        done.advance();
        store(sums, sC, c, row + first_row, column);
      });
      tw::if_(tw::lane_idx() == 0, [] { tw::bulk_wait_read(); });
    };

    tw::roles(tw::role(kConsumerWarps, 232, consume), tw::role(4, 40, produce));
    if (cluster > 1) tw::cluster_barrier();  // a peer may still write here
  }

  // The epilogue, warp by warp: to bf16, to one of two buffers, from there by a tensor copy.
  void store(const tw::Accumulator& sums, const tw::Tensor& sC, const tw::TensorMapParam& c,
             const tw::Value& row, const tw::Value& column) const {
    tw::Fragment all = sums.read();
    tw::Value warp = tw::warp_idx();
    tw::Value leader = tw::lane_idx() == 0;
    constexpr int kStep = kStoreElems / 32;  // elements of a thread
    int steps = all.size() / kStep;
    for (int i = 0; i < steps; ++i) {
      int pending = i == 0 && steps % 2 == 1 ? 0 : 1;  // an odd number ends with buffer 0, too
      int block = i * kStoreColumns / tile_n, first = i * kStoreColumns % tile_n;
      tw::MatrixTile buffer(sC(warp * 2 + i % 2, tw::_), 16, kStoreColumns,
                            tw::TensorSwizzle::b128);
      tw::if_(leader, [&] { tw::bulk_wait_read(pending); });  // the buffer has been read
      tw::warp_barrier();
      tw::store_matrix(buffer, 0, all.part(i * kStep, kStep).to(tw::bf16));
      tw::fence_async_proxy(tw::ProxySpace::shared);
      tw::warp_barrier();
      tw::if_(leader, [&] {
        tw::store_tile(c, {column + first, row + warp % 4 * 16 + block * 64}, buffer);
        tw::bulk_commit();
      });
    }
  }

  // Host side.
  tw::TraceOptions options(tw::ptx::Target target) const {
    return {.name = "wgmma_gemm",
            .target = target,
            .block = {kThreads, 1, 1},
            .min_blocks_per_sm = 1,
            .cluster = {cluster, 1, 1}};
  }
  tw::Traced trace(tw::ptx::Target target) const {
    tw::ScalarArg extent{tw::s32, {1, 1, 1 << 30}};
    return tw::trace(options(target), *this, a_map(), b_map(), c_map(), extent, extent, extent);
  }
  tw::PreparedLaunch prepare(const tw::Kernel& kernel, const tw::View& a, const tw::View& b,
                             const tw::View& c, int blocks) const {
    auto m = static_cast<int>(a.shape[0]), n = static_cast<int>(b.shape[0]);
    int clusters = (m + tile_m * cluster - 1) / (tile_m * cluster) * ((n + tile_n - 1) / tile_n);
    tw::Parameters parameters;
    tw::pack(parameters, kernel.device(), a_map(), a);
    tw::pack(parameters, kernel.device(), b_map(), b);
    tw::pack(parameters, kernel.device(), c_map(), c);
    parameters.add(m).add(n).add(static_cast<int>(a.shape[1]));
    return kernel.prepare({.grid = {std::min(blocks / cluster, clusters) * cluster, 1, 1},
                           .block = {kThreads, 1, 1},
                           .cluster = {cluster, 1, 1},
                           .dynamic_smem_bytes = smem_bytes()},
                          std::move(parameters));
  }

 private:
  static tw::TensorMapArg map(int rows, int columns) {
    return tw::tile_map(tw::bf16, rows, columns, tw::TensorSwizzle::b128);
  }
  static tw::Tensor ring(int count, int elems, std::int64_t offset_bytes) {
    return tw::dynamic_shared(tw::bf16, tw::make_row_major(tw::Shape{count, elems}), offset_bytes);
  }
};

}  // namespace lesson
