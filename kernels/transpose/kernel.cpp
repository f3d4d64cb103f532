// SPDX-License-Identifier: Apache-2.0
// The device side of transpose.
#include "kernels/rows/grid_division.h"
#include "kernels/transpose/shared_tile.h"
#include "kernels/transpose/transpose.h"
#include "tilewright/control.h"
#include "tilewright/fragment.h"
#include "tilewright/thread.h"

#include <vector>

namespace tilewright {
namespace {

/// Of `tiles` of a batch, as many precede the next group's as `divisor` says: see
/// TransposePlan::order().
TransposeCorner corner_of(const TransposeConfig& config, const Value& divisor, const Value& tiles) {
  const rows::Divided batch = rows::divided(block_idx().x, tiles);
  const rows::Divided tile = rows::divided(batch.remainder, divisor);
  const auto corner = [&](const Value& m, const Value& n) {
    return TransposeCorner{batch.quotient.to(s64), m.to(s64) * config.tile_m(),
                           n.to(s64) * config.tile_n()};
  };
  if (config.group == 0) return corner(tile.remainder, tile.quotient);
  return corner(tile.quotient * config.group + tile.remainder % config.group,
                tile.remainder / config.group);
}

/// Each thread reads a square of elements, a row an access, and writes its columns. Neighbours lie
/// side by side in src and one above the other in dst, so that both sides fill whole sectors.
struct DirectTranspose {
  TransposeConfig config;

  void operator()(const Tensor& src, const Tensor& dst, const TransposeCorner& corner) const {
    const int side = config.access;
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
  auto body = [this](const Tensor& from, const Tensor& to, const Value& order, const Value& tiles) {
    const TransposeCorner corner = corner_of(config, order, tiles);
    if (config.method == TransposeMethod::direct) {
      DirectTranspose{config}(from, to, corner);
    } else {
      SharedTile(config, from, to, corner).transpose();
    }
  };
  return tilewright::trace(options, body, src_arg, dst_arg, divisor, divisor);
}

}  // namespace tilewright
