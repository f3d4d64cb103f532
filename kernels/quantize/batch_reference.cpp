// SPDX-License-Identifier: Apache-2.0
// Experts one by one.
#include "kernels/quantize/batch_reference.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace tilewright {
namespace {

void append(Array& all, const Array& one) {
  all.bytes.insert(all.bytes.end(), one.bytes.begin(), one.bytes.end());
}

/// [E, T, H] with `value` in the rows that do not count.
Array masked(const Array& rows, const std::vector<std::int64_t>& counts, double value) {
  std::vector<double> values = to_doubles(rows);
  const std::int64_t t = rows.shape[1], h = rows.shape[2];
  for (std::size_t e = 0; e < counts.size(); ++e) {
    const std::int64_t begin = static_cast<std::int64_t>(e) * t;
    std::fill(values.begin() + (begin + std::min(counts[e], t)) * h,
              values.begin() + (begin + t) * h, value);
  }
  return make_array(rows.name, rows.type, rows.shape, values);
}

/// The tensors that all matrices share.
HostTensors shared_of(const HostTensors& tensors) {
  HostTensors shared;
  for (const char* name : {"scale", "encode_scale", "decode_scale", "saturated"}) {
    if (const Array* array = tensors.find(name)) shared.set(*array);
  }
  return shared;
}

}  // namespace

std::vector<std::int64_t> expert_rows(const HostTensors& tensors, const Array& rows) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(rows.shape[0]), rows.shape[1]);
  const Array* tokens = tensors.find("tokens_per_expert");
  if (tokens == nullptr) return counts;
  const std::vector<double> given = to_doubles(*tokens);
  for (std::size_t i = 0; i < given.size(); ++i)
    counts[i] = static_cast<std::int64_t>(given[i]);
  return counts;
}

Array matrix_of(const Array& batch, std::size_t index) {
  Array one{batch.name, batch.type, {batch.shape.begin() + 1, batch.shape.end()}, {}};
  const auto size =
      static_cast<std::ptrdiff_t>(batch.bytes.size() / static_cast<std::size_t>(batch.shape[0]));
  const auto begin = batch.bytes.begin() + static_cast<std::ptrdiff_t>(index) * size;
  one.bytes.assign(begin, begin + size);
  return one;
}

HostTensors codes_of_batch(CodesOfBatch batch, HostTensors tensors) {
  const bool own_scales = batch.options.format != QuantFormat::fp8_tensor;
  for (std::size_t i = 0; i < batch.counts.size(); ++i) {
    HostTensors codes = batch.one(i, tensors);
    leave_rows_open(batch.options, batch.counts[i], codes);
    append(batch.q, codes.at("q"));
    if (own_scales) append(batch.scales, codes.at("scales"));
    if (const Array* saturated = codes.find("saturated")) tensors.set(*saturated);
  }
  if (!own_scales) {
    batch.scales = tensors.at("scale");
    batch.scales.name = "scales";
  }
  tensors.set(std::move(batch.q));
  tensors.set(std::move(batch.scales));
  return tensors;
}

void quantize_batch_reference(const QuantizeOptions& options, Type element, Type scale_type,
                              std::vector<std::int64_t> scales_shape, HostTensors& tensors) {
  const std::vector<std::int64_t> counts = expert_rows(tensors, tensors.at("x"));
  const Array x = masked(tensors.at("x"), counts, 0);
  HostTensors given = shared_of(tensors);
  if (options.format == QuantFormat::fp8_tensor && given.find("scale") == nullptr) {
    HostTensors all;
    all.set(x);
    quantize_reference(options, element, scale_type, all);
    Array scale = all.at("scales");
    scale.name = "scale";
    given.set(std::move(scale));
  }
  auto one = [&](std::size_t index, const HostTensors& so_far) {
    HostTensors codes = so_far;
    codes.set(matrix_of(x, index));
    quantize_reference(options, element, scale_type, codes);
    return codes;
  };
  const HostTensors codes = codes_of_batch({options,
                                            counts,
                                            {"q", f64, x.shape, {}},
                                            {"scales", scale_type, std::move(scales_shape), {}},
                                            one},
                                           given);
  for (const char* output : {"q", "scales", "saturated"}) {
    if (const Array* array = codes.find(output)) tensors.set(*array);
  }
}

void dequantize_batch_reference(const DequantizeOptions& options, HostTensors& tensors) {
  const Array& q = tensors.at("q");
  const bool own_scales = options.format != QuantFormat::fp8_tensor;
  Array y{"y", f64, q.shape, {}};
  for (std::size_t i = 0; i < static_cast<std::size_t>(q.shape[0]); ++i) {
    HostTensors one = shared_of(tensors);
    one.set(matrix_of(q, i));
    one.set(own_scales ? matrix_of(tensors.at("scales"), i) : tensors.at("scales"));
    dequantize_reference(options, one);
    append(y, one.at("y"));
  }
  const std::vector<std::int64_t> counts = expert_rows(tensors, q);
  tensors.set(masked(y, counts, std::numeric_limits<double>::quiet_NaN()));
}

}  // namespace tilewright
