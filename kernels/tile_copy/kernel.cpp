// SPDX-License-Identifier: Apache-2.0
// The device side of tile_copy.
#include "kernels/tile_copy/tile_copy.h"
#include "tilewright/control.h"
#include "tilewright/copy.h"
#include "tilewright/sync.h"
#include "tilewright/thread.h"

#include <vector>

namespace tilewright {
namespace {

/// One thread's share of a tile: element offsets are vectors of units.
struct Share {
  Value row, column;  // of the thread's first vector in the tile, in rows and in units
};

class TileCopyKernel {
 public:
  TileCopyKernel(const TileCopyConfig& config, const TensorArg& src)
      : config_(config),
        units_(config.vector_bytes * 8 / bits(src.type)),
        rows_type_(is_short_extent(src.shape[0].value()) ? s32 : s64),
        columns_type_(is_short_extent(src.shape[1].value()) ? s32 : s64) {}

  void operator()(const Tensor& src, const Tensor& dst, const Value& tiles_n,
                  const Value& tiles) const {
    if (config_.method == CopyMethod::direct) {
      copy_direct(src, dst, tiles_n, block_idx().x);
    } else {
      copy_async_pipeline(src, dst, tiles_n, tiles);
    }
  }

 private:
  /// All loads of the tile are in flight before the first store.
  void copy_direct(const Tensor& src, const Tensor& dst, const Value& tiles_n,
                   const Value& tile) const {
    Share share = share_of(tile, tiles_n);
    std::vector<Fragment> loaded;
    std::vector<Value> inside;
    for (int j = 0; j < config_.vectors; ++j) {
      inside.push_back(is_inside(src, share, j));
      loaded.push_back(
          load_if(inside.back(), element(src, share, j), units_, {.cache = config_.cache}));
    }
    for (int j = 0; j < config_.vectors; ++j) {
      auto i = static_cast<std::size_t>(j);
      store_if(inside[i], element(dst, share, j), loaded[i], {.cache = config_.cache});
    }
  }

  /// Persistent blocks: `stages` tiles are on their way into shared memory while one is written.
  /// A thread reads back only what it copied itself, so that no barrier is needed.
  void copy_async_pipeline(const Tensor& src, const Tensor& dst, const Value& tiles_n,
                           const Value& tiles) const {
    int ahead = config_.stages - 1;
    Layout slots(Shape{units_, config_.threads, config_.vectors, config_.stages});
    Tensor staged = dynamic_shared(src.type(), slots);
    Value step = grid_dim().x;
    Value first = block_idx().x;
    for (int stage = 0; stage < ahead; ++stage) {
      begin_tile(src, staged, tiles_n, tiles, first + step * stage, constant(s32, stage));
    }
    Var stage(s32, 0, Uniformity::block);
    for_(first, tiles, step, [&](const Value& tile) {
      Value current = stage;
      Value last = select(current == 0, ahead, current - 1);
      begin_tile(src, staged, tiles_n, tiles, tile + step * ahead, last);
      cp_async_wait(ahead);
      end_tile(dst, staged, tiles_n, tile, current);
      stage = select(current == ahead, 0, current + 1);
    });
  }

  void begin_tile(const Tensor& src, const Tensor& staged, const Value& tiles_n, const Value& tiles,
                  const Value& tile, const Value& stage) const {
    if_(tile < tiles, [&] {
      Share share = share_of(tile, tiles_n);
      for (int j = 0; j < config_.vectors; ++j) {
        copy_async_if(is_inside(src, share, j), slot(staged, j, stage), element(src, share, j),
                      config_.vector_bytes);
      }
    });
    cp_async_commit();
  }

  void end_tile(const Tensor& dst, const Tensor& staged, const Value& tiles_n, const Value& tile,
                const Value& stage) const {
    Share share = share_of(tile, tiles_n);
    for (int j = 0; j < config_.vectors; ++j) {
      Fragment vector = load(slot(staged, j, stage), units_);
      store_if(is_inside(dst, share, j), element(dst, share, j), vector, {.cache = config_.cache});
    }
  }

  Element slot(const Tensor& staged, int j, const Value& stage) const {
    return staged(0, linear_thread_idx(), j, stage);
  }

  Share share_of(const Value& tile, const Value& tiles_n) const {
    Value thread = linear_thread_idx();
    if (config_.flat) {
      Value piece = tile.to(columns_type_) * (config_.tile_n() * units_);
      return {constant(s32, 0), piece + (thread * units_).to(columns_type_)};
    }
    Value row = (tile / tiles_n).to(rows_type_) * config_.tile_m() +
                (thread / config_.threads_n).to(rows_type_);
    Value vector = (tile % tiles_n * config_.tile_n() + thread % config_.threads_n);
    return {row, vector.to(columns_type_) * units_};
  }

  /// Distance of the thread's j-th vector from its first: rows, or units if flat.
  int distance(int j) const {
    return config_.flat ? j * config_.threads * units_ : j * (config_.threads / config_.threads_n);
  }

  Element element(const Tensor& tensor, const Share& share, int j) const {
    if (config_.flat) return tensor(0, share.column + distance(j));
    return tensor(share.row + distance(j), share.column);
  }

  Value is_inside(const Tensor& tensor, const Share& share, int j) const {
    Value columns = to_value(tensor.shape()[1].value());
    if (config_.flat) return share.column + distance(j) < columns;
    Value rows = to_value(tensor.shape()[0].value());
    return share.row + distance(j) < rows && share.column < columns;
  }

  TileCopyConfig config_;
  int units_;                      // of a vector
  Type rows_type_, columns_type_;  // of indices
};

}  // namespace

Traced TileCopyPlan::trace(ptx::Target target) const {
  TraceOptions options{.name = "tile_copy", .target = target, .block = {config.threads, 1, 1}};
  constexpr std::int64_t kMaxTiles = 2'147'483'647;
  ScalarArg count{s32, {1, 1, kMaxTiles}};
  return tilewright::trace(options, TileCopyKernel(config, src_arg), src_arg, dst_arg, count,
                           count);
}

}  // namespace tilewright
