// SPDX-License-Identifier: Apache-2.0
// Rotary tables on the host, frequency by frequency as the scalings' papers and checkpoints have
// it.
#include "kernels/rope_table/reference.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tilewright {
namespace {

double llama3_frequency(double frequency, const RopeTableOptions& o) {
  const double wavelength = 2 * std::numbers::pi / frequency;
  if (wavelength < o.original_positions / o.high_freq_factor) return frequency;
  if (wavelength > o.original_positions / o.low_freq_factor) return frequency / o.factor;
  const double kept = (o.original_positions / wavelength - o.low_freq_factor) /
                      (o.high_freq_factor - o.low_freq_factor);
  return (1 - kept) * frequency / o.factor + kept * frequency;
}

double yarn_frequency(double frequency, double i, double width, const RopeTableOptions& o) {
  auto bound = [&](double beta) {
    return width * std::log(o.original_positions / (beta * 2 * std::numbers::pi)) /
           (2 * std::log(o.theta));
  };
  double low = bound(o.beta_fast), high = bound(o.beta_slow);
  if (o.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::clamp(low, 0.0, width - 1);
  high = std::clamp(high, 0.0, width - 1);
  if (low == high) high += 0.001;
  const double divided = std::clamp((i - low) / (high - low), 0.0, 1.0);
  return frequency / o.factor * divided + frequency * (1 - divided);
}

double frequency_of(std::int64_t i, std::int64_t positions, std::int64_t width,
                    const RopeTableOptions& o) {
  const auto r = static_cast<double>(width), index = static_cast<double>(i);
  double theta = o.theta;
  if (o.scaling == RopeScaling::dynamic_ntk) {
    const double length = std::max(static_cast<double>(positions), o.original_positions);
    theta *= std::pow(o.factor * length / o.original_positions - (o.factor - 1), r / (r - 2));
  }
  const double frequency = std::pow(theta, -2 * index / r);
  switch (o.scaling) {
    case RopeScaling::none:
    case RopeScaling::dynamic_ntk:
      return frequency;
    case RopeScaling::linear:
      return frequency / o.factor;
    case RopeScaling::llama3:
      return llama3_frequency(frequency, o);
    case RopeScaling::yarn:
      return yarn_frequency(frequency, index, r, o);
  }
  return frequency;
}

}  // namespace

void rope_table_reference(std::int64_t positions, std::int64_t width,
                          const RopeTableOptions& options, HostTensors& tensors) {
  double magnitude = 1;
  if (options.scaling == RopeScaling::yarn)
    magnitude = options.attention.value_or(0.1 * std::log(options.factor) + 1);
  const std::int64_t half = width / 2;
  std::vector<double> values(static_cast<std::size_t>(positions * width));
  for (std::int64_t i = 0; i < half; ++i) {
    const double frequency = frequency_of(i, positions, width, options);
    for (std::int64_t p = 0; p < positions; ++p) {
      double angle = static_cast<double>(p) * frequency;
      if (options.angle == RopeAngle::f32)
        angle = static_cast<double>(static_cast<float>(p) * static_cast<float>(frequency));
      values[static_cast<std::size_t>(p * width + i)] = std::cos(angle) * magnitude;
      values[static_cast<std::size_t>(p * width + half + i)] = std::sin(angle) * magnitude;
    }
  }
  tensors.set(make_array("cos_sin", f64, {positions, width}, values));
}

}  // namespace tilewright
