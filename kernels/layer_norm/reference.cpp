// SPDX-License-Identifier: Apache-2.0
// layer_norm in float64, from the formula.
#include "kernels/layer_norm/reference.h"

#include "kernels/rows/reference.h"
#include "tilewright/written.h"

#include <cmath>

namespace tilewright {
namespace {

/// The mean and the mean square distance from it.
std::pair<double, double> moments(std::span<const double> z) {
  auto count = static_cast<double>(z.size());
  double sum = 0;
  for (double element : z)
    sum += element;
  double mean = in_f32_range(sum) / count;
  double squares = 0;
  for (double element : z)
    squares += (element - mean) * (element - mean);
  return {mean, in_f32_range(squares) / count};
}

}  // namespace

double layer_norm_units(std::int64_t h) { return std::log2(static_cast<double>(h)) + 12; }

void layer_norm_reference(const LayerNormOptions& options, HostTensors& tensors) {
  const Array& x = tensors.at("x");
  std::vector<double> weights, biases;
  if (const Array* w = tensors.find("w")) weights = to_doubles(*w);
  if (const Array* bias = tensors.find("bias")) biases = to_doubles(*bias);
  ReferenceSums sums = reference_sums(tensors);
  const std::vector<double>& z =
      options.rounding == SumRounding::keep_f32 ? sums.unrounded : sums.stored;
  auto h = static_cast<std::size_t>(x.shape.back());
  const auto counted = options.partial > 0 ? static_cast<std::size_t>(options.partial) : h;
  const double units = layer_norm_units(static_cast<std::int64_t>(h));
  std::vector<double> y(z.size()), allowed(z.size()), factors;
  for (std::size_t at = 0; at < z.size(); at += h) {
    auto [mean, variance] = moments(std::span(z).subspan(at, counted));
    double factor = 1 / std::sqrt(variance + static_cast<double>(options.eps));
    factors.push_back(factor);
    for (std::size_t j = 0; j < h; ++j) {
      double weight = (weights.empty() ? 1 : weights[j]) + static_cast<double>(options.weight_bias);
      double scaled = (z[at + j] - mean) * factor;
      if (options.order == WeightOrder::after_rounding)
        scaled = decode(x.type, encode(x.type, scaled));
      y[at + j] = scaled * weight + (biases.empty() ? 0 : biases[j]);
      const double cancelled = (std::fabs(z[at + j]) + std::fabs(mean)) * factor;
      allowed[at + j] = (units * 0x1p-24 * cancelled + 0x1p-150) * std::fabs(weight);
    }
  }
  std::vector<std::int64_t> shape = x.shape;
  tensors.set(make_array("y", f64, shape, y));
  set_allowance(tensors, "y", shape, allowed);
  tensors.set(make_array("residual_out", f64, shape, sums.stored));
  const auto rows = static_cast<std::int64_t>(factors.size());
  tensors.set(make_array("rstd", f64, {rows}, factors));
}

}  // namespace tilewright
