// SPDX-License-Identifier: Apache-2.0
// Means and rows of sequences in float64.
#include "kernels/pooling/reference.h"

#include <algorithm>
#include <cmath>

namespace tilewright {
namespace {

void normalise(std::span<double> row) {
  double squares = 0;
  for (double x : row)
    squares += x * x;
  const double norm = std::sqrt(squares);
  for (double& x : row)
    x /= norm < 1e-12 ? 1e-12 : norm;
}

/// Where sequences begin, and the end.
std::vector<double> starts_of(const HostTensors& tensors) {
  if (const Array* starts = tensors.find("cu_seqlens")) return to_doubles(*starts);
  std::vector<double> starts{0};
  for (double length : to_doubles(tensors.at("lengths")))
    starts.push_back(starts.back() + std::max(length, 0.0));
  return starts;
}

}  // namespace

void pooling_reference(const PoolingOptions& options, std::int64_t columns, HostTensors& tensors) {
  const Array& hidden = tensors.at("hidden");
  const std::vector<double> values = to_doubles(hidden), bounds = starts_of(tensors);
  const Array* mask = tensors.find("mask");
  const std::vector<double> included =
      mask == nullptr ? std::vector<double>(static_cast<std::size_t>(hidden.shape[0]), 1.0)
                      : to_doubles(*mask);
  const std::size_t sequences = bounds.size() - 1, width = static_cast<std::size_t>(columns);
  std::vector<double> out(sequences * width);
  for (std::size_t b = 0; b < sequences; ++b) {
    const std::span<double> row = std::span(out).subspan(b * width, width);
    auto begin = static_cast<std::int64_t>(bounds[b]),
         end = static_cast<std::int64_t>(bounds[b + 1]);
    if (options.mode == PoolingMode::last) begin = std::max(begin, end - 1);
    if (options.mode == PoolingMode::cls) end = std::min(end, begin + 1);
    double count = 0;
    for (std::int64_t t = begin; t < end; ++t) {
      if (included[static_cast<std::size_t>(t)] == 0) continue;
      ++count;
      for (std::size_t j = 0; j < width; ++j)
        row[j] += values[static_cast<std::size_t>(t * hidden.shape[1]) + j];
    }
    for (double& x : row)
      x = count == 0 ? 0 : x / count;
    if (options.normalize) normalise(row);
  }
  tensors.set(make_array("out", f64, {static_cast<std::int64_t>(sequences), columns}, out));
}

}  // namespace tilewright
