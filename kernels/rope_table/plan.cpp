// SPDX-License-Identifier: Apache-2.0
// The host side of rope_table: checks, the numbers of the scalings, grid.
#include "kernels/rope_table/rope_table.h"
#include "kernels/rows/row_shape.h"
#include "tilewright/stream.h"
#include "tilewright/tune.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace tilewright {
namespace {

constexpr std::int64_t kMaxWidth = 1024;  // elements of a row

constexpr std::array<tune::KeySpec, 2> kKeys{{{"width"}, {"positions", tune::Match::nearest}}};
constexpr std::array kThreads{64, 128, 256};
constexpr std::array kPositions{1, 4, 16, 64};
constexpr std::array<tune::Knob, 2> kKnobs{{{"threads", kThreads}, {"positions", kPositions}}};

/// The frequency costs about as much as one position.
tune::Config standard(const DeviceProperties&, const tune::Key&) { return {128, 16}; }
bool valid(const DeviceProperties&, const tune::Key&, const tune::Config& config) {
  return config[0] >= 32 && config[0] <= 1024 && config[0] % 32 == 0 && config[1] >= 1;
}
constexpr tune::Space kSpace{"rope_table", kKeys, kKnobs, standard, valid, {}};

void check_table(const View& table, const rows::Caller& caller) {
  rows::check_real(table, "cos_sin", caller);
  const bool fits = table.rank == 2 && table.shape[1] >= 2 && table.shape[1] % 2 == 0 &&
                    table.shape[1] <= kMaxWidth;
  if (!fits) {
    caller.refuse("cos_sin is " + to_string(table) +
                  "; it must have rows of an even number of elements, 2 to " +
                  std::to_string(kMaxWidth));
  }
  if (table.stride[1] != 1)
    caller.refuse("cos_sin is " + to_string(table) + "; its last stride must be 1");
  rows::check_distinct(table, "cos_sin", caller);
}

class OptionChecks {
 public:
  OptionChecks(const RopeTableOptions& options, const rows::Caller& caller)
      : o_(options), caller_(caller) {}

  void check() const {
    need(o_.theta > 1, "theta", o_.theta, "greater than 1");
    need(o_.factor >= 1, "factor", o_.factor, "at least 1");
    if (o_.scaling == RopeScaling::none || o_.scaling == RopeScaling::linear) return;
    need(o_.original_positions >= 1, "original_positions", o_.original_positions, "at least 1");
    if (o_.scaling == RopeScaling::llama3) {
      need(o_.low_freq_factor > 0, "low_freq_factor", o_.low_freq_factor, "greater than 0");
      need(o_.high_freq_factor > o_.low_freq_factor, "high_freq_factor", o_.high_freq_factor,
           "greater than low_freq_factor");
    }
    if (o_.scaling == RopeScaling::yarn) {
      need(o_.beta_slow > 0, "beta_slow", o_.beta_slow, "greater than 0");
      need(o_.beta_fast > o_.beta_slow, "beta_fast", o_.beta_fast, "greater than beta_slow");
      need(o_.attention.value_or(1) > 0, "attention", o_.attention.value_or(1), "greater than 0");
    }
  }

 private:
  void need(bool holds, const char* what, double value, const char* rule) const {
    if (holds && std::isfinite(value)) return;
    caller_.refuse(std::string(what) + "=" + rows::number_text(value) + "; it must be finite and " +
                   rule);
  }
  const RopeTableOptions& o_;
  const rows::Caller& caller_;
};

/// The index whose frequency makes `turns` turns within the trained context (YaRN, section 3.2).
double index_of(double turns, double width, const RopeTableOptions& o) {
  return width * std::log(o.original_positions / (2 * std::numbers::pi * turns)) /
         (2 * std::log(o.theta));
}

void set_yarn(const RopeTableOptions& o, double width, RopeNumbers& n) {
  double lowest = index_of(o.beta_fast, width, o), highest = index_of(o.beta_slow, width, o);
  if (o.truncate) {
    lowest = std::floor(lowest);
    highest = std::ceil(highest);
  }
  lowest = std::clamp(lowest, 0.0, width - 1);
  highest = std::clamp(highest, 0.0, width - 1);
  n.begin = lowest;
  n.width = highest == lowest ? 0.001 : highest - lowest;  // a step
  n.magnitude = o.attention.value_or(0.1 * std::log(o.factor) + 1);
}

RopeNumbers numbers_of(const View& table, const RopeTableOptions& o) {
  auto width = static_cast<double>(table.shape[1]);
  RopeNumbers n{.factor = o.factor};
  double theta = o.theta;
  if (o.scaling == RopeScaling::dynamic_ntk) {
    double longer = std::max(1.0, static_cast<double>(table.shape[0]) / o.original_positions);
    theta *= std::pow(o.factor * longer - (o.factor - 1), width / (width - 2));
  }
  const long double rate = -2 * std::log(static_cast<long double>(theta)) / table.shape[1];
  n.rate = static_cast<double>(rate);
  n.rate_rest = static_cast<double>(rate - n.rate);
  if (o.scaling == RopeScaling::llama3) {
    double turn = 2 * std::numbers::pi / o.original_positions;
    n.begin = o.high_freq_factor * turn;
    n.width = (o.low_freq_factor - o.high_freq_factor) * turn;
  }
  if (o.scaling == RopeScaling::yarn) set_yarn(o, width, n);
  return n;
}

RopeRamp ramp_of(RopeScaling scaling) {
  switch (scaling) {
    case RopeScaling::none:
    case RopeScaling::dynamic_ntk:
      return RopeRamp::none;
    case RopeScaling::linear:
      return RopeRamp::all;
    case RopeScaling::llama3:
      return RopeRamp::of_frequency;
    case RopeScaling::yarn:
      return RopeRamp::of_index;
  }
  return RopeRamp::none;
}

}  // namespace

RopeTablePlan plan_rope_table(const DeviceProperties& device, const View& cos_sin,
                              const RopeTableOptions& options, SourceLoc at) {
  rows::Caller caller{"rope_table", at};
  check_table(cos_sin, caller);
  OptionChecks(options, caller).check();
  if (options.scaling == RopeScaling::dynamic_ntk && cos_sin.shape[1] == 2)
    caller.refuse("cos_sin is " + to_string(cos_sin) + "; dynamic_ntk needs 4 elements a row");
  RopeTablePlan plan;
  plan.table = cos_sin;
  plan.numbers = numbers_of(cos_sin, options);
  plan.config.ramp = ramp_of(options.scaling);
  plan.config.angle = options.angle;
  plan.config.far = cos_sin.shape[0] >= std::int64_t{1} << 20;
  plan.config.has_magnitude = plan.numbers.magnitude != 1;
  const tune::Config chosen = tune::choose(kSpace, device, {cos_sin.shape[1], cos_sin.shape[0]});
  plan.config.threads = chosen[0];
  plan.config.positions = chosen[1];
  const std::int64_t work =
      rows::ceil_div(cos_sin.shape[0], plan.config.positions) * (cos_sin.shape[1] / 2);
  plan.config.wide_index = std::max(cos_sin.shape[0], work) > (std::int64_t{1} << 30);
  plan.table_arg = tensor_arg(cos_sin, {.extents = 0b01, .strides = 0b01});
  plan.launch.grid.x = rows::row_blocks(work, plan.config.threads, caller);
  plan.launch.block.x = plan.config.threads;
  return plan;
}

std::string RopeTablePlan::key() const {
  return "rope_table/3 ramp=" + std::to_string(static_cast<int>(config.ramp)) +
         (config.angle == RopeAngle::f32 ? " f32" : " f64") + (config.far ? " far" : "") +
         (config.has_magnitude ? " magnitude" : "") + (config.wide_index ? " wide" : "") +
         " t=" + std::to_string(config.threads) + " p=" + std::to_string(config.positions) + " | " +
         to_string(table_arg);
}

Parameters RopeTablePlan::parameters() const {
  Parameters parameters;
  pack(parameters, table_arg, table);
  for (double number : {numbers.rate, numbers.rate_rest, numbers.factor, numbers.begin,
                        numbers.width, numbers.magnitude}) {
    parameters.add(number);
  }
  return parameters;
}

void launch_rope_table(const Stream& stream, const RopeTablePlan& plan, SourceLoc at) {
  if (plan.launch.grid.x == 0) return;
  rows::prepare(stream.device(), plan, at).launch(stream, at);
}

void rope_table(const Stream& stream, const View& cos_sin, const RopeTableOptions& options,
                SourceLoc at) {
  launch_rope_table(stream, plan_rope_table(stream.device().properties(), cos_sin, options, at),
                    at);
}

}  // namespace tilewright
