// SPDX-License-Identifier: Apache-2.0
// rms_norm in float64, from the formula.
#include "kernels/rms_norm/reference.h"

namespace tilewright {

void rms_norm_reference(const RowNormOptions& options, HostTensors& tensors) {
  const Array& x = tensors.at("x");
  std::vector<double> weights;
  if (const Array* w = tensors.find("w")) weights = to_doubles(*w);
  std::vector<double> values = to_doubles(x);
  auto h = static_cast<std::size_t>(x.shape.back());
  std::vector<double> y(values.size());
  std::vector<double> rstd;
  for (std::size_t at = 0; at < values.size(); at += h) {
    rstd.push_back(reference_rms_norm(std::span(values).subspan(at, h), weights, x.type, options,
                                      std::span(y).subspan(at, h)));
  }
  auto rows = static_cast<std::int64_t>(rstd.size());
  allow_subnormal_products(weights, options, x.shape, tensors);
  tensors.set(make_array("y", f64, x.shape, y));
  tensors.set(make_array("rstd", f64, {rows}, rstd));
}

}  // namespace tilewright
