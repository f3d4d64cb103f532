// SPDX-License-Identifier: Apache-2.0
// Sums and root-mean-square norms of rows in float64, from the formulas.
#include "kernels/rows/reference.h"

#include "tilewright/written.h"

#include <cmath>

namespace tilewright {
namespace {

double rounded(Type type, double value) { return decode(type, encode(type, value)); }

}  // namespace

ReferenceSums reference_sums(const HostTensors& tensors) {
  ReferenceSums sums;
  sums.unrounded = to_doubles(tensors.at("x"));
  const Array* residual = tensors.find("residual");
  if (residual == nullptr) {
    sums.stored = sums.unrounded;
    return sums;
  }
  for (const Array* addend : {residual, tensors.find("extra")}) {
    if (addend == nullptr) continue;
    std::vector<double> values = to_doubles(*addend);
    for (std::size_t i = 0; i < values.size(); ++i)
      sums.unrounded[i] = rounded(f32, sums.unrounded[i] + values[i]);
  }
  for (double value : sums.unrounded)
    sums.stored.push_back(rounded(residual->type, value));
  return sums;
}

double in_f32_range(double x) {
  return std::fabs(x) > 3.4028235677973366e38 ? std::copysign(INFINITY, x) : x;
}

double reference_rms_norm(std::span<const double> z, std::span<const double> weights, Type x_type,
                          const RowNormOptions& options, std::span<double> y) {
  std::size_t mean_over =
      options.partial > 0 ? static_cast<std::size_t>(options.partial) : z.size();
  double sum = 0;
  for (std::size_t j = 0; j < mean_over; ++j)
    sum += z[j] * z[j];
  double mean = in_f32_range(sum) / static_cast<double>(mean_over);
  double factor = 1 / std::sqrt(mean + static_cast<double>(options.eps));
  for (std::size_t j = 0; j < z.size(); ++j) {
    double scaled = z[j] * factor;
    if (options.order == WeightOrder::after_rounding) scaled = rounded(x_type, scaled);
    double weight = (weights.empty() ? 1 : weights[j]) + static_cast<double>(options.weight_bias);
    y[j] = scaled * weight;
  }
  return factor;
}

void allow_subnormal_products(std::span<const double> weights, const RowNormOptions& options,
                              const std::vector<std::int64_t>& shape, HostTensors& tensors) {
  const auto h = static_cast<std::size_t>(shape.back());
  std::vector<double> allowed(static_cast<std::size_t>(element_count(shape)));
  for (std::size_t i = 0; i < allowed.size(); ++i) {
    const double weight = weights.empty() ? 1 : weights[i % h];
    allowed[i] = std::fabs(weight + static_cast<double>(options.weight_bias)) * 0x1p-150;
  }
  set_allowance(tensors, "y", shape, allowed);
}

}  // namespace tilewright
