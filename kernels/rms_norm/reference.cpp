// SPDX-License-Identifier: Apache-2.0
// rms_norm in float64, from the formula.
#include "kernels/rms_norm/reference.h"

#include <cmath>

namespace tilewright {

void rms_norm_reference(const RmsNormReferenceOptions& options, HostTensors& tensors) {
  const Array& x = tensors.at("x");
  const Array* w = tensors.find("w");
  std::vector<double> values = to_doubles(x);
  std::vector<double> weights;
  if (w != nullptr) weights = to_doubles(*w);
  auto h = static_cast<std::size_t>(x.shape.back());
  std::size_t rows = values.size() / h;
  std::size_t mean_over = options.partial > 0 ? static_cast<std::size_t>(options.partial) : h;
  std::vector<double> y(values.size());
  std::vector<double> rstd(rows);
  for (std::size_t row = 0; row < rows; ++row) {
    double sum = 0;
    for (std::size_t j = 0; j < mean_over; ++j) {
      double element = values[row * h + j];
      sum += element * element;
    }
    // The sum of squares is a binary32 number: beyond it the mean is infinite (contract, hard
    // inputs).
    double mean = sum > 3.4028235677973366e38 ? INFINITY : sum / static_cast<double>(mean_over);
    rstd[row] = 1 / std::sqrt(mean + options.eps);
    for (std::size_t j = 0; j < h; ++j) {
      double scaled = values[row * h + j] * rstd[row];
      if (options.round_first) scaled = decode(x.type, encode(x.type, scaled));
      double weight = w != nullptr ? weights[j] + options.weight_bias : 1;
      y[row * h + j] = scaled * weight;
    }
  }
  tensors.set(make_array("y", f64, x.shape, y));
  tensors.set(make_array("rstd", f64, {static_cast<std::int64_t>(rows)}, rstd));
}

}  // namespace tilewright
