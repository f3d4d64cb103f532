// SPDX-License-Identifier: Apache-2.0
// A block quantises the elements of one scale, held in its threads' registers.
#include "kernels/quantize/block2d.h"

#include "kernels/rows/row_batch.h"
#include "tilewright/control.h"
#include "tilewright/sync.h"
#include "tilewright/thread.h"

#include <optional>
#include <vector>

namespace tilewright {
namespace {

class Block2dKernel {
 public:
  explicit Block2dKernel(const QuantizeConfig& config)
      : config_(config),
        lanes_(kBlock2d / config.vector_elems),
        tiles_n_(rows::ceil_div(config.h, kBlock2d)) {}

  /// Rows from `limit` on are left alone.
  void operator()(const Tensor& x, const Tensor& q, const Tensor& scales, const Value& floor,
                  const std::optional<Value>& limit) const {
    const Value extent = to_value(x.shape()[0].value());
    const Value count = limit ? min(limit->to(extent.type()), extent) : extent;
    const Value tile_m = block_idx().x.to(count.type()) / tiles_n_;
    const Value tile_n = (block_idx().x.to(count.type()) % tiles_n_).to(s32);
    const Value first = tile_m * kBlock2d + (linear_thread_idx() / lanes_).to(count.type());
    const Value column = tile_n * kBlock2d + linear_thread_idx() % lanes_ * config_.vector_elems;
    std::vector<Fragment> loaded;
    loaded.reserve(static_cast<std::size_t>(config_.accesses));
    for (int j = 0; j < config_.accesses; ++j) {
      loaded.push_back(
          load_if(inside(row(first, j), column, count), x(row(first, j), column), elems()));
    }
    Var mine(f32, 0.0f);
    for (const Fragment& access : loaded)
      mine = larger(mine, largest_magnitude(access));
    const auto codes =
        GroupCodes::of_largest(config_.coding, config_.division, largest_of_block(mine), floor);
    const Value writes = linear_thread_idx() == 0;
    if_(limit ? writes && tile_m * kBlock2d < count : writes,
        [&] { scales(tile_m, tile_n) = codes.stored(); });
    for (int j = 0; j < config_.accesses; ++j) {
      store_if(inside(row(first, j), column, count), q(row(first, j), column),
               codes(loaded[static_cast<std::size_t>(j)].to(f32)));
    }
  }

 private:
  int elems() const { return config_.vector_elems; }
  Value row(const Value& first, int j) const { return first + j * (config_.threads() / lanes_); }
  Value inside(const Value& row, const Value& column, const Value& count) const {
    return row < count && column < static_cast<int>(config_.h);
  }

  Value largest_of_block(const Value& mine) const {
    const int warps = config_.threads() / 32;
    Tensor partials = shared(f32, Layout(Shape{warps}));
    Value of_warp = warp_reduce(mine, larger);
    if_(linear_thread_idx() % 32 == 0, [&] { partials(warp_idx()) = of_warp; });
    barrier();
    return reduce(load(partials(0), warps), larger);
  }

  const QuantizeConfig& config_;
  int lanes_;  // threads along a row
  std::int64_t tiles_n_;
};

}  // namespace

Traced trace_block2d(const QuantizePlan& plan, ptx::Target target) {
  TraceOptions trace_options{
      .name = "quantize_fp8_" + std::string(name(plan.tensors.x.type)) + "_128x128",
      .target = target,
      .block = {plan.config.threads(), 1, 1},
      .min_blocks_per_sm = plan.config.resident};
  const Block2dKernel kernel(plan.config);
  auto body = [&](const Tensor& x, const Tensor& q, const Tensor& scales, const Value& floor,
                  const std::optional<Tensor>& tokens) {
    if (!tokens) {
      kernel(x, q, scales, floor, std::nullopt);
      return;
    }
    const Value expert = block_idx().z;
    kernel(rows::one_of(x, expert), rows::one_of(q, expert), rows::one_of(scales, expert), floor,
           (*tokens)(expert).load({.read_only = true}));
  };
  return tilewright::trace(trace_options, body, plan.x_arg, plan.q_arg, plan.scales_arg,
                           ScalarArg{f32, {}}, plan.tokens_arg);
}

}  // namespace tilewright
