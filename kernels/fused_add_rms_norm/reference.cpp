// SPDX-License-Identifier: Apache-2.0
// fused_add_rms_norm in float64, from the formula.
#include "kernels/fused_add_rms_norm/reference.h"

namespace tilewright {

void fused_add_rms_norm_reference(const RowNormOptions& options, HostTensors& tensors) {
  const Array& x = tensors.at("x");
  std::vector<double> weights;
  if (const Array* w = tensors.find("w")) weights = to_doubles(*w);
  ReferenceSums sums = reference_sums(tensors);
  const std::vector<double>& z =
      options.rounding == SumRounding::keep_f32 ? sums.unrounded : sums.stored;
  auto h = static_cast<std::size_t>(x.shape.back());
  std::vector<double> y(z.size());
  for (std::size_t at = 0; at < z.size(); at += h) {
    reference_rms_norm(std::span(z).subspan(at, h), weights, x.type, options,
                       std::span(y).subspan(at, h));
  }
  std::vector<std::int64_t> shape = x.shape;
  allow_subnormal_products(weights, options, shape, tensors);
  tensors.set(make_array("y", f64, shape, y));
  tensors.set(make_array("residual_out", f64, shape, sums.stored));
}

}  // namespace tilewright
