// SPDX-License-Identifier: Apache-2.0
// Comparing outputs and describing what came of it.
#include "cli/check.h"

#include "cli/text.h"
#include "tilewright/written.h"

#include <algorithm>
#include <cmath>

namespace tilewright::cli {
namespace {

Tolerance tolerance_of(const Operator& op, const Arguments& arguments, std::string_view output) {
  return op.tolerance == nullptr ? Tolerance{} : op.tolerance(arguments, output);
}

/// Compares, and where the shapes differ says so instead of failing.
CheckResult compared(const Inputs& inputs, const Arguments& arguments, const Array& out,
                     const Array& right, NanRule nan, const Array* allowed) {
  CheckResult result{out.name, {}, {}, tolerance_of(*inputs.op, arguments, out.name), {}};
  if (out.shape != right.shape) {
    result.comparison.wrong = 1;
    result.skipped = "its shape " + shape_text(right.shape) + " differs from the output's " +
                     shape_text(out.shape);
    return result;
  }
  result.comparison = compare(out, right, result.tolerance, nan, allowed);
  return result;
}

/// `tensors` has the inputs, and then what the reference says.
void check_reference(const Inputs& inputs, const Arguments& arguments,
                     const std::vector<Array>& outputs, HostTensors& tensors,
                     std::vector<CheckResult>& results) {
  reference_of_written(*inputs.op, arguments, outputs, tensors);
  for (const Array& out : outputs) {
    const Array* right = tensors.find(out.name);
    CheckResult result{out.name, {}, "the reference does not compute it", {}, {}};
    if (right != nullptr) {
      result = compared(inputs, arguments, out, *right, nan_rule(*inputs.op, arguments),
                        allowance(tensors, out.name));
    }
    result.against = "the float64 reference";
    results.push_back(std::move(result));
  }
}

std::string index_text(const std::vector<std::int64_t>& shape, std::int64_t index) {
  std::vector<std::int64_t> coord(shape.size());
  for (std::size_t i = shape.size(); i-- > 0;) {
    coord[i] = index % shape[i];
    index /= shape[i];
  }
  return shape_text(coord);
}

}  // namespace

std::vector<CheckResult> check_outputs(const Inputs& inputs, const Arguments& arguments,
                                       const std::vector<Array>& outputs) {
  std::vector<CheckResult> results;
  HostTensors given;
  for (const Array& array : inputs.arrays)
    given.set(array);
  HostTensors tensors = given;
  if (inputs.op->reference != nullptr)
    check_reference(inputs, arguments, outputs, tensors, results);
  for (Array right : inputs.expected) {
    if (inputs.op->place_expected != nullptr) inputs.op->place_expected(arguments, given, right);
    const auto out = std::find_if(outputs.begin(), outputs.end(),
                                  [&right](const Array& each) { return each.name == right.name; });
    CheckResult result{right.name, {}, "it is no output of the operator", {}, {}};
    if (out != outputs.end()) {
      result =
          compared(inputs, arguments, *out, right, NanRule::skip, allowance(tensors, out->name));
    }
    result.against = "expect." + right.name;
    results.push_back(std::move(result));
  }
  for (CheckResult& result : results) {
    const auto out = std::find_if(outputs.begin(), outputs.end(), [&result](const Array& each) {
      return each.name == result.output;
    });
    if (out != outputs.end() && result.comparison.first_wrong >= 0) {
      result.output += index_text(out->shape, result.comparison.first_wrong);
    }
  }
  return results;
}

bool all_right(const std::vector<CheckResult>& results) {
  return std::all_of(results.begin(), results.end(),
                     [](const CheckResult& result) { return result.comparison.wrong == 0; });
}

std::string text_of(const CheckResult& result) {
  const Comparison& c = result.comparison;
  if (!result.skipped.empty()) {
    return (c.wrong > 0 ? "WRONG  " : "skipped  ") + result.against + ": " + result.skipped;
  }
  if (c.wrong == 0) {
    const bool exact = result.tolerance.relative == 0 && result.tolerance.absolute == 0 &&
                       result.tolerance.of_row_max == 0 && result.tolerance.of_max == 0 &&
                       result.tolerance.rmse == 0;
    return "right  " + result.output + " against " + result.against + ": " + grouped(c.compared) +
           (c.compared == 1 ? " element" : " elements") +
           (exact ? ", all equal" : ", at worst " + fixed(c.worst_ratio, 2) + " of the tolerance");
  }
  if (result.tolerance.rmse > 0) {
    return "WRONG  " + result.output + " against " + result.against + ": its relative rmse is " +
           number_text(c.worst_ratio * c.bound) + ", should be at most " + number_text(c.bound) +
           "; here is " + number_text(c.out) + ", should be " + number_text(c.reference);
  }
  return "WRONG  " + result.output + " against " + result.against + ": is " + number_text(c.out) +
         ", should be " + number_text(c.reference) + " within " + number_text(c.bound) + "; " +
         grouped(c.wrong) + " of " + grouped(c.compared) + " elements are wrong";
}

Json json_of(const CheckResult& result) {
  const Comparison& c = result.comparison;
  Json json = {{"output", result.output},   {"against", result.against}, {"right", c.wrong == 0},
               {"skipped", result.skipped}, {"compared", c.compared},    {"wrong", c.wrong}};
  // JSON has no infinity: it becomes null.
  json["worst_of_tolerance"] = c.worst_ratio;
  if (c.first_wrong >= 0) {
    json["first_wrong"] = {
        {"index", c.first_wrong}, {"is", c.out}, {"should_be", c.reference}, {"within", c.bound}};
  }
  return json;
}

}  // namespace tilewright::cli
