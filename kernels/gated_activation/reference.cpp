// SPDX-License-Identifier: Apache-2.0
// The gated activations in float64, from the formulas.
#include "kernels/gated_activation/reference.h"

#include "kernels/rows/reference.h"
#include "tilewright/written.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <span>
#include <string_view>
#include <vector>

namespace tilewright {
namespace {

double cut_above(double x, double limit) { return x > limit ? limit : x; }  // NaN stays
double cut(double x, double limit) { return x < -limit ? -limit : cut_above(x, limit); }

double finite_or_0(double x) { return std::isfinite(x) ? std::fabs(x) : 0; }

/// What the activation takes the sigmoid of; 0 where it takes none.
double argument_of(const GatedOptions& options, double g) {
  switch (options.activation) {
    case Activation::silu:
      return g;
    case Activation::gelu_tanh:
      return 2 * std::sqrt(2 / std::numbers::pi) * (g + 0.044715 * g * g * g);
    case Activation::swigluoai:
      return static_cast<double>(options.alpha) * g;
    case Activation::gelu:
    case Activation::relu2:
      break;
  }
  return 0;
}

double activated(const GatedOptions& options, Type type, double g) {
  switch (options.activation) {
    case Activation::gelu:
      return g / 2 * std::erfc(-g / std::numbers::sqrt2);
    case Activation::relu2:
      return g < 0 ? 0 : in_f32_range(g * g);
    case Activation::silu:
    case Activation::gelu_tanh:
    case Activation::swigluoai:
      break;
  }
  const double power = std::exp(-argument_of(options, g));
  return g / (1 + (type == f32 ? power : in_f32_range(power)));  // f32 has a sigmoid of its own
}

double gated(const GatedOptions& options, Type type, double gate, double up) {
  double limit = options.limit;
  bool oai = options.activation == Activation::swigluoai;
  bool before = oai || options.clamp_gate == ClampGate::before;
  double act = activated(options, type, before ? cut_above(gate, limit) : gate);
  if (options.clamp_gate == ClampGate::after) act = cut_above(act, limit);
  if (options.round_act) act = decode(type, encode(type, act));
  if (options.layout == GateLayout::none) return act;
  if (oai || options.clamp_gate != ClampGate::none) up = cut(up, limit);
  return act * (oai ? up + 1 : up);
}

/// The elements of an optional tensor; none if it is absent.
std::vector<double> values_of(const HostTensors& tensors, std::string_view name) {
  const Array* array = tensors.find(name);
  return array == nullptr ? std::vector<double>{} : to_doubles(*array);
}

/// What of a result has no digits in f32: sigmoids and squares that are subnormal; all of it where
/// the exponential of an approximate sigmoid is infinite or nearly so.
double lost_in_f32(const GatedOptions& options, Type type, double gate, double up) {
  constexpr double kNearlyInfinite = -88.7;  // log(2^128) is 88.72
  constexpr double kHalfTiniest = 0x1p-150;
  if (options.activation == Activation::relu2) return kHalfTiniest * finite_or_0(up);
  const double argument = argument_of(options, gate);
  if (argument >= kNearlyInfinite && type != f32) return 0;
  const double all = gate * up;
  return finite_or_0(type == f32 ? all * 2 * kHalfTiniest : all / (1 + std::exp(-argument)));
}

/// How far a rounding to f32 of each argument, a sum with a bias, may move the result.
double moved_by_rounding(const GatedOptions& options, Type type, double gate, double up) {
  const double at = gated(options, type, gate, up);
  double moved = 0;
  for (const double part : {1 - 0x1p-24, 1 + 0x1p-24}) {
    const double by = std::fabs(gated(options, type, gate * part, up) - at) +
                      std::fabs(gated(options, type, gate, up * part) - at);
    moved = std::max(moved, finite_or_0(by));
  }
  return moved;
}

/// Of the numbers in one row of x, bias included. `allowed`: what each may be off in f32.
void gated_row(const GatedOptions& options, Type type, bool biased, std::span<const double> row,
               std::span<double> y, std::span<double> allowed) {
  const std::size_t d = y.size();
  for (std::size_t j = 0; j < d; ++j) {
    const bool alternate = options.layout == GateLayout::interleaved;
    const bool swapped = options.layout == GateLayout::swapped;
    const double gate = row[alternate ? 2 * j : swapped ? d + j : j];
    const double up = options.layout == GateLayout::none ? 1
                      : alternate                        ? row[2 * j + 1]
                                                         : row[swapped ? j : d + j];
    y[j] = gated(options, type, gate, up);
    allowed[j] = lost_in_f32(options, type, gate, up);
    if (biased) allowed[j] += moved_by_rounding(options, type, gate, up);
  }
}

}  // namespace

void gated_activation_reference(const GatedOptions& options, HostTensors& tensors) {
  const Array& x = tensors.at("x");
  const auto n = static_cast<std::size_t>(x.shape.back());
  const std::size_t d = options.layout == GateLayout::none ? n : n / 2;
  const std::vector<double> bias = values_of(tensors, "bias");
  const std::vector<double> weights = values_of(tensors, "row_weight");
  const std::vector<double> tokens = values_of(tensors, "tokens_per_expert");
  const std::vector<double> alphas = values_of(tensors, "expert_alpha");
  const std::vector<double> limits = values_of(tensors, "expert_limit");
  std::vector<double> values = to_doubles(x);
  for (std::size_t i = 0; i < values.size() && !bias.empty(); ++i)
    values[i] += bias[i % n];
  std::vector<double> y(values.size() / n * d), allowed(y.size());
  const auto rows_each =
      x.shape.size() == 3 ? static_cast<std::size_t>(x.shape[1]) : values.size() / n;
  for (std::size_t row = 0; row < values.size() / n; ++row) {
    const std::size_t expert = row / rows_each;
    const std::span<double> of_row = std::span(y).subspan(row * d, d);
    if (!tokens.empty() && static_cast<double>(row % rows_each) >= tokens[expert]) {
      std::fill(of_row.begin(), of_row.end(), std::numeric_limits<double>::quiet_NaN());
      continue;
    }
    GatedOptions mine = options;
    if (!alphas.empty()) mine.alpha = static_cast<float>(alphas[expert]);
    if (!limits.empty()) mine.limit = static_cast<float>(limits[expert]);
    const std::span<double> allowed_of_row = std::span(allowed).subspan(row * d, d);
    gated_row(mine, x.type, !bias.empty(), std::span(values).subspan(row * n, n), of_row,
              allowed_of_row);
    if (weights.empty()) continue;
    for (double& element : of_row)
      element *= weights[row];
    for (double& element : allowed_of_row)
      element *= std::fabs(weights[row]);
  }
  std::vector<std::int64_t> shape = x.shape;
  shape.back() = static_cast<std::int64_t>(d);
  tensors.set(make_array("y", f64, shape, y));
  set_allowance(tensors, "y", shape, allowed);
}

}  // namespace tilewright
