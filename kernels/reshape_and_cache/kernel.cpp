// SPDX-License-Identifier: Apache-2.0
// The device side of reshape_and_cache: a thread moves accesses of a token's keys or values.
#include "kernels/reshape_and_cache/cache_codes.h"
#include "kernels/reshape_and_cache/reshape_and_cache.h"
#include "tilewright/atomic.h"
#include "tilewright/control.h"
#include "tilewright/fragment.h"
#include "tilewright/loaded_together.h"
#include "tilewright/thread.h"

#include <algorithm>
#include <array>
#include <vector>

namespace tilewright {
namespace {

using Tensors = CacheWrite<Tensor>;

class CacheWriteKernel {
 public:
  CacheWriteKernel(const CacheWriteConfig& config, Tensors tensors)
      : c_(config), t_(std::move(tensors)) {}

  void run() const {
    if_(block_idx().z == 0, [&] {
      move(c_[0], t_.key, t_.key_cache, t_.k_scale, true);
    }).else_([&] { move(c_[1], t_.value, t_.value_cache, t_.v_scale, false); });
  }

 private:
  void move(const CachePart& part, const Tensor& in, const Tensor& cache,
            const std::optional<Tensor>& scale, bool counts) const {
    const auto tiles_along = [](const CachePart& of) {
      return rows::tiles_along_row(of.tile, of.columns());
    };
    const std::int64_t along = tiles_along(part);
    if (along == std::max(tiles_along(c_[0]), tiles_along(c_[1])))
      return move_tile(part, in, cache, scale, counts);
    if_(is_tile(part.tile, along), [&] { move_tile(part, in, cache, scale, counts); });
  }

  /// Of a part that has fewer tiles along a row than the grid.
  Value is_tile(const rows::RowTile& tile, std::int64_t along) const {
    const Value block = block_idx().x;
    if (tile.grid == rows::TileGrid::by_row) return block < static_cast<int>(along);
    const Value tokens = to_value(t_.slot_mapping.shape()[0].value()).to(s64);
    return block.to(s64) < (tokens + (tile.rows() - 1)) / tile.rows() * along;
  }

  /// Only stores depend on the slot: loads of elements are on their way beside its own.
  void move_tile(const CachePart& part, const Tensor& in, const Tensor& cache,
                 const std::optional<Tensor>& scale, bool counts) const {
    const std::vector<rows::RowShare> shares =
        rows::row_shares(part.tile, t_.slot_mapping.shape()[0].value(), part.columns());
    const rows::RowShare& first = shares.front();
    const Fragment slot = load_if(first.in_rows, t_.slot_mapping(first.row), 1);
    std::vector<Fragment> loaded;
    loaded.reserve(shares.size());
    for (const rows::RowShare& share : shares) {
      const Element from = in(share.row, head_of(part, share), share.column % part.d);
      loaded.push_back(load_if(share.inside, from, part.tile.vector_elems));
    }
    loaded_together(std::array{slot}, loaded);
    const CacheSlot place = cache_slot(cache, slot[0]);
    for (std::size_t j = 0; j < shares.size(); ++j) {
      const Value head = head_of(part, shares[j]), column = shares[j].column % part.d;
      const Fragment elements =
          part.converts ? cache_codes({loaded[j]}, scale, head, cache.type()).front() : loaded[j];
      const int inner = static_cast<int>(cache.shape()[4].value().value());
      store_if(
          shares[j].inside && place.exists,
          cache.element(coord({place.page, place.offset, head, column / inner, column % inner})),
          elements);
    }
    if (counts && t_.skipped) {
      if_(first.in_rows && place.beyond && first.column == 0,
          [&] { red_add((*t_.skipped)(0), 1); });
    }
  }

  static Value head_of(const CachePart& part, const rows::RowShare& share) {
    return part.heads == 1 ? constant(s32, 0) : share.column / part.d;
  }

  const CacheWriteConfig& c_;
  Tensors t_;
};

}  // namespace

Traced ReshapeAndCachePlan::trace(ptx::Target target) const {
  TraceOptions options{.name = "reshape_and_cache_" + std::string(name(tensors.key.type)) + "_" +
                               std::string(name(tensors.key_cache.type)),
                       .target = target,
                       .block = {config[0].tile.threads, 1, 1}};
  using Maybe = std::optional<Tensor>;
  auto body = [this](const Tensor& key, const Tensor& value, const Tensor& slots,
                     const Maybe& k_scale, const Maybe& v_scale, const Tensor& key_cache,
                     const Tensor& value_cache, const Maybe& skipped) {
    CacheWriteKernel(config, {key, value, slots, k_scale, v_scale, key_cache, value_cache, skipped})
        .run();
  };
  return tilewright::trace(options, body, args.key, args.value, args.slot_mapping, args.k_scale,
                           args.v_scale, args.key_cache, args.value_cache, args.skipped);
}

}  // namespace tilewright
