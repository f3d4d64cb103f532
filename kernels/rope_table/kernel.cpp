// SPDX-License-Identifier: Apache-2.0
// The device side of rope_table: a thread computes one frequency, then some positions of it.
#include "kernels/rope_table/rope_table.h"
#include "tilewright/control.h"
#include "tilewright/fragment.h"
#include "tilewright/math.h"
#include "tilewright/thread.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

namespace tilewright {
namespace {

// scripts/minimax.py, sin_table_f64 and cos_table_f64
constexpr double kSin[] = {-0x1.5555555555548p-3, 0x1.111111110f733p-7,   -0x1.a01a019be9d78p-13,
                           0x1.71de35560bbebp-19, -0x1.ae5e4c59909fcp-26, 0x1.5d8b9abfe6eb1p-33};
constexpr double kCos[] = {-0x1p-1,
                           0x1.5555555552d78p-5,
                           -0x1.6c16c16717293p-10,
                           0x1.a019fa551f515p-16,
                           -0x1.27e006a2f2210p-22,
                           0x1.1bbcf7be820e8p-29};
constexpr int kPositionsTogether = 8;  // in a turn of the loop, which loads the constants anew
constexpr double kRoundToInteger = 0x1.8p52;

Value real(double x) { return constant(f64, x); }
Value polynomial(const Value& x, std::span<const double> coefficients) {
  if (coefficients.size() == 1) return real(coefficients.front());
  return fma(polynomial(x, coefficients.subspan(1)), x, real(coefficients.front()));
}

/// RopeNumbers, traced.
struct Numbers {
  Value rate, rate_rest, factor, begin, width, magnitude;
};

class RopeTableKernel {
 public:
  RopeTableKernel(const RopeTableConfig& config, std::int64_t width, Numbers numbers)
      : c_(config), half_(static_cast<int>(width / 2)), n_(std::move(numbers)) {}

  void operator()(const Tensor& table) const {
    Type index = c_.wide_index ? s64 : s32;
    Value id = block_idx().x.to(index) * c_.threads + linear_thread_idx().to(index);
    Value column = (id % half_).to(s32);
    Value first = id / half_ * c_.positions;
    Value count = to_value(table.shape()[0].value()).to(index);
    if_(first < count, [&] {
      Value inverse = scaled(power(column.to(f64)), column);
      const int together = c_.far ? 1 : std::min(c_.positions, kPositionsTogether);
      Value end = min(first + c_.positions, count);
      for_(first, end, together, [&](const Value& from) {
        const Layout pair(Shape{2}, Stride{half_});
        std::vector<Tensor> at{table.at_offset(table(from, column).offset(), pair)};
        for (int i = 0; i < together; ++i) {
          write(at.back(), from + i, from + i < end, inverse);
          if (i + 1 < together)
            at.push_back(at.back().at_offset(table.layout().stride()[0].value(), pair));
        }
      });
    });
  }

 private:
  /// `pair` is where cosine and sine go: an addition from those of the position before.
  void write(const Tensor& pair, const Value& position, const Value& inside,
             const Value& inverse) const {
    const Turn turn = turn_of(angle_of(position, inverse));
    store_if(inside, pair(0), single(turn.cosine.to(pair.type())));
    store_if(inside, pair(1), single(turn.sine.to(pair.type())));
  }
  static Fragment single(const Value& x) {
    Fragment one(x.type(), 1);
    one[0] = x;
    return one;
  }

  struct Turn {
    Value cosine, sine;  ///< f32
  };

  /// e^(i rate), where the rest of a rounded product is made good.
  Value power(const Value& i) const {
    Value exponent = i * n_.rate;
    Value rest = fma(i, n_.rate_rest, fma(i, n_.rate, -exponent));
    Value near = exp(exponent);
    return fma(near, rest, near);
  }

  Turn turn_of(const Value& angle) const {
    if (c_.far) return {scaled(cos(angle)).to(f32), scaled(sin(angle)).to(f32)};
    return near_turn(angle);
  }

  /// Within 2^-51 of both for |angle| < 2^20. No f32 there lies closer to a multiple of pi/2 than
  /// 2^-32, so that two parts of it suffice; what is left of an f64 has an absolute error of 2^-52.
  Turn near_turn(const Value& angle) const {
    Value rounded = fma(angle, real(0x1.45f306dc9c883p-1), real(kRoundToInteger));
    Value n = rounded - real(kRoundToInteger);
    Value rest = fma(n, real(-0x1.1a62633145c07p-54), fma(n, real(-0x1.921fb54442d18p+0), angle));
    Value z = rest * rest;
    Value sine = scaled(fma(z * rest, polynomial(z, kSin), rest)).to(f32);
    Value cosine = scaled(fma(z, polynomial(z, kCos), real(1.0))).to(f32);
    Value quadrant = rounded.bitcast(s64).to(u32);
    Value odd = (quadrant & 1) != 0;
    Value turned = quadrant << 30;  // bit 1 is a sign
    return {with_sign(select(odd, sine, cosine), turned + (1U << 30)),
            with_sign(select(odd, cosine, sine), turned)};
  }

  /// -x where the uppermost bit is set.
  static Value with_sign(const Value& x, const Value& bits) {
    return (x.bitcast(u32) ^ (bits & 0x80000000U)).bitcast(f32);
  }

  Value scaled(const Value& x) const { return c_.has_magnitude ? x * n_.magnitude : x; }

  Value scaled(const Value& inverse, const Value& column) const {
    if (c_.ramp == RopeRamp::none) return inverse;
    if (c_.ramp == RopeRamp::all) return inverse / n_.factor;
    Value x = c_.ramp == RopeRamp::of_index ? column.to(f64) : inverse;
    Value weight = min(max((x - n_.begin) / n_.width, constant(f64, 0.0)), constant(f64, 1.0));
    return inverse / n_.factor * weight + inverse * (constant(f64, 1.0) - weight);
  }

  Value angle_of(const Value& position, const Value& inverse) const {
    if (c_.angle == RopeAngle::f64) return position.to(f64) * inverse;
    return (position.to(f32) * inverse.to(f32)).to(f64);
  }

  RopeTableConfig c_;
  int half_;
  Numbers n_;
};

}  // namespace

Traced RopeTablePlan::trace(ptx::Target target) const {
  TraceOptions options{
      .name = "rope_table_" + std::string(name(table.type)) + "_" + std::to_string(table.shape[1]),
      .target = target,
      .block = {config.threads, 1, 1}};
  ScalarArg number{f64, {}};
  auto body = [this](const Tensor& cos_sin, const Value& rate, const Value& rate_rest,
                     const Value& factor, const Value& begin, const Value& width,
                     const Value& magnitude) {
    const Numbers traced{rate, rate_rest, factor, begin, width, magnitude};
    RopeTableKernel(config, table.shape[1], traced)(cos_sin);
  };
  return tilewright::trace(options, body, table_arg, number, number, number, number, number,
                           number);
}

}  // namespace tilewright
