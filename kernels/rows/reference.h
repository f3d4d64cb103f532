// SPDX-License-Identifier: Apache-2.0
// What the float64 references of norms over rows share.
#pragma once

#include "kernels/rows/row_norm.h"
#include "tilewright/operator.h"

#include <span>
#include <vector>

namespace tilewright {

/// z as the contract defines it, in row-major order: x, or x + residual (+ extra), each sum rounded
/// to f32. `stored` is z rounded to residual's type.
struct ReferenceSums {
  std::vector<double> unrounded;
  std::vector<double> stored;
};
ReferenceSums reference_sums(const HostTensors& tensors);

/// x, or infinity: kernels sum in f32, whose range ends there (contract, hard inputs).
double in_f32_range(double x);

/// y of one row: z / sqrt(mean(z^2) + eps) * (weights + weight_bias), without weights if there are
/// none. Returns the factor of the row. Pre: y has z's size.
double reference_rms_norm(std::span<const double> z, std::span<const double> weights, Type x_type,
                          const RowNormOptions& options, std::span<double> y);

/// The allowance of y of `shape`: its first product is rounded where it is subnormal, too.
void allow_subnormal_products(std::span<const double> weights, const RowNormOptions& options,
                              const std::vector<std::int64_t>& shape, HostTensors& tensors);

}  // namespace tilewright
