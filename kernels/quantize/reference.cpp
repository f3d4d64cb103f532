// SPDX-License-Identifier: Apache-2.0
// fp8 quantisation on the host, in the f32 operations that the contract names.
#include "kernels/quantize/reference.h"

#include "tilewright/number_formats.h"

#include <cmath>

namespace tilewright {
namespace {

float largest_of(const float* group, std::size_t count) {
  float largest = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (std::isnan(group[i])) return group[i];
    largest = std::fmax(largest, std::fabs(group[i]));
  }
  return largest;
}

}  // namespace

void quantize_reference(const QuantizeOptions& options, Type scale_type, HostTensors& tensors) {
  const Array& x = tensors.at("x");
  std::vector<double> doubles = to_doubles(x);
  std::vector<float> values(doubles.begin(), doubles.end());
  auto h = static_cast<std::size_t>(x.shape.back());
  bool blocks = options.format == QuantFormat::fp8_block;
  bool given = options.format == QuantFormat::fp8_tensor;
  std::size_t group = blocks ? static_cast<std::size_t>(kQuantBlock) : h;
  Array q = make_array("q", e4m3, x.shape);
  std::vector<double> scales;
  for (std::size_t first = 0; first < values.size(); first += group) {
    float s = 0;
    if (given) {
      s = static_cast<float>(to_doubles(tensors.at("scale")).front());
    } else {
      float largest = largest_of(&values[first], group);
      s = (largest < options.floor ? options.floor : largest) / 448.0f;
      if (scale_type == ue8m0) {
        s = std::isnan(s) ? s : ue8m0_to_f32(f32_to_ue8m0(s, PowerRounding::up));
      }
      scales.push_back(static_cast<double>(s));
    }
    float inverse = 1.0f / s;
    for (std::size_t i = first; i < first + group; ++i) {
      float scaled = options.exact ? values[i] / s : values[i] * inverse;
      q.bytes[i] = static_cast<std::byte>(f32_to_e4m3(scaled));
    }
  }
  tensors.set(std::move(q));
  if (given) {
    Array scales_of_tensor = tensors.at("scale");
    scales_of_tensor.name = "scales";
    tensors.set(std::move(scales_of_tensor));
    return;
  }
  std::vector<std::int64_t> shape{static_cast<std::int64_t>(values.size() / h)};
  if (blocks) {
    shape.assign(x.shape.begin(), x.shape.end());
    shape.back() /= kQuantBlock;
  }
  tensors.set(make_array("scales", scale_type, shape, scales));
}

void dequantize_reference(QuantFormat format, HostTensors& tensors) {
  const Array& q = tensors.at("q");
  std::vector<double> y = to_doubles(q);
  std::vector<double> scales = to_doubles(tensors.at("scales"));
  auto h = static_cast<std::size_t>(q.shape.back());
  std::size_t group = format == QuantFormat::fp8_block   ? static_cast<std::size_t>(kQuantBlock)
                      : format == QuantFormat::fp8_token ? h
                                                         : y.size();
  for (std::size_t i = 0; i < y.size(); ++i)
    y[i] *= scales[i / group];
  tensors.set(make_array("y", f64, q.shape, y));
}

}  // namespace tilewright
