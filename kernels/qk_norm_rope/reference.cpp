// SPDX-License-Identifier: Apache-2.0
// Norm and rotation of heads in float64, from the formulas.
#include "kernels/qk_norm_rope/reference.h"

#include "kernels/rows/reference.h"

#include <algorithm>

namespace tilewright {
namespace {

/// Turns the first table.size() elements of a head: the table has cosines, then sines.
void rotate(RopeStyle style, std::span<const double> table, std::span<double> head) {
  std::size_t half = table.size() / 2;
  for (std::size_t i = 0; i < half; ++i) {
    double& a = style == RopeStyle::neox ? head[i] : head[2 * i];
    double& b = style == RopeStyle::neox ? head[i + half] : head[2 * i + 1];
    double turned = a * table[i] - b * table[half + i];
    b = b * table[i] + a * table[half + i];
    a = turned;
  }
}

std::vector<double> doubles_of(const HostTensors& tensors, const char* name) {
  const Array* array = tensors.find(name);
  return array == nullptr ? std::vector<double>{} : to_doubles(*array);
}

Array heads_reference(const QkOptions& options, const HostTensors& tensors, const Array& in,
                      const std::string& out, const char* weight) {
  std::vector<double> weights = doubles_of(tensors, weight);
  std::vector<double> positions = doubles_of(tensors, "positions");
  std::vector<double> table = doubles_of(tensors, "cos_sin");
  std::vector<double> values = to_doubles(in);
  auto d = static_cast<std::size_t>(in.shape[2]);
  std::size_t token_elems = d * static_cast<std::size_t>(in.shape[1]);
  RowNormOptions norm{.eps = options.eps, .weight_bias = options.weight_bias};
  for (std::size_t at = 0; at < values.size(); at += d) {
    std::span<double> head = std::span(values).subspan(at, d);
    if (options.norm) {
      std::vector<double> before(head.begin(), head.end());
      reference_rms_norm(before, weights, in.type, norm, head);
      for (double& element : head) {
        if (options.round_between) element = decode(in.type, encode(in.type, element));
      }
    }
    if (options.style == RopeStyle::none) continue;
    auto width = static_cast<std::size_t>(tensors.at("cos_sin").shape[1]);
    auto row = static_cast<std::size_t>(std::max(0.0, positions[at / token_elems]));
    rotate(options.style, std::span(table).subspan(row * width, width), head);
  }
  return make_array(out, f64, in.shape, values);
}

}  // namespace

void qk_reference(const QkOptions& options, HostTensors& tensors, const std::string& q_out,
                  const std::string& k_out) {
  Array q = heads_reference(options, tensors, tensors.at("q"), q_out, "q_weight");
  Array k = heads_reference(options, tensors, tensors.at("k"), k_out, "k_weight");
  tensors.set(std::move(q));
  tensors.set(std::move(k));
}

}  // namespace tilewright
