// SPDX-License-Identifier: Apache-2.0
// The gated delta rule in float64, step by step.
#include "kernels/kda/reference.h"

#include "kernels/rows/rows.h"

#include <cmath>

namespace tilewright::kda {

void reference_delta_rule(const ReferenceToken& token, std::span<double> state,
                          std::span<double> out, std::span<double> correction) {
  std::size_t k = token.k.size();
  for (std::size_t row = 0; row < token.v.size(); ++row) {
    std::span<double> s = state.subspan(row * k, k);
    double predicted = 0;
    for (std::size_t i = 0; i < k; ++i) {
      s[i] *= token.decay[i];
      predicted += s[i] * token.k[i];
    }
    double d = token.beta * (token.v[row] - predicted);
    double read = 0;
    for (std::size_t i = 0; i < k; ++i) {
      s[i] += d * token.k[i];
      read += s[i] * token.q[i];
    }
    out[row] = read;
    if (!correction.empty()) correction[row] = d;
  }
}

std::vector<double> reference_normalised(std::span<const double> x, double scale, bool l2norm) {
  double squares = 0;
  for (double each : x)
    squares += each * each;
  double factor = l2norm ? scale / std::sqrt(squares + 1e-6) : scale;
  std::vector<double> out(x.begin(), x.end());
  for (double& each : out)
    each *= factor;
  return out;
}

Tolerance token_tolerance(std::string_view output) {
  if (output != "out") return {.rmse = 1e-6};
  return {.relative = rows::half_ulp(bf16),
          .of_row_max = 0x1p-18,
          .of_max = 0x1p-22,
          .absolute = 0x1p-126};
}

}  // namespace tilewright::kda
