// SPDX-License-Identifier: Apache-2.0
// The device side of quantize and dequantize.
#include "kernels/quantize/block2d.h"
#include "kernels/quantize/quantize.h"
#include "kernels/rows/row_batch.h"
#include "tilewright/atomic.h"
#include "tilewright/control.h"
#include "tilewright/fragment.h"
#include "tilewright/loaded_together.h"
#include "tilewright/sync.h"
#include "tilewright/thread.h"

#include <span>
#include <vector>

namespace tilewright {
namespace {

Value rows_of_expert(const Tensor& tokens, const Value& expert) {
  return tokens(expert).load({.read_only = true});
}

/// Of nvfp4. Nothing that is written may be behind it, so that one load serves all accesses.
std::optional<Value> decode_scale(const std::optional<Tensor>& decode) {
  return decode ? std::optional((*decode)(0).load({.read_only = true})) : std::nullopt;
}

/// What codes of one group stand for.
Fragment decoded(const QuantCoding& coding, const Fragment& codes, const Fragment& scale,
                 const std::optional<Value>& decode) {
  const Fragment wide = codes.to(f32) * scale_value(coding, scale[0].get());
  return decode ? wide * *decode : wide;
}

class QuantizeKernel {
 public:
  /// Clipped groups are added to `saturated`, if it is there; rows from `count` on are left alone.
  QuantizeKernel(const QuantizePlan& plan, const std::optional<Tensor>& saturated,
                 const std::optional<Value>& count)
      : plan_(plan),
        config_(plan.config),
        per_row_(config_.groups_of_row()),
        saturated_(saturated),
        count_(count) {}

  void operator()(const Tensor& x, const Tensor& q, const Tensor& scales,
                  const std::optional<Tensor>& given, const Value& floor,
                  const std::optional<Value>& group_blocks) const {
    if (config_.looped) {
      quantise_long_row(x, q, scales, floor);
      return;
    }
    if (!group_blocks) {
      quantise(x, given, q, scales, floor);
      return;
    }
    if_(block_idx().x < *group_blocks, [&] { quantise(x, given, q, scales, floor); }).else_([&] {
      Value word = (block_idx().x - *group_blocks) * config_.threads() + linear_thread_idx();
      pad_rows(config_.coding.layout, scales, to_value(x.shape()[0].value()), word, per_row_);
    });
  }

 private:
  void quantise(const Tensor& x, const std::optional<Tensor>& given, const Tensor& q,
                const Tensor& scales, const Value& floor) const {
    Value lane = linear_thread_idx() % config_.threads_per_group;
    std::vector<Share> shares;  // all on their way before the first is used
    shares.reserve(static_cast<std::size_t>(config_.turns));
    for (int turn = 0; turn < config_.turns; ++turn)
      shares.push_back(share_of(x, turn, lane));
    if (plan_.tensors.scale) {
      Value scale = (*given)(0);
      if (!plan_.scale_is_found) {
        const Value first = block_idx().x == 0 && linear_thread_idx() == 0;
        if_(plan_.experts() ? first && block_idx().z == 0 : first, [&] { scales(0, 0) = scale; });
      }
      const auto codes = GroupCodes::of_scale(config_.coding, config_.division, scale);
      for (const Share& share : shares)
        if_(share.active, [&] { store_codes(q, share, lane, codes); });
      return;
    }
    Value parameter = plan_.tensors.encode_scale ? Value((*given)(0)) : floor;
    for (const Share& share : shares) {
      Value largest = largest_of_group(share.loaded, lane);
      if_(share.active, [&] {
        const auto codes =
            GroupCodes::of_largest(config_.coding, config_.division, largest, parameter);
        if_(lane == 0, [&] {
          store_scale(scales, share, codes);
          if (saturated_) if_(codes.saturates(), [&] { red_add((*saturated_)(0), 1); });
        });
        store_codes(q, share, lane, codes);
      });
    }
  }

  /// A thread's part of a group.
  struct Share {
    Value row, group;  ///< the group's place
    Value active;
    std::vector<Fragment> loaded;
  };

  Share share_of(const Tensor& x, int turn, const Value& lane) const {
    Type index = config_.wide_index ? s64 : s32;
    // Behind a launch that read all of x, from its end on, which may still be near.
    Value block = plan_.scale_is_found ? grid_dim().x - 1 - block_idx().x : block_idx().x;
    Value group = block.to(index) * config_.groups_of_block() +
                  (linear_thread_idx() / config_.threads_per_group).to(index) +
                  turn * config_.groups_per_block;
    Value row = group / per_row_;
    const Value inside_x = row < to_value(x.shape()[0].value()).to(index);
    const std::optional<Value> counted = counts(row);
    Share share{row, (group % per_row_).to(s32), counted ? inside_x && *counted : inside_x, {}};
    share.loaded.reserve(static_cast<std::size_t>(config_.accesses));
    for (int j = 0; j < config_.accesses; ++j) {
      share.loaded.push_back(load_if(share.active && inside(share, lane, j),
                                     x(row, column(share, lane, j)), config_.vector_elems));
    }
    return share;
  }

  void store_scale(const Tensor& scales, const Share& share, const GroupCodes& codes) const {
    const ScaleLayout layout = config_.coding.layout;
    scale_element(layout, scales, share.row, share.group) = codes.stored();
    if (padded_groups(layout, per_row_) == per_row_) return;
    if_(share.group == static_cast<int>(per_row_) - 1,
        [&] { pad_groups(layout, scales, share.row, per_row_); });
  }

  std::optional<Value> counts(const Value& row) const {
    return count_ ? std::optional(row < count_->to(row.type())) : std::nullopt;
  }

  Value offset(const Value& lane, int j) const {
    return (lane + j * config_.threads_per_group) * config_.vector_elems;
  }
  Value column(const Share& share, const Value& lane, int j) const {
    const Type index = config_.h > std::int64_t{1} << 30 ? s64 : s32;
    return share.group.to(index) * constant(index, config_.group) + offset(lane, j).to(index);
  }
  Value inside(const Share& share, const Value& lane, int j) const {
    Value in_group = offset(lane, j) < static_cast<int>(config_.group);
    if (config_.h % config_.group == 0) return in_group;
    Value at = column(share, lane, j);
    return in_group && at < constant(at.type(), config_.h);
  }

  Value largest_of_group(const std::vector<Fragment>& loaded, const Value& lane) const {
    Var largest(f32, 0.0f);
    for (const Fragment& access : loaded)
      largest = larger(largest, largest_magnitude(access));
    return largest_of_threads(largest, lane);
  }

  Value largest_of_threads(const Value& largest, const Value& lane) const {
    if (config_.threads_per_group <= 32) {
      return warp_reduce(largest, larger, config_.threads_per_group);
    }
    int warps = config_.threads_per_group / 32;
    Tensor partials = shared(f32, Layout(Shape{warps}));
    Value of_warp = warp_reduce(largest, larger);
    if_(lane % 32 == 0, [&] { partials(warp_idx()) = of_warp; });
    barrier();
    return reduce(load(partials(0), warps), larger);
  }

  void store_codes(const Tensor& q, const Share& share, const Value& lane,
                   const GroupCodes& codes) const {
    for (int j = 0; j < config_.accesses; ++j) {
      store_if(inside(share, lane, j), q(share.row, column(share, lane, j)),
               codes(share.loaded[static_cast<std::size_t>(j)].to(f32)));
    }
  }

  // ---- A row too long for registers: the block reads it for its scale, and again for its codes

  void quantise_long_row(const Tensor& x, const Tensor& q, const Tensor& scales,
                         const Value& floor) const {
    Value row = block_idx().x.to(config_.wide_index ? s64 : s32);
    Value lane = linear_thread_idx();
    const std::optional<Value> counted = counts(row);
    Var largest(f32, 0.0f);
    for_accesses(x, row, [&](const Value&, const Value&, const Fragment& access) {
      largest = larger(largest, largest_magnitude(access));
    });
    const auto codes = GroupCodes::of_largest(config_.coding, config_.division,
                                              largest_of_threads(largest, lane), floor);
    if_(counted ? lane == 0 && *counted : lane == 0, [&] { scales(row, 0) = codes.stored(); });
    for_accesses(x, row, [&](const Value& column, const Value& inside, const Fragment& access) {
      store_if(inside, q(row, column), codes(access.to(f32)));
    });
  }

  /// A thread's accesses of a row, some on their way at once; those that are not inside are 0.
  template <class Body>
  void for_accesses(const Tensor& x, const Value& row, Body&& body) const {
    const int apart = config_.threads() * config_.vector_elems;
    const std::optional<Value> counted = counts(row);
    const Value all = constant(s32, config_.h);
    const Value end = counted ? select(*counted, all, 0) : all;
    for_(0, end, apart * config_.accesses, [&](const Value& first) {
      std::vector<Value> columns, inside;
      std::vector<Fragment> loaded;
      for (int j = 0; j < config_.accesses; ++j) {
        columns.push_back(first + j * apart + linear_thread_idx() * config_.vector_elems);
        inside.push_back(columns.back() < static_cast<int>(config_.h));
        loaded.push_back(load_if(inside.back(), x(row, columns.back()), config_.vector_elems));
      }
      for (std::size_t j = 0; j < loaded.size(); ++j)
        body(columns[j], inside[j], loaded[j]);
    });
  }

  const QuantizePlan& plan_;
  const QuantizeConfig& config_;
  std::int64_t per_row_;  // groups
  std::optional<Tensor> saturated_;
  std::optional<Value> count_;
};

}  // namespace

Traced QuantizePlan::trace(ptx::Target target) const {
  const QuantFormat format = config.coding.format;
  if (format == QuantFormat::fp8_block2d) return trace_block2d(*this, target);
  const bool fp8 = !is_mx(format) && format != QuantFormat::nvfp4;
  TraceOptions trace_options{
      .name = "quantize_" + std::string(fp8 ? "fp8" : tilewright::name(format)) + "_" +
              std::string(name(tensors.x.type)) + "_" + std::to_string(config.group),
      .target = target,
      .block = {config.threads(), 1, 1}};
  std::optional<ScalarArg> count;
  if (config.pads_apart()) count = ScalarArg{s32, {1, 0, 2'147'483'647}};
  auto body = [this, format](const Tensor& x, const Tensor& q, const Tensor& scales,
                             const std::optional<Tensor>& given, const Value& floor,
                             const std::optional<Value>& blocks,
                             const std::optional<Tensor>& saturated,
                             const std::optional<Tensor>& tokens) {
    if (!tokens) {
      QuantizeKernel(*this, saturated, std::nullopt)(x, q, scales, given, floor, blocks);
      return;
    }
    const Value expert = block_idx().z;
    QuantizeKernel(*this, saturated, rows_of_expert(*tokens, expert))(
        rows::one_of(x, expert), rows::one_of(q, expert),
        format == QuantFormat::fp8_tensor ? scales : rows::one_of(scales, expert), given, floor,
        blocks);
  };
  return tilewright::trace(trace_options, body, x_arg, q_arg, scales_arg, given_arg,
                           ScalarArg{f32, {}}, count, saturated_arg, tokens_arg);
}

Traced DequantizePlan::trace(ptx::Target target) const {
  const bool fp8 = !is_mx(coding.format) && coding.format != QuantFormat::nvfp4;
  const TraceOptions options{.name = "dequantize_" +
                                     std::string(fp8 ? "fp8" : tilewright::name(coding.format)) +
                                     "_" + std::string(name(tensors.y.type)),
                             .target = target,
                             .block = {tile.threads, 1, 1}};
  return flat ? trace_flat(options) : trace_rows(options);
}

Traced DequantizePlan::trace_flat(const TraceOptions& options) const {
  const auto per_group =
      static_cast<int>(group_elems(coding.format, 0, coding.block)) / tile.vector_elems;
  auto body = [&](const Tensor& q, const Tensor& scales, const Tensor& y,
                  const std::optional<Tensor>& decode) {
    Value first =
        block_idx().x.to(u32) * (tile.threads * tile.accesses) + linear_thread_idx().to(u32);
    Value count = to_value(y.shape()[0].value()).to(u32);
    std::vector<Fragment> codes, stored;  // all on their way before the first is used
    for (int j = 0; j < tile.accesses; ++j) {
      Value access = first + j * tile.threads;
      codes.push_back(load_if(access < count, q(access, 0), tile.vector_elems));
      stored.push_back(load_if(access < count, scales(access / per_group, 0), 1));
    }
    loaded_together(std::span(codes).first(1), std::span(codes).subspan(1));
    const std::optional<Value> all = decode_scale(decode);
    for (int j = 0; j < tile.accesses; ++j) {
      const auto at = static_cast<std::size_t>(j);
      const Fragment wide = decoded(coding, codes[at], stored[at], all);
      store_if(first + j * tile.threads < count, y(first + j * tile.threads, 0), wide.to(y.type()));
    }
  };
  return tilewright::trace(options, body, q_arg, scales_arg, y_arg, decode_arg);
}

Traced DequantizePlan::trace_rows(const TraceOptions& options) const {
  const auto h = rows::row_elems(tensors.q);
  const auto group = static_cast<int>(group_elems(coding.format, h, coding.block));
  auto of_matrix = [&](const Tensor& q, const Tensor& scales, const Tensor& y,
                       const std::optional<Tensor>& decode, const std::optional<Value>& count) {
    const std::vector<rows::RowShare> shares = rows::row_shares(tile, y.shape()[0].value(), h);
    std::vector<Value> inside;
    inside.reserve(shares.size());
    for (const rows::RowShare& share : shares) {
      inside.push_back(count ? share.inside && share.row < count->to(share.row.type())
                             : share.inside);
    }
    std::vector<Fragment> codes, stored;  // all on their way before the first store
    codes.reserve(shares.size());
    stored.reserve(shares.size());
    for (std::size_t j = 0; j < shares.size(); ++j) {
      const rows::RowShare& share = shares[j];
      codes.push_back(load_if(inside[j], q(share.row, share.column), tile.vector_elems));
      bool whole = coding.format == QuantFormat::fp8_tensor;
      bool one = whole || coding.format == QuantFormat::fp8_token;
      bool tiles = coding.format == QuantFormat::fp8_block2d;
      Value row = whole ? constant(s32, 0) : tiles ? share.row / kBlock2d : share.row;
      Value column = one ? constant(s32, 0) : share.column / group;
      stored.push_back(load_if(inside[j], scale_element(coding.layout, scales, row, column), 1));
    }
    const std::optional<Value> all = decode_scale(decode);
    for (std::size_t j = 0; j < shares.size(); ++j) {
      const Fragment wide = decoded(coding, codes[j], stored[j], all);
      store_if(inside[j], y(shares[j].row, shares[j].column), wide.to(y.type()));
    }
  };
  auto body = [&](const Tensor& q, const Tensor& scales, const Tensor& y,
                  const std::optional<Tensor>& decode, const std::optional<Tensor>& tokens) {
    if (!tokens) {
      of_matrix(q, scales, y, decode, std::nullopt);
      return;
    }
    const Value expert = block_idx().z;
    of_matrix(rows::one_of(q, expert),
              coding.format == QuantFormat::fp8_tensor ? scales : rows::one_of(scales, expert),
              rows::one_of(y, expert), decode, rows_of_expert(*tokens, expert));
  };
  return tilewright::trace(options, body, q_arg, scales_arg, y_arg, decode_arg, tokens_arg);
}

}  // namespace tilewright
