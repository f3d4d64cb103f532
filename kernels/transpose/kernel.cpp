// SPDX-License-Identifier: Apache-2.0
// The device side of transpose.
#include "kernels/rows/grid_division.h"
#include "kernels/transpose/transpose.h"
#include "tilewright/control.h"
#include "tilewright/fragment.h"
#include "tilewright/sync.h"
#include "tilewright/thread.h"

#include <algorithm>
#include <vector>

namespace tilewright {
namespace {

/// The tile's first row and column, and its batch.
struct Corner {
  Value batch, m, n;  ///< s64
};
Corner corner_of(const TransposeConfig& config, const Value& tiles_n, const Value& tiles) {
  const rows::Divided batch = rows::divided(block_idx().x, tiles);
  const rows::Divided tile = rows::divided(batch.remainder, tiles_n);
  return {batch.quotient.to(s64), tile.quotient.to(s64) * config.tile_m(),
          tile.remainder.to(s64) * config.tile_n()};
}

/// Accesses of words where a side's offsets allow it, through a tile in shared memory whose rows
/// are a word longer, so that a column meets all banks. A thread's addresses are a step apart.
class SharedTranspose {
 public:
  explicit SharedTranspose(const TransposeConfig& config) : c_(config) {}

  void operator()(const Tensor& src, const Tensor& dst, const Value& tiles_n,
                  const Value& tiles) const {
    const Corner corner = corner_of(c_, tiles_n, tiles);
    const int pitch = c_.tile_n() + std::max(1, 32 / bits(src.type()));
    Tensor tile = shared(src.type(), Layout(Shape{c_.tile_m(), c_.tile_n()}, Stride{pitch, 1}));
    Value rows = left(src.shape()[1].value(), corner.m, c_.tile_m());
    Value columns = left(src.shape()[2].value(), corner.n, c_.tile_n());
    read(src, tile, corner, rows, columns);
    barrier();
    write(dst, tile, corner, rows, columns);
  }

 private:
  static Value left(const Int& extent, const Value& first, int most) {
    return min(to_value(extent).to(s64) - first, most).to(s32);
  }

  void read(const Tensor& src, const Tensor& tile, const Corner& corner, const Value& rows,
            const Value& columns) const {
    const int elems = c_.read_elems, lanes = c_.tile_n() / elems, at_once = c_.threads / lanes;
    Value across = linear_thread_idx() % lanes * elems;
    Value down = linear_thread_idx() / lanes;
    Value inside = across < columns;
    const std::vector<Tensor> accesses =
        steps(src, src(corner.batch, corner.m + down.to(s64), corner.n + across.to(s64)), at_once,
              c_.tile_m() / at_once);
    std::vector<Fragment> loaded;
    for (int i = 0; i < c_.tile_m(); i += at_once) {
      const Tensor& access = accesses[static_cast<std::size_t>(i / at_once)];
      loaded.push_back(load_if(inside && down + i < rows, access(0), elems));
    }
    for (int i = 0; i < c_.tile_m(); i += at_once)
      store(tile(down + i, across), loaded[static_cast<std::size_t>(i / at_once)]);
  }

  void write(const Tensor& dst, const Tensor& tile, const Corner& corner, const Value& rows,
             const Value& columns) const {
    const int elems = c_.write_elems, lanes = c_.tile_m() / elems, at_once = c_.threads / lanes;
    Value across = linear_thread_idx() % lanes * elems;
    Value down = linear_thread_idx() / lanes;
    Value inside = across < rows;
    const std::vector<Tensor> accesses =
        steps(dst, dst(corner.batch, corner.n + down.to(s64), corner.m + across.to(s64)), at_once,
              c_.tile_n() / at_once);
    for (int i = 0; i < c_.tile_n(); i += at_once) {
      Fragment column(tile.type(), elems);
      for (int e = 0; e < elems; ++e)
        column[e] = load(tile(across + e, down + i), 1)[0].get();
      const Tensor& access = accesses[static_cast<std::size_t>(i / at_once)];
      store_if(inside && down + i < columns, access(0), column);
    }
  }

  /// From an element on, `count` times `rows` rows further: an addition each.
  static std::vector<Tensor> steps(const Tensor& tensor, const Element& first, int rows,
                                   int count) {
    const Int step = tensor.layout().stride()[1].value() * rows;
    std::vector<Tensor> all{tensor.at_offset(first.offset(), Layout(Shape{1}))};
    while (static_cast<int>(all.size()) < count)
      all.push_back(all.back().at_offset(step, Layout(Shape{1})));
    return all;
  }

  TransposeConfig c_;
};

/// Each thread reads a square of elements, a row an access, and writes its columns. Neighbours lie
/// side by side in src and one above the other in dst, so that both sides fill whole sectors.
struct DirectTranspose {
  TransposeConfig config;

  void operator()(const Tensor& src, const Tensor& dst, const Value& tiles_n,
                  const Value& tiles) const {
    const int side = config.access;
    const Corner corner = corner_of(config, tiles_n, tiles);
    Value across = linear_thread_idx() % config.across;
    Value down = linear_thread_idx() / config.across;
    const Value& batch = corner.batch;
    Value m = corner.m + (down * side).to(s64);
    Value n = corner.n + (across * side).to(s64);
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
  const ScalarArg divisor = rows::divisor_arg();
  if (config.method == TransposeMethod::direct)
    return tilewright::trace(options, DirectTranspose{config}, src_arg, dst_arg, divisor, divisor);
  return tilewright::trace(options, SharedTranspose(config), src_arg, dst_arg, divisor, divisor);
}

}  // namespace tilewright
