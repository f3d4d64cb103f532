// SPDX-License-Identifier: Apache-2.0
// The device side of transpose.
#include "kernels/transpose/transpose.h"
#include "tilewright/control.h"
#include "tilewright/fragment.h"
#include "tilewright/sync.h"
#include "tilewright/thread.h"

#include <vector>

namespace tilewright {
namespace {

constexpr int kTile = 64;
constexpr int kRowsAtOnce = 256 / kTile;

/// Rows of the tile are a word longer than 64 elements, so that a column meets all banks.
struct SharedTranspose {
  void operator()(const Tensor& src, const Tensor& dst, const Value& tiles_n,
                  const Value& tiles) const {
    int pitch = kTile + (bits(src.type()) < 32 ? 32 / bits(src.type()) : 1);
    Tensor tile = shared(src.type(), Layout(Shape{kTile, kTile}, Stride{pitch, 1}));
    Value batch = (block_idx().x / tiles).to(s64);
    Value in_batch = block_idx().x % tiles;
    Value m = (in_batch / tiles_n).to(s64) * kTile;
    Value n = (in_batch % tiles_n).to(s64) * kTile;
    Value across = linear_thread_idx() % kTile;
    Value down = linear_thread_idx() / kTile;
    Value rows = to_value(src.shape()[1].value()).to(s64);
    Value columns = to_value(src.shape()[2].value()).to(s64);
    std::vector<Fragment> loaded;
    for (int i = 0; i < kTile; i += kRowsAtOnce) {
      Value row = m + (down + i).to(s64);
      Value column = n + across.to(s64);
      loaded.push_back(load_if(row < rows && column < columns, src(batch, row, column), 1));
    }
    for (int i = 0; i < kTile; i += kRowsAtOnce)
      store(tile(down + i, across), loaded[static_cast<std::size_t>(i / kRowsAtOnce)]);
    barrier();
    for (int i = 0; i < kTile; i += kRowsAtOnce) {
      Value row = n + (down + i).to(s64);
      Value column = m + across.to(s64);
      store_if(row < columns && column < rows, dst(batch, row, column),
               load(tile(across, down + i), 1));
    }
  }
};

/// Each thread reads a square of elements, a row an access, and writes its columns. Neighbours lie
/// side by side in src and one above the other in dst, so that both sides fill whole sectors.
struct DirectTranspose {
  TransposeConfig config;

  void operator()(const Tensor& src, const Tensor& dst, const Value& tiles_n,
                  const Value& tiles) const {
    const int side = config.access;
    Value batch = (block_idx().x / tiles).to(s64);
    Value in_batch = block_idx().x % tiles;
    Value across = linear_thread_idx() % config.across;
    Value down = linear_thread_idx() / config.across;
    Value m = (in_batch / tiles_n).to(s64) * config.tile_m() + (down * side).to(s64);
    Value n = (in_batch % tiles_n).to(s64) * config.tile_n() + (across * side).to(s64);
    Value rows = to_value(src.shape()[1].value()).to(s64);
    Value columns = to_value(src.shape()[2].value()).to(s64);
    if_(m < rows && n < columns, [&] {  // squares are inside or outside as a whole
      std::vector<Fragment> read;
      read.reserve(static_cast<std::size_t>(side));
      for (int i = 0; i < side; ++i)
        read.push_back(load(src(batch, m + i, n), side));
      for (int j = 0; j < side; ++j) {
        Fragment column(src.type(), side);
        for (int i = 0; i < side; ++i)
          column[i] = read[static_cast<std::size_t>(i)][j].get();
        store(dst(batch, n + j, m), column);
      }
    });
  }
};

}  // namespace

Traced TransposePlan::trace(ptx::Target target) const {
  TraceOptions options{.name = "transpose_" + std::string(name(src.type)),
                       .target = target,
                       .block = {config.threads, 1, 1}};
  ScalarArg count{s32, {1, 1, 2'147'483'647}};
  if (config.method == TransposeMethod::direct) {
    return tilewright::trace(options, DirectTranspose{config}, src_arg, dst_arg, count, count);
  }
  return tilewright::trace(options, SharedTranspose{}, src_arg, dst_arg, count, count);
}

}  // namespace tilewright
