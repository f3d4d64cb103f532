// SPDX-License-Identifier: Apache-2.0
// Weighted sums of rows by slot in float64.
#include "kernels/moe_combine/reference.h"

#include <cmath>

namespace tilewright {

void moe_combine_reference(bool accumulate, HostTensors& tensors) {
  const Array& y = tensors.at("y");
  const Array& weights = tensors.at("weights");
  const Array* start = accumulate ? tensors.find("out") : tensors.find("shared");
  std::vector<double> rows = to_doubles(y), factors = to_doubles(weights);
  std::vector<double> slots = to_doubles(tensors.at("slot"));
  std::int64_t tokens = weights.shape[0], k = weights.shape[1], h = y.shape[1];
  std::vector<double> out(static_cast<std::size_t>(tokens * h));
  if (start != nullptr) out = to_doubles(*start);
  for (std::int64_t choice = 0; choice < tokens * k; ++choice) {
    auto c = static_cast<std::size_t>(choice);
    if (slots[c] < 0 || slots[c] >= static_cast<double>(y.shape[0])) continue;
    auto from = static_cast<std::size_t>(slots[c]) * static_cast<std::size_t>(h);
    auto to = static_cast<std::size_t>(choice / k * h);
    for (std::size_t j = 0; j < static_cast<std::size_t>(h); ++j)
      out[to + j] += factors[c] * rows[from + j];
  }
  tensors.set(make_array("out", f64, {tokens, h}, out));
}

}  // namespace tilewright
