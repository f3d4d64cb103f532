// SPDX-License-Identifier: Apache-2.0
// The device side of rope_table: a thread computes one frequency, then some positions of it.
#include "kernels/rope_table/rope_table.h"
#include "tilewright/control.h"
#include "tilewright/math.h"
#include "tilewright/thread.h"

namespace tilewright {
namespace {

class RopeTableKernel {
 public:
  RopeTableKernel(const RopeTableConfig& config, std::int64_t width)
      : c_(config), half_(static_cast<int>(width / 2)) {}

  void operator()(const Tensor& table, const Value& theta, const Value& factor, const Value& begin,
                  const Value& width, const Value& magnitude) const {
    Type index = c_.wide_index ? s64 : s32;
    Value id = block_idx().x.to(index) * c_.threads + linear_thread_idx().to(index);
    Value column = (id % half_).to(s32);
    Value first = id / half_ * c_.positions;
    Value count = to_value(table.shape()[0].value()).to(index);
    if_(first < count, [&] {
      Value trained = pow(theta, column.to(f64) * -2.0 / (2.0 * half_));
      Value inverse = scaled(trained, column, factor, begin, width);
      for_(first, min(first + c_.positions, count), 1, [&](const Value& position) {
        Value angle = angle_of(position, inverse);
        Value cosine = times(cos(angle), magnitude), sine = times(sin(angle), magnitude);
        table(position, column) = cosine.to(f32).to(table.type());
        table(position, column + half_) = sine.to(f32).to(table.type());
      });
    });
  }

 private:
  Value times(const Value& x, const Value& magnitude) const {
    return c_.has_magnitude ? x * magnitude : x;
  }

  Value scaled(const Value& inverse, const Value& column, const Value& factor, const Value& begin,
               const Value& width) const {
    if (c_.ramp == RopeRamp::none) return inverse;
    if (c_.ramp == RopeRamp::all) return inverse / factor;
    Value x = c_.ramp == RopeRamp::of_index ? column.to(f64) : inverse;
    Value weight = min(max((x - begin) / width, constant(f64, 0.0)), constant(f64, 1.0));
    return inverse / factor * weight + inverse * (constant(f64, 1.0) - weight);
  }

  Value angle_of(const Value& position, const Value& inverse) const {
    if (c_.angle == RopeAngle::f64) return position.to(f64) * inverse;
    return (position.to(f32) * inverse.to(f32)).to(f64);
  }

  RopeTableConfig c_;
  int half_;
};

}  // namespace

Traced RopeTablePlan::trace(ptx::Target target) const {
  TraceOptions options{
      .name = "rope_table_" + std::string(name(table.type)) + "_" + std::to_string(table.shape[1]),
      .target = target,
      .block = {config.threads, 1, 1}};
  ScalarArg number{f64, {}};
  return tilewright::trace(options, RopeTableKernel(config, table.shape[1]), table_arg, number,
                           number, number, number, number);
}

}  // namespace tilewright
