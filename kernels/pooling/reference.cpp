// SPDX-License-Identifier: Apache-2.0
// Means and rows of sequences in float64.
#include "kernels/pooling/reference.h"

#include "kernels/rows/reference.h"
#include "tilewright/written.h"

#include <algorithm>
#include <cmath>

namespace tilewright {
namespace {

/// Returns what elements were multiplied with.
double normalise(std::span<double> row) {
  double squares = 0;
  for (double x : row)
    squares += x * x;
  const double norm = std::sqrt(in_f32_range(squares));
  const double length = norm < 1e-12 ? 1e-12 : norm;
  for (double& x : row)
    x /= length;
  return 1 / length;
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
  std::vector<double> out(sequences * width), allowed(out.size());
  for (std::size_t b = 0; b < sequences; ++b) {
    const std::span<double> row = std::span(out).subspan(b * width, width);
    const std::span<double> sizes = std::span(allowed).subspan(b * width, width);
    auto begin = static_cast<std::int64_t>(bounds[b]),
         end = static_cast<std::int64_t>(bounds[b + 1]);
    if (options.mode == PoolingMode::last) begin = std::max(begin, end - 1);
    if (options.mode == PoolingMode::cls) end = std::min(end, begin + 1);
    double count = 0;
    for (std::int64_t t = begin; t < end; ++t) {
      if (included[static_cast<std::size_t>(t)] == 0) continue;
      ++count;
      for (std::size_t j = 0; j < width; ++j) {
        const double x = values[static_cast<std::size_t>(t * hidden.shape[1]) + j];
        row[j] += x;
        sizes[j] += std::fabs(x);
      }
    }
    for (double& x : row)
      x = count == 0 ? 0 : x / count;
    const double units = (std::log2(std::max(count, 1.0)) + 8) * 0x1p-24;
    const double factor = options.normalize ? normalise(row) : 1;
    double together = 0;  // of means that are off, the norm is
    for (double& x : sizes) {
      x *= count == 0 || options.mode != PoolingMode::mean ? 0 : units / count * factor;
      together += x * x;
    }
    for (std::size_t j = 0; j < width && options.normalize; ++j)
      sizes[j] += std::sqrt(together) * std::fabs(row[j]);
  }
  const std::vector<std::int64_t> shape{static_cast<std::int64_t>(sequences), columns};
  set_allowance(tensors, "out", shape, allowed);
  tensors.set(make_array("out", f64, shape, out));
}

}  // namespace tilewright
