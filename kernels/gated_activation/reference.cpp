// SPDX-License-Identifier: Apache-2.0
// The gated activations in float64, from the formulas.
#include "kernels/gated_activation/reference.h"

#include <cmath>
#include <numbers>

namespace tilewright {
namespace {

double cut_above(double x, double limit) { return x > limit ? limit : x; }  // NaN stays
double cut(double x, double limit) { return x < -limit ? -limit : cut_above(x, limit); }

/// The kernel computes in f32: beyond its range numbers are infinite.
double in_range(double x) {
  return std::fabs(x) > 3.4028235677973366e38 ? std::copysign(INFINITY, x) : x;
}

double activated(const GatedOptions& options, double g) {
  switch (options.activation) {
    case Activation::silu:
      return g / (1 + std::exp(-g));
    case Activation::gelu:
      return g / 2 * std::erfc(-g / std::numbers::sqrt2);
    case Activation::gelu_tanh: {
      double z = std::sqrt(2 / std::numbers::pi) * (g + 0.044715 * g * g * g);
      return g / (1 + std::exp(-2 * z));
    }
    case Activation::swigluoai:
      return g / (1 + std::exp(-static_cast<double>(options.alpha) * g));
    case Activation::relu2:
      break;
  }
  return g < 0 ? 0 : in_range(g * g);
}

double gated(const GatedOptions& options, Type type, double gate, double up) {
  double limit = options.limit;
  bool oai = options.activation == Activation::swigluoai;
  bool before = oai || options.clamp_gate == ClampGate::before;
  double act = activated(options, before ? cut_above(gate, limit) : gate);
  if (options.clamp_gate == ClampGate::after) act = cut_above(act, limit);
  if (options.round_act) act = decode(type, encode(type, act));
  if (options.layout == GateLayout::none) return act;
  if (oai || options.clamp_gate != ClampGate::none) up = cut(up, limit);
  return act * (oai ? up + 1 : up);
}

}  // namespace

void gated_activation_reference(const GatedOptions& options, HostTensors& tensors) {
  const Array& x = tensors.at("x");
  const Array* bias = tensors.find("bias");
  const Array* row_weight = tensors.find("row_weight");
  std::vector<double> values = to_doubles(x);
  auto n = static_cast<std::size_t>(x.shape.back());
  if (bias != nullptr) {
    std::vector<double> added = to_doubles(*bias);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] += added[i % n];
  }
  std::vector<double> weights;
  if (row_weight != nullptr) weights = to_doubles(*row_weight);
  std::size_t d = options.layout == GateLayout::none ? n : n / 2;
  std::vector<double> y(values.size() / n * d);
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double* row = values.data() + i / d * n;
    std::size_t j = i % d;
    bool alternate = options.layout == GateLayout::interleaved;
    bool swapped = options.layout == GateLayout::swapped;
    double gate = row[alternate ? 2 * j : swapped ? d + j : j];
    double up = options.layout == GateLayout::none ? 1
                : alternate                        ? row[2 * j + 1]
                                                   : row[swapped ? j : d + j];
    y[i] = gated(options, x.type, gate, up);
    if (row_weight != nullptr) y[i] *= weights[i / d];
  }
  std::vector<std::int64_t> shape = x.shape;
  shape.back() = static_cast<std::int64_t>(d);
  tensors.set(make_array("y", f64, shape, y));
}

}  // namespace tilewright
