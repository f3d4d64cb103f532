// SPDX-License-Identifier: Apache-2.0
// Checks and arguments of quantised outputs.
#include "kernels/quantize/quant_output.h"

#include "kernels/quantize/codes_of_batch.h"
#include "kernels/rows/row_batch.h"
#include "kernels/rows/row_shape.h"
#include "tilewright/buffer.h"

#include <algorithm>
#include <utility>

namespace tilewright {
namespace {

void check_absent(const QuantOutputTensors& t, const rows::Caller& caller) {
  const std::pair<const char*, const std::optional<View>*> others[] = {
      {"scales", &t.scales},
      {"scale", &t.scale},
      {"encode_scale", &t.encode_scale},
      {"saturated", &t.saturated}};
  for (const auto& [which, view] : others) {
    if (*view) caller.refuse(std::string(which) + " is given without q; only codes have scales");
  }
}

/// A warp holds a group: its accesses have enough elements only where they divide the row.
void check_accesses(const QuantCoding& coding, std::int64_t h, const rows::Caller& caller) {
  if (coding.format != QuantFormat::fp8_block) return;
  if (coding.block > 128) {
    caller.refuse("group=" + std::to_string(coding.block) +
                  "; outputs are quantised in groups of 128 at most");
  }
  const std::int64_t least = std::max<std::int64_t>(1, coding.block / 32);
  if (h % least == 0) return;
  caller.refuse("rows have " + std::to_string(h) + " elements; outputs in groups of " +
                std::to_string(coding.block) + " have multiples of " + std::to_string(least));
}

/// Of a matrix: `t.q` and `rows` are [T, H].
void check(const QuantOutputTensors& t, const QuantOutputOptions& options, const View& rows,
           const rows::Caller& caller) {
  const QuantFormat format = options.coding.format;
  if (format == QuantFormat::fp8_block2d)
    caller.refuse("format is fp8_block2d; outputs are quantised by rows or within them");
  if (!t.scales) caller.refuse("scales is absent; q has scales");
  const QuantCoding coding = coding_of(options.coding, t.q->type, t.scales->type);
  check_coding(coding, caller);
  if (t.q->shape[0] != rows.shape[0] || t.q->shape[1] != rows.shape[1]) {
    caller.refuse("q is " + to_string(*t.q) + "; it must have " + std::to_string(rows.shape[0]) +
                  " rows of " + std::to_string(rows.shape[1]) + " elements");
  }
  check_groups(coding, options.coding.tail, *t.q, caller);
  check_accesses(coding, rows.shape[1], caller);
  check_given(t.scale, "scale", QuantFormat::fp8_tensor, format, caller);
  check_given(t.encode_scale, "encode_scale", QuantFormat::nvfp4, format, caller);
  check_fp8(coding, options.coding.floor, caller);
  check_saturated(t.saturated, format, caller);
}

/// Sets q and scales of the plan, their arguments and its coding.
void plan_codes(QuantOutputPlan& plan, const QuantOutputOptions& options, const View& rows,
                const rows::Caller& caller) {
  QuantOutputTensors& t = plan.tensors;
  const bool batch = rows.rank == 3;
  if (batch) {
    check_codes_of_batch(*t.q, rows, caller);
    QuantOutputTensors one = t;
    one.q = rows::first_of(*t.q);
    check(one, options, rows::first_of(rows), {caller.op, caller.at, "of each expert"});
  } else {
    t.q = rows::folded(*t.q, "q", caller);
    check(t, options, rows, caller);
  }
  constexpr DynamicModes kRows{.extents = 1, .strides = 1};
  plan.args.q = tensor_arg(*t.q, batch ? rows::modes_of_batch(kRows) : kRows);
  QuantCoding& coding = plan.config.coding;
  coding = coding_of(options.coding, t.q->type, t.scales->type);
  t.scales = batch ? scales_of_batch(*t.scales, coding, *t.q, caller)
                   : scales_view(*t.scales, coding, *t.q, caller);
  plan.args.scales =
      batch ? scales_arg_of_batch(*t.scales, coding) : scales_arg_of(*t.scales, coding.layout);
}

}  // namespace

void check_code_memory(const QuantOutputTensors& t, const rows::Caller& caller) {
  rows::check_distinct(*t.scales, "scales", caller);
  rows::check_apart(*t.scales, "scales", *t.q, "q", caller);
  if (t.scale) rows::check_apart(*t.scale, "scale", *t.q, "q", caller);
  const std::pair<const std::optional<View>*, const char*> written[] = {
      {&t.q, "q"}, {&t.scales, "scales"}, {&t.saturated, "saturated"}};
  for (const auto& [view, which] : written) {
    if (t.encode_scale && *view)
      rows::check_apart(*t.encode_scale, "encode_scale", **view, which, caller);
    if (t.saturated && view != &t.saturated)
      rows::check_apart(**view, which, *t.saturated, "saturated", caller);
  }
}

std::optional<QuantOutputPlan> plan_quant_output(const QuantOutputTensors& tensors,
                                                 const QuantOutputOptions& options,
                                                 const View& rows, const rows::Caller& caller) {
  if (!tensors.q) {
    check_absent(tensors, caller);
    return std::nullopt;
  }
  QuantOutputPlan plan;
  QuantOutputTensors& t = plan.tensors;
  t = tensors;
  plan_codes(plan, options, rows, caller);
  const QuantizeOptions& coding = options.coding;
  QuantOutputConfig& config = plan.config;
  config.rounded = options.from == QuantFrom::f32 ? f32 : rows.type;
  config.division = division_of(config.coding, coding.exact, coding.floor);
  if (config.division == Division::corrected) config.division = Division::by_parts;
  config.h = rows::row_elems(rows);
  config.group = group_elems(coding.format, config.h, coding.group);
  rows::check_distinct(*t.q, "q", caller);
  check_code_memory(t, caller);
  if (t.saturated) plan.args.saturated = tensor_arg(*t.saturated);
  plan.floor = coding.floor;
  if (t.scale) plan.args.scale = tensor_arg(*t.scale);
  if (t.encode_scale) plan.args.encode_scale = tensor_arg(*t.encode_scale);
  return plan;
}

std::string QuantOutputPlan::key() const {
  std::string text = "quant " + to_string(config.coding) +
                     " d=" + std::to_string(static_cast<int>(config.division)) + " " +
                     std::string(name(config.rounded)) + " h=" + std::to_string(config.h);
  for (const std::optional<TensorArg>* arg :
       {&args.q, &args.scales, &args.scale, &args.encode_scale}) {
    text += " | " + rows::key_text(*arg);
  }
  return args.saturated ? text + " | counts " + to_string(*args.saturated) : text;
}

void QuantOutputPlan::pack_into(Parameters& parameters, std::int64_t row_blocks) const {
  pack(parameters, *args.q, *tensors.q);
  pack(parameters, *args.scales, *tensors.scales);
  if (args.scale) pack(parameters, *args.scale, *tensors.scale);
  if (args.encode_scale) pack(parameters, *args.encode_scale, *tensors.encode_scale);
  parameters.add(floor);
  parameters.add(static_cast<std::int32_t>(row_blocks));
  if (args.saturated) pack(parameters, *args.saturated, *tensors.saturated);
}

QuantTraceArgs trace_args(const std::optional<QuantOutputPlan>& plan) {
  if (!plan) return {};
  return {plan->args, ScalarArg{f32, {}}, ScalarArg{s32, {1, 0, 2'147'483'647}}};
}

std::int64_t QuantOutputPlan::padding_blocks(int threads) const {
  const std::int64_t row_count = tensors.q->shape[static_cast<std::size_t>(tensors.q->rank - 2)];
  return rows::ceil_div(padding_words(config.coding.layout, row_count, config.groups_of_row()),
                        threads);
}

void write_scale_of_no_rows(const Stream& stream, const std::optional<QuantOutputPlan>& plan) {
  if (!plan || !plan->tensors.scale) return;
  copy_on_device(plan->tensors.scales->address, plan->tensors.scale->address, sizeof(float),
                 stream);
}

}  // namespace tilewright
