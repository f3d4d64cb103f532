// SPDX-License-Identifier: Apache-2.0
// The gated delta rule in float64, for references.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace tilewright::kda {

/// What one token does to one value head.
struct ReferenceToken {
  std::span<const double> q;      ///< [K], scaled
  std::span<const double> k;      ///< [K]
  std::span<const double> v;      ///< [V]
  std::span<const double> decay;  ///< [K]: e^g
  double beta = 0;
};

/// state [V, K] <- state diag(decay) (I - beta k k^T) + beta v k^T; out [V] = state q.
/// `correction`, unless empty, gets beta (v - state diag(decay) k).
void reference_delta_rule(const ReferenceToken& token, std::span<double> state,
                          std::span<double> out, std::span<double> correction = {});

/// scale x / sqrt(sum of squares + 1e-6), or scale x.
std::vector<double> reference_normalised(std::span<const double> x, double scale, bool l2norm);

}  // namespace tilewright::kda
