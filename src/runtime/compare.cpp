// SPDX-License-Identifier: Apache-2.0
// Holding an output against its reference, element by element.
#include "tilewright/operator.h"
#include "tilewright/view.h"
#include "tilewright/written.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>

namespace tilewright {
namespace {

bool is_exact(const Tolerance& tolerance) {
  return tolerance.relative == 0 && tolerance.of_row_max == 0 && tolerance.of_max == 0 &&
         tolerance.absolute == 0;
}

/// Largest finite magnitude.
double finite_max(std::span<const double> values) {
  double largest = 0;
  for (const double value : values) {
    if (std::isfinite(value)) largest = std::max(largest, std::fabs(value));
  }
  return largest;
}

/// What rounds to infinity, and what is larger: half a unit above the type's largest number. Types
/// of eight bits and less saturate.
double overflow_of(Type type) {
  if (type == f16) return 65520;
  if (type == bf16) return 0x1.ffp+127;
  if (type == f32) return 0x1.ffffffp+127;
  return std::numeric_limits<double>::infinity();
}

/// Whether `out` is acceptable; the ratio of its distance to the bound otherwise goes to `ratio`.
/// Numbers from `overflow` on may be infinite.
bool acceptable(double out, double reference, double bound, double overflow, double& ratio) {
  if (std::isnan(reference) || std::isnan(out)) return std::isnan(reference) && std::isnan(out);
  if (out == reference) return true;
  if (std::isinf(out) && std::signbit(out) == std::signbit(reference) &&
      std::fabs(reference) + bound >= overflow) {
    return true;
  }
  const double distance = std::fabs(out - reference);
  if (bound > 0 && std::isfinite(distance)) ratio = distance / bound;
  if (bound <= 0 || !std::isfinite(distance)) ratio = std::numeric_limits<double>::infinity();
  return std::isfinite(distance) && distance <= bound;
}

/// Bytes that are equal, of equal types: nothing to convert, whatever 64-bit integers hold.
bool same_bits(const Array& out, const Array& reference, std::size_t index) {
  const auto stride = static_cast<std::ptrdiff_t>(storage_bits(out.type) / 8);
  if (out.type != reference.type || stride == 0) return false;
  const auto offset = static_cast<std::ptrdiff_t>(index) * stride;
  return std::equal(out.bytes.begin() + offset, out.bytes.begin() + offset + stride,
                    reference.bytes.begin() + offset);
}

/// The tolerance's rmse: of the whole tensor. `first_wrong` is the element furthest off.
Comparison compare_rmse(const std::vector<double>& outs, const std::vector<double>& refs,
                        const Tolerance& tolerance, double overflow, NanRule nan) {
  Comparison result;
  double squares = 0, distances = 0, furthest = -1;
  for (std::size_t i = 0; i < outs.size(); ++i) {
    if (nan == NanRule::skip && std::isnan(refs[i])) continue;
    ++result.compared;
    double unused = 0;
    if (acceptable(outs[i], refs[i], 0, overflow, unused)) {
      if (std::isfinite(refs[i])) squares += refs[i] * refs[i];
      continue;
    }
    double distance = std::fabs(outs[i] - refs[i]);
    if (!std::isfinite(distance)) distance = std::numeric_limits<double>::infinity();
    squares += refs[i] * refs[i];
    distances += distance * distance;
    if (distance <= furthest) continue;
    furthest = distance;
    result.first_wrong = static_cast<std::int64_t>(i);
    result.out = outs[i];
    result.reference = refs[i];
  }
  result.bound = tolerance.rmse;
  // Nothing is right below f32's normal numbers, or wrong.
  if (std::sqrt(distances) <= 0x1p-126 * std::sqrt(static_cast<double>(outs.size()))) distances = 0;
  if (distances > 0) result.worst_ratio = std::sqrt(distances / squares) / tolerance.rmse;
  if (result.worst_ratio > 1 || std::isnan(result.worst_ratio)) {
    result.wrong = 1;
  } else {
    result.first_wrong = -1;
  }
  return result;
}

/// No tensor of a schema has a point in its name.
std::string name_of_written(std::string_view output) { return "written." + std::string(output); }
std::string name_of_allowance(std::string_view output) {
  return "allowance." + std::string(output);
}

}  // namespace

void reference_of_written(const Operator& op, const Arguments& arguments,
                          std::span<const Array> outputs, HostTensors& tensors) {
  for (Array output : outputs) {
    output.name = name_of_written(output.name);
    tensors.set(std::move(output));
  }
  op.reference(arguments, tensors);
}

const Array* written(const HostTensors& tensors, std::string_view output) {
  return tensors.find(name_of_written(output));
}

void set_allowance(HostTensors& tensors, std::string_view output,
                   const std::vector<std::int64_t>& shape, std::span<const double> values) {
  std::vector<double> finite(values.begin(), values.end());
  for (double& value : finite)
    if (!std::isfinite(value)) value = 0;
  tensors.set(make_array(name_of_allowance(output), f64, shape, finite));
}

const Array* allowance(const HostTensors& tensors, std::string_view output) {
  return tensors.find(name_of_allowance(output));
}

Comparison compare_with_reference(const Operator& op, const Arguments& arguments, const Array& out,
                                  const HostTensors& tensors) {
  const Tolerance tolerance =
      op.tolerance == nullptr ? Tolerance{} : op.tolerance(arguments, out.name);
  return compare(out, tensors.at(out.name), tolerance, nan_rule(op, arguments),
                 allowance(tensors, out.name));
}

Comparison compare(const Array& out, const Array& reference, const Tolerance& tolerance,
                   NanRule nan, const Array* allowance) {
  for (const Array* each : {&reference, allowance}) {
    if (each == nullptr || each->shape == out.shape) continue;
    throw Error(ErrorKind::user,
                "compare: " + to_string(out) + " has another shape than " + to_string(*each));
  }
  const std::vector<double> allowed =
      allowance == nullptr ? std::vector<double>{} : to_doubles(*allowance);
  const std::vector<double> outs = to_doubles(out);
  const std::vector<double> refs = to_doubles(reference);
  const double overflow = overflow_of(out.type);
  if (tolerance.rmse > 0) return compare_rmse(outs, refs, tolerance, overflow, nan);
  const bool exact = is_exact(tolerance);
  const bool exact_integers = exact && out.type == reference.type && !is_float(out.type);
  const std::size_t row =
      out.shape.empty() ? 1 : std::max<std::size_t>(1, static_cast<std::size_t>(out.shape.back()));
  Comparison result;
  const double everywhere =
      tolerance.absolute + (tolerance.of_max == 0 ? 0 : tolerance.of_max * finite_max(refs));
  double largest = 0;
  for (std::size_t i = 0; i < outs.size(); ++i) {
    if (i % row == 0 && tolerance.of_row_max != 0)
      largest = finite_max(std::span(refs).subspan(i, row));
    if (nan == NanRule::skip && std::isnan(refs[i])) continue;
    ++result.compared;
    const double bound = tolerance.relative * std::fabs(refs[i]) + tolerance.of_row_max * largest +
                         everywhere + (allowed.empty() ? 0 : allowed[i]);
    double ratio = 0;
    bool good = acceptable(outs[i], refs[i], bound, overflow, ratio);
    if (exact_integers) good = same_bits(out, reference, i);
    if (exact && good && !std::isnan(refs[i])) {
      good = std::signbit(outs[i]) == std::signbit(refs[i]);  // -0 is not 0
    }
    result.worst_ratio = std::max(result.worst_ratio, ratio);
    if (good) continue;
    if (result.wrong++ == 0) {
      result.first_wrong = static_cast<std::int64_t>(i);
      result.out = outs[i];
      result.reference = refs[i];
      result.bound = bound;
    }
  }
  return result;
}

}  // namespace tilewright
