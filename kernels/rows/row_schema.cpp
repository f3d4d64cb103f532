// SPDX-License-Identifier: Apache-2.0
// Options, outputs and tolerances of operators on rows.
#include "kernels/rows/row_schema.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tilewright {

std::optional<View> optional_view(const Arguments& arguments, std::string_view name) {
  const View* view = arguments.find(name);
  return view == nullptr ? std::nullopt : std::optional(*view);
}

std::optional<float> optional_real(const Arguments& arguments, std::string_view option) {
  std::optional<double> value = arguments.real_or_word(option);
  return value ? std::optional(static_cast<float>(*value)) : std::nullopt;
}

std::vector<std::int64_t> shape_of(const View& view) {
  return {view.shape.begin(), view.shape.begin() + view.rank};
}

namespace {

bool is_default(const Arguments& arguments, std::string_view option) {
  const std::span<const OptionSpec> options = arguments.schema().options;
  const auto spec = std::find_if(options.begin(), options.end(),
                                 [option](const OptionSpec& each) { return each.name == option; });
  TW_ASSERT(spec != options.end(), "the schema has the option");
  if (arguments.text(option) == spec->default_text) return true;
  if (spec->type == OptionType::choice || spec->type == OptionType::text) return false;
  Arguments defaults(arguments.schema());  // another spelling of the same value?
  if (spec->type == OptionType::boolean)
    return arguments.boolean(option) == defaults.boolean(option);
  if (spec->type == OptionType::integer)
    return arguments.integer_or_word(option) == defaults.integer_or_word(option);
  return arguments.real_or_word(option) == defaults.real_or_word(option);
}

}  // namespace

void refuse_idle(const Arguments& arguments, std::string_view option, const std::string& why) {
  if (is_default(arguments, option)) return;
  arguments.fail(std::string(option) + "=" + std::string(arguments.text(option)) + " " + why);
}

OutputSpec norm_output(const Arguments& arguments) {
  const View& x = arguments.tensor("x");
  if (x.rank < 1) arguments.fail("x has rank 0; it must have the modes [..., H]");
  return {"y", arguments.text("out_type") == "f32" ? f32 : x.type, shape_of(x)};
}

OutputSpec rstd_output(const OutputSpec& y) {
  std::vector<std::int64_t> outer = y.shape;
  outer.pop_back();
  return {"rstd", f32, {element_count(outer)}};
}

RowNormOptions rms_options(const Arguments& arguments) {
  return {.eps = static_cast<float>(arguments.real("eps")),
          .weight_bias = static_cast<float>(arguments.real("weight_bias")),
          .order = arguments.boolean("cast_before_weight") ? WeightOrder::after_rounding
                                                           : WeightOrder::last,
          .partial = arguments.integer("partial")};
}

SumRounding sum_rounding(const Arguments& arguments) {
  return arguments.text("rounding") == "keep_f32" ? SumRounding::keep_f32
                                                  : SumRounding::round_first;
}

double rms_norm_error(const Arguments& arguments) {
  double error = (std::log2(static_cast<double>(arguments.size("H"))) + 8) * 0x1p-24;
  if (arguments.boolean("cast_before_weight"))
    error += 2 * rows::half_ulp(arguments.tensor("x").type);
  return error;
}

Tolerance rounded_once(Type output, double computed) {
  return {.relative = computed * 0x1p-24 + rows::half_ulp(output),
          .absolute = rows::half_tiniest(output)};
}

namespace {

std::int64_t bytes_of(const Arguments& arguments, bool (*counts)(Role)) {
  std::int64_t total = 0;
  for (const TensorSpec& spec : arguments.schema().tensors) {
    const View* view = counts(spec.role) ? arguments.find(spec.name) : nullptr;
    if (view != nullptr) total += size_bytes(*view);
  }
  return total;
}

}  // namespace

std::int64_t bytes_of_inputs(const Arguments& arguments) {
  return bytes_of(arguments, [](Role role) { return role != Role::output; });
}
std::int64_t bytes_of_outputs(const Arguments& arguments) {
  return bytes_of(arguments, [](Role role) { return role == Role::output; });
}

DeviceProperties traced_device() {
  DeviceProperties device;
  device.sm_count = 1;
  return device;
}

const Array* find_input(std::span<const Array> inputs, std::string_view name) {
  const auto at = std::find_if(inputs.begin(), inputs.end(),
                               [name](const Array& input) { return input.name == name; });
  return at == inputs.end() ? nullptr : &*at;
}

void check_distinct_indices(const Arguments& arguments, const Array& indices, std::int64_t count,
                            std::string_view what) {
  const std::vector<double> values = to_doubles(indices);
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t i, std::size_t j) { return values[i] < values[j]; });
  for (std::size_t i = 1; i < order.size(); ++i) {
    const double one = values[order[i - 1]], other = values[order[i]];
    if (one != other || one < 0 || one >= static_cast<double>(count)) continue;
    auto text = [&](std::size_t at) { return indices.name + "[" + std::to_string(at) + "]"; };
    arguments.fail(text(order[i - 1]) + " and " + text(order[i]) + " are " +
                   std::to_string(static_cast<std::int64_t>(one)) + "; " + std::string(what));
  }
}

void check_slots(const Arguments& arguments, std::span<const Array> inputs,
                 std::string_view indices, std::string_view pool) {
  const Array* named = find_input(inputs, indices);
  const View* slots = arguments.find(pool);
  if (named == nullptr || slots == nullptr || slots->rank == 0) return;
  const std::vector<double> values = to_doubles(*named);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] < static_cast<double>(slots->shape[0])) continue;
    arguments.fail(std::string(indices) + "[" + std::to_string(i) + "] is " +
                   std::to_string(static_cast<std::int64_t>(values[i])) + "; " + std::string(pool) +
                   " has " + std::to_string(slots->shape[0]) + " slots");
  }
}

void check_sequences(const Arguments& arguments, std::span<const Array> inputs,
                     std::int64_t tokens) {
  const Array* bounds = find_input(inputs, "cu_seqlens");
  if (bounds == nullptr) return;
  const std::vector<double> first = to_doubles(*bounds);
  auto text = [&](std::size_t at) {
    return "cu_seqlens[" + std::to_string(at) + "] is " +
           std::to_string(static_cast<std::int64_t>(first[at]));
  };
  for (std::size_t i = 0; i < first.size(); ++i) {
    if (i > 0 && first[i] < first[i - 1])
      arguments.fail(text(i) + " and " + text(i - 1) + "; it must not decrease");
    if (first[i] < 0 || first[i] > static_cast<double>(tokens))
      arguments.fail(text(i) + "; it must be 0 to " + std::to_string(tokens) + ", the tokens");
  }
}

}  // namespace tilewright
