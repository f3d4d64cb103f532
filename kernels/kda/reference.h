// SPDX-License-Identifier: Apache-2.0
// The gated delta rule in float64, for references, and how near to it results are.
#pragma once

#include "tilewright/operator.h"

#include <cstddef>
#include <span>
#include <string_view>
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

/// Of results that f32 arithmetic computes token by token; "out" is rounded to bf16 besides. A row
/// of `out` may be what is left of sums of far larger terms (a token whose v the state predicts
/// right), so that it is held against the largest numbers of all rows, too; what is below the
/// normal numbers of f32 may be lost.
Tolerance token_tolerance(std::string_view output);

}  // namespace tilewright::kda
