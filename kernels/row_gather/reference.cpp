// SPDX-License-Identifier: Apache-2.0
// Rows by index on the host: bits, and numbers in float64.
#include "kernels/row_gather/reference.h"

#include "kernels/rows/reference.h"

#include <algorithm>
#include <cmath>

namespace tilewright {
namespace {

std::vector<std::int64_t> indices_of(const Array& ids) {
  std::vector<std::int64_t> indices;
  for (double id : to_doubles(ids))
    indices.push_back(static_cast<std::int64_t>(id));
  return indices;
}

}  // namespace

void gather_rows_reference(MissingRow missing, HostTensors& tensors) {
  const Array& src = tensors.at("src");
  std::vector<std::int64_t> ids = indices_of(tensors.at("ids"));
  Array dst = make_array("dst", src.type, {static_cast<std::int64_t>(ids.size()), src.shape[1]});
  if (missing == MissingRow::skip) dst.bytes = tensors.at("dst").bytes;
  std::int64_t row_bytes = src.shape[1] * bytes(src.type);
  for (std::size_t t = 0; t < ids.size(); ++t) {
    if (ids[t] < 0 || ids[t] >= src.shape[0]) continue;
    std::copy_n(src.bytes.begin() + ids[t] * row_bytes, row_bytes,
                dst.bytes.begin() + static_cast<std::int64_t>(t) * row_bytes);
  }
  tensors.set(std::move(dst));
}

void scatter_rows_reference(HostTensors& tensors) {
  const Array& src = tensors.at("src");
  const std::vector<std::int64_t> ids = indices_of(tensors.at("ids"));
  Array dst = tensors.at("dst");
  const std::int64_t row_bytes = src.shape[1] * bytes(src.type);
  for (std::size_t t = 0; t < ids.size(); ++t) {
    if (ids[t] < 0 || ids[t] >= dst.shape[0]) continue;
    std::copy_n(src.bytes.begin() + static_cast<std::int64_t>(t) * row_bytes, row_bytes,
                dst.bytes.begin() + ids[t] * row_bytes);
  }
  tensors.set(std::move(dst));
}

namespace {

/// The table's row of a token, or -1.
std::int64_t row_of(std::int64_t id, const RowGatherOptions& options, std::int64_t rows) {
  const std::int64_t end = options.added ? options.added->first_row : rows;
  const std::int64_t row = id - options.first_id;
  if (row >= 0 && row < (options.count < 0 ? end : options.count)) return row;
  if (!options.added || id < options.added->first_id) return -1;
  const std::int64_t added = id - options.added->first_id + options.added->first_row;
  return added < options.added->end_row(rows) ? added : -1;
}

double rounded(Type type, double value) { return decode(type, encode(type, value)); }

/// out[t] + table[indices[t]] in f32, 0 outside the table; tokens without a row stay as they are.
void add_rows(const HostTensors& tensors, const char* table, const char* indices,
              const std::vector<bool>& has_row, std::vector<double>& out) {
  const Array* rows = tensors.find(table);
  if (rows == nullptr) return;
  const std::vector<double> values = to_doubles(*rows);
  const std::vector<std::int64_t> which = indices_of(tensors.at(indices));
  const auto h = static_cast<std::size_t>(rows->shape[1]);
  for (std::size_t t = 0; t < which.size(); ++t) {
    if (!has_row[t]) continue;
    const bool inside = which[t] >= 0 && which[t] < rows->shape[0];
    const std::size_t first = inside ? static_cast<std::size_t>(which[t]) * h : 0;
    for (std::size_t j = 0; j < h; ++j) {
      const double addend = inside ? values[first + j] : 0;
      out[t * h + j] = rounded(f32, out[t * h + j] + addend);
    }
  }
}

/// The rows' norm, which reads what residual_out has; 0 for tokens without a row.
std::vector<double> normalised(const GatherNorm& norm, const HostTensors& tensors,
                               const std::vector<bool>& has_row, const std::vector<double>& rows) {
  std::vector<double> weights;
  if (const Array* w = tensors.find("w")) weights = to_doubles(*w);
  const RowNormOptions options{.eps = norm.eps, .weight_bias = norm.weight_bias};
  const std::size_t h = has_row.empty() ? 0 : rows.size() / has_row.size();
  std::vector<double> y(rows.size());
  for (std::size_t t = 0; t < has_row.size(); ++t) {
    if (has_row[t]) {
      reference_rms_norm(std::span(rows).subspan(t * h, h), weights, f32, options,
                         std::span(y).subspan(t * h, h));
    }
  }
  return y;
}

}  // namespace

void embedding_reference(const RowGatherOptions& options, Type out_type,
                         std::optional<Type> residual_type, HostTensors& tensors) {
  const Array& table = tensors.at("table");
  const Array* row_scale = tensors.find("row_scale");
  std::vector<double> values = to_doubles(table);
  std::vector<double> factors;
  if (row_scale != nullptr) factors = to_doubles(*row_scale);
  std::vector<std::int64_t> ids = indices_of(tensors.at("ids"));
  const auto scale = static_cast<double>(options.scale);
  auto h = static_cast<std::size_t>(table.shape[1]);
  std::vector<double> out(ids.size() * h);
  std::vector<bool> has_row(ids.size());
  const bool adds = options.norm || tensors.find("type_table") != nullptr ||
                    tensors.find("position_table") != nullptr;
  std::int64_t bad = 0;
  for (std::size_t t = 0; t < ids.size(); ++t) {
    const std::int64_t row = row_of(ids[t], options, table.shape[0]);
    if (row < 0) {
      ++bad;
      continue;
    }
    auto r = static_cast<std::size_t>(row);
    has_row[t] = true;
    const double factor = row_scale != nullptr ? factors[r] : 1;
    for (std::size_t j = 0; j < h; ++j) {
      const double value = values[r * h + j] * factor;
      out[t * h + j] = adds ? rounded(f32, rounded(f32, value) * scale) : value * scale;
    }
  }
  add_rows(tensors, "type_table", "token_types", has_row, out);
  add_rows(tensors, "position_table", "positions", has_row, out);
  if (adds) {
    for (double& element : out)
      element = rounded(options.norm ? residual_type.value_or(f32) : out_type, element);
  }
  const std::vector<std::int64_t> shape{static_cast<std::int64_t>(ids.size()), table.shape[1]};
  if (residual_type) tensors.set(make_array("residual_out", f64, shape, out));
  if (options.norm) out = normalised(*options.norm, tensors, has_row, out);
  if (const Array* before = tensors.find("bad_ids")) {
    const double all = to_doubles(*before).front() + static_cast<double>(bad);
    tensors.set(make_array("bad_ids", u32, {1}, std::vector<double>{all}));
  }
  if (out_type == e4m3) {  // saturates
    for (double& element : out)
      element = std::isnan(element) ? element : std::clamp(element, -448.0, 448.0);
  }
  tensors.set(make_array("out", f64, shape, out));
}

}  // namespace tilewright
