// SPDX-License-Identifier: Apache-2.0
// The device side of quantize and dequantize.
#include "kernels/quantize/quantize.h"
#include "tilewright/control.h"
#include "tilewright/fragment.h"
#include "tilewright/sync.h"
#include "tilewright/thread.h"

#include <limits>
#include <optional>
#include <vector>

namespace tilewright {
namespace {

constexpr float kLargest = 448.0f;  // of e4m3

Value larger(const Value& a, const Value& b) { return max(a, b, NanMode::propagate); }

/// The power of two at or above a normal number, as ue8m0 (255: NaN) and as f32.
struct PowerOfTwo {
  Value code, value;
};
PowerOfTwo power_above(const Value& x) {
  Value word = x.bitcast(u32);
  Value up = select((word & 0x7fffff) == 0, constant(u32, 0), constant(u32, 1));
  Value code = min((word >> 23) + up, constant(u32, 254));  // infinity saturates
  Value is_nan = x != x;
  return {select(is_nan, constant(u32, 255), code), select(is_nan, x, (code << 23).bitcast(f32))};
}

Value power_of(const Value& byte) {
  Value code = byte.to(u32);
  Value normal = select(code == 0, constant(u32, 0x400000), code << 23);
  return select(code == 255, constant(u32, 0x7fc00000), normal).bitcast(f32);
}

/// Division by a scale. Corrected (Markstein): the reciprocal is correctly rounded, the first
/// quotient within two units of the last place, the second within one, the third correctly rounded.
/// Remainders are taken negative, so that -0 keeps its sign, and of 0 instead of an infinite scale,
/// so that finite elements give 0.
class Quotient {
 public:
  Quotient(Division division, const Value& scale)
      : division_(division), scale_(scale), inverse_(constant(f32, 1.0f) / scale) {
    if (division != Division::corrected) return;
    divisor_.emplace(select(abs(scale) == std::numeric_limits<float>::infinity(), 0.0f, scale));
  }

  Value operator()(const Value& v) const {
    if (division_ == Division::exact) return v / scale_;
    Value first = v * inverse_;
    if (division_ == Division::product) return first;
    Value second = corrected(first, v);
    return corrected(second, v);
  }

 private:
  Value corrected(const Value& quotient, const Value& v) const {
    return fma(fma(quotient, *divisor_, -v), -inverse_, quotient);
  }

  Division division_;
  Value scale_, inverse_;
  std::optional<Value> divisor_ = {};
};

class QuantizeKernel {
 public:
  explicit QuantizeKernel(const QuantizePlan& plan)
      : plan_(plan), config_(plan.config), per_row_(config_.h / config_.group) {}

  void operator()(const Tensor& x, const Tensor& scale, const Tensor& q, const Tensor& scales,
                  const Value& floor) const {
    Value lane = linear_thread_idx() % config_.threads_per_group;
    Type index = config_.wide_index ? s64 : s32;
    Value group = block_idx().x.to(index) * config_.groups_per_block +
                  (linear_thread_idx() / config_.threads_per_group).to(index);
    Value row = group / per_row_;
    Value column = (group % per_row_).to(s32);
    Value active = row < to_value(x.shape()[0].value()).to(index);
    Value first = column * static_cast<int>(config_.group);
    std::vector<Fragment> loaded;
    loaded.reserve(static_cast<std::size_t>(config_.accesses));
    for (int j = 0; j < config_.accesses; ++j) {
      loaded.push_back(
          load_if(active && inside(lane, j), x(row, first + offset(lane, j)), config_.vector_elems)
              .to(f32));
    }
    if (plan_.tensors.scale) {
      Value given = scale(0);
      if_(group == 0 && lane == 0, [&] { scales(0, 0) = given; });
      if_(active, [&] { finish(q, row, first, lane, loaded, given); });
      return;
    }
    Value s = larger(largest_of_group(loaded, lane), floor) / kLargest;
    if_(active, [&] {
      if (config_.power_of_two) {
        PowerOfTwo power = power_above(s);
        if_(lane == 0, [&] { scales(row, column) = power.code.to(u8); });
        finish(q, row, first, lane, loaded, power.value);
      } else {
        if_(lane == 0, [&] { scales(row, column) = s; });
        finish(q, row, first, lane, loaded, s);
      }
    });
  }

 private:
  Value offset(const Value& lane, int j) const {
    return (lane + j * config_.threads_per_group) * config_.vector_elems;
  }
  Value inside(const Value& lane, int j) const {
    return offset(lane, j) < static_cast<int>(config_.group);
  }

  Value largest_of_group(const std::vector<Fragment>& loaded, const Value& lane) const {
    Var largest(f32, 0.0f);
    for (const Fragment& access : loaded) {
      Fragment magnitudes = map(access, [](const Value& v) { return abs(v); });
      largest = larger(largest, reduce(magnitudes, larger));
    }
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

  void finish(const Tensor& q, const Value& row, const Value& first, const Value& lane,
              const std::vector<Fragment>& loaded, const Value& s) const {
    const Quotient quotient(config_.division, s);
    for (int j = 0; j < config_.accesses; ++j) {
      Fragment scaled = map(loaded[static_cast<std::size_t>(j)], quotient);
      store_if(inside(lane, j), q(row, first + offset(lane, j)), scaled.to(e4m3));
    }
  }

  const QuantizePlan& plan_;
  const QuantizeConfig& config_;
  std::int64_t per_row_;  // groups
};

}  // namespace

Traced QuantizePlan::trace(ptx::Target target) const {
  TraceOptions trace_options{.name = "quantize_fp8_" + std::string(name(tensors.x.type)) + "_" +
                                     std::to_string(config.group),
                             .target = target,
                             .block = {config.threads(), 1, 1}};
  return tilewright::trace(trace_options, QuantizeKernel(*this), x_arg, scale_arg, q_arg,
                           scales_arg, ScalarArg{f32, {}});
}

Traced DequantizePlan::trace(ptx::Target target) const {
  TraceOptions trace_options{.name = "dequantize_fp8_" + std::string(name(tensors.y.type)),
                             .target = target,
                             .block = {tile.threads, 1, 1}};
  auto body = [this](const Tensor& q, const Tensor& scales, const Tensor& y, const Value& along) {
    const std::vector<rows::RowShare> shares =
        rows::row_shares(tile, along, y.shape()[0].value(), y.shape()[1].value());
    std::vector<Fragment> codes;  // all on their way before the first store
    codes.reserve(shares.size());
    for (const rows::RowShare& share : shares)
      codes.push_back(load_if(share.inside, q(share.row, share.column), tile.vector_elems));
    for (std::size_t j = 0; j < shares.size(); ++j) {
      const rows::RowShare& share = shares[j];
      bool whole = format == QuantFormat::fp8_tensor;
      bool blocks = format == QuantFormat::fp8_block;
      Value row = whole ? constant(s32, 0) : share.row;
      Value group = blocks ? share.column / static_cast<int>(kQuantBlock) : constant(s32, 0);
      Value stored = load_if(share.inside, scales(row, group), 1)[0].get();
      Value s = power_of_two ? power_of(stored) : stored;
      store_if(share.inside, y(share.row, share.column), (codes[j].to(f32) * s).to(y.type()));
    }
  };
  ScalarArg count{s32, {1, 1, 2'147'483'647}};
  return tilewright::trace(trace_options, body, q_arg, scales_arg, y_arg, count);
}

}  // namespace tilewright
