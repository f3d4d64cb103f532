// SPDX-License-Identifier: Apache-2.0
// Norm and rotation of heads in float64, from the formulas.
#include "kernels/qk_norm_rope/reference.h"

#include "kernels/reshape_and_cache/cache_codes.h"
#include "kernels/rows/reference.h"

#include <algorithm>
#include <cmath>

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

/// What a row of a table would be: cosines, then sines.
std::vector<double> turn_of(const QkOptions& options, const std::vector<double>& frequencies,
                            double position) {
  const std::size_t half = frequencies.size();
  const auto factor = static_cast<double>(options.attention_factor);
  std::vector<double> turn(2 * half);
  for (std::size_t i = 0; i < half; ++i) {
    const float angle = static_cast<float>(position) * static_cast<float>(frequencies[i]);
    turn[i] = std::cos(static_cast<double>(angle)) * factor;
    turn[half + i] = std::sin(static_cast<double>(angle)) * factor;
  }
  return turn;
}

Array heads_reference(const QkOptions& options, const HostTensors& tensors, const Array& in,
                      const std::string& out, const char* weight) {
  std::vector<double> weights = doubles_of(tensors, weight);
  std::vector<double> positions = doubles_of(tensors, "positions");
  std::vector<double> table = doubles_of(tensors, "cos_sin");
  std::vector<double> frequencies = doubles_of(tensors, "inv_freq");
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
    const double position = std::max(0.0, positions[at / token_elems]);
    if (!frequencies.empty()) {
      rotate(options.style, turn_of(options, frequencies, position), head);
      continue;
    }
    auto width = static_cast<std::size_t>(tensors.at("cos_sin").shape[1]);
    auto row = static_cast<std::size_t>(position);
    rotate(options.style, std::span(table).subspan(row * width, width), head);
  }
  return make_array(out, f64, in.shape, values);
}

/// The cache with heads [T, Hk, D] at their slots, in f64 as they are computed: without the last
/// rounding of codes.
Array cache_reference(const Array& cache, const Array& heads, const Array* scale,
                      const std::vector<double>& slots, CacheLayout layout) {
  const bool nhd = layout == CacheLayout::nhd;
  const std::int64_t page_size = cache.shape[nhd ? 1 : 2], k = heads.shape[1], d = heads.shape[2];
  const std::vector<double> values = to_doubles(heads);
  const std::vector<double> scales = scale == nullptr ? std::vector<double>{1} : to_doubles(*scale);
  const bool converts = cache.type == e4m3 || cache.type == e5m2;
  std::vector<double> out = to_doubles(cache);
  for (std::size_t t = 0; t < slots.size(); ++t) {
    const auto slot = static_cast<std::int64_t>(slots[t]);
    if (slot < 0 || slot >= cache.shape[0] * page_size) continue;
    const std::int64_t page = slot / page_size, place = slot % page_size;
    for (std::int64_t h = 0; h < k; ++h) {
      const std::int64_t row =
          nhd ? (page * page_size + place) * k + h : (page * k + h) * page_size + place;
      const double divisor = scales[scales.size() == 1 ? 0 : static_cast<std::size_t>(h)];
      auto number = [&](double x) { return converts ? cache_number(x, divisor, cache.type) : x; };
      const auto from = values.begin() + (static_cast<std::int64_t>(t) * k + h) * d;
      std::transform(from, from + d, out.begin() + row * d, number);
    }
  }
  return make_array(cache.name, f64, cache.shape, out);
}

}  // namespace

void qk_reference(const QkOptions& options, HostTensors& tensors, const std::string& q_out,
                  const std::string& k_out) {
  Array q = heads_reference(options, tensors, tensors.at("q"), q_out, "q_weight");
  Array k = heads_reference(options, tensors, tensors.at("k"), k_out, "k_weight");
  if (tensors.find("slot_mapping") != nullptr) {
    const std::vector<double> slots = doubles_of(tensors, "slot_mapping");
    const Array& values = tensors.at("value_cache");
    Array copied = cache_reference(values, tensors.at("v"), tensors.find("v_scale"), slots,
                                   options.cache_layout);
    copied = make_array("value_cache", values.type, values.shape, to_doubles(copied));
    tensors.set(cache_reference(tensors.at("key_cache"), k, tensors.find("k_scale"), slots,
                                options.cache_layout));
    tensors.set(std::move(copied));
  }
  tensors.set(std::move(q));
  tensors.set(std::move(k));
}

}  // namespace tilewright
