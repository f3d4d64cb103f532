// SPDX-License-Identifier: Apache-2.0
// What schemas say of quantised outputs.
#include "kernels/quantize/quant_schema.h"

#include "kernels/quantize/batch_reference.h"
#include "tilewright/written.h"

#include <algorithm>

namespace tilewright {

namespace {

/// An option of kCodingOptions and the formats that it changes.
struct Use {
  std::string_view option;
  std::array<QuantFormat, 5> formats;
  std::string_view text;
};
using enum QuantFormat;
constexpr std::array<Use, 9> kUses{{
    {"element", {mxfp8, mxfp8, mxfp8, mxfp8, mxfp8}, "mxfp8"},
    {"scale_type",
     {fp8_token, fp8_block, fp8_block2d, fp8_block2d, fp8_block2d},
     "fp8_token, fp8_block and fp8_block2d"},
    {"scale_rule", {mxfp8, mxfp4, mxfp4, mxfp4, mxfp4}, "mxfp8 and mxfp4"},
    {"floor", {fp8_tensor, fp8_token, fp8_block, fp8_block2d, fp8_block2d}, "the fp8 formats"},
    {"group", {fp8_block, fp8_block, fp8_block, fp8_block, fp8_block}, "fp8_block"},
    {"ragged_tail", {fp8_block, mxfp8, mxfp4, nvfp4, nvfp4}, "fp8_block, mxfp8, mxfp4 and nvfp4"},
    {"pow2_scale",
     {fp8_token, fp8_block, fp8_block2d, fp8_block2d, fp8_block2d},
     "fp8_token, fp8_block and fp8_block2d"},
    {"scale_ub", {fp8_token, fp8_token, fp8_token, fp8_token, fp8_token}, "fp8_token"},
    {"exact", {fp8_tensor, fp8_token, fp8_block, fp8_block2d, nvfp4}, "the fp8 formats and nvfp4"},
}};

void refuse_idle_use(const Arguments& arguments, const Use& use, QuantFormat format) {
  if (std::find(use.formats.begin(), use.formats.end(), format) != use.formats.end()) return;
  refuse_idle(arguments, use.option,
              "with " + std::string(name(format)) + "; it is for " + std::string(use.text));
}

void refuse_idle_coding(const Arguments& arguments, QuantFormat format) {
  for (const Use& use : kUses)
    refuse_idle_use(arguments, use, format);
  if (arguments.text("scale_type") == "ue8m0")
    refuse_idle(arguments, "pow2_scale", "with scale_type=ue8m0; those are powers of two");
}

}  // namespace

void refuse_idle_groups(const Arguments& arguments, QuantFormat format) {
  for (const Use& use : kUses) {
    if (use.option == kGroupOption.name || use.option == kRaggedTailOption.name)
      refuse_idle_use(arguments, use, format);
  }
}

QuantizeOptions coding_options(const Arguments& arguments, std::string_view format_option) {
  std::string_view rule = arguments.text("scale_rule");
  const QuantFormat format = quant_format(arguments.text(format_option));
  refuse_idle_coding(arguments, format);
  const std::optional<float> bound = optional_real(arguments, "scale_ub");
  return {.format = format,
          .floor = static_cast<float>(arguments.real("floor")),
          .exact = arguments.boolean("exact"),
          .rule = rule == "ceil"    ? ScaleRule::ceil
                  : rule == "floor" ? ScaleRule::floor
                                    : ScaleRule::even,
          .layout = scale_layout(arguments.text("scale_layout")),
          .group = arguments.integer("group"),
          .tail = arguments.boolean("ragged_tail") ? Tail::ragged : Tail::whole,
          .pow2_scale = arguments.boolean("pow2_scale"),
          .scale_ub = bound.value_or(QuantCoding::kNoBound)};
}

Type element_type(const Arguments& arguments, QuantFormat format) {
  if (format == QuantFormat::mxfp4 || format == QuantFormat::nvfp4) return e2m1;
  return arguments.text("element") == "e5m2" ? e5m2 : e4m3;
}

Type scale_type(const Arguments& arguments, QuantFormat format) {
  if (format == QuantFormat::nvfp4) return e4m3;
  return is_mx(format) || arguments.text("scale_type") == "ue8m0" ? ue8m0 : f32;
}

std::vector<std::int64_t> scales_shape_of(QuantFormat format, ScaleLayout layout,
                                          std::int64_t group, std::vector<std::int64_t> codes) {
  if (format == QuantFormat::fp8_tensor) return {1};
  const std::int64_t h = codes.back();
  if (format == QuantFormat::fp8_block2d) {
    codes.pop_back();
    return {rows::ceil_div(element_count(codes), 128), rows::ceil_div(h, 128)};
  }
  codes.back() = rows::ceil_div(h, std::max<std::int64_t>(1, group_elems(format, h, group)));
  const std::int64_t groups_n = codes.back();
  if (layout == ScaleLayout::row && format != QuantFormat::fp8_token) return codes;
  codes.pop_back();
  if (format == QuantFormat::fp8_token) return {element_count(codes)};
  return scales_shape(layout, element_count(codes), groups_n);
}

bool quantises(const Arguments& arguments) { return arguments.text("quant") != "none"; }

QuantOutputTensors quant_output_tensors(const Arguments& arguments) {
  if (!quantises(arguments)) {
    for (const TensorSpec& spec : kQuantOutputTensors) {
      if (arguments.find(spec.name) == nullptr) continue;
      arguments.fail(std::string(spec.name) + " is given; with quant=none nothing is quantised");
    }
  }
  return {.q = optional_view(arguments, "q"),
          .scales = optional_view(arguments, "scales"),
          .scale = optional_view(arguments, "scale"),
          .encode_scale = optional_view(arguments, "encode_scale"),
          .saturated = optional_view(arguments, "saturated")};
}

QuantOutputOptions quant_output_options(const Arguments& arguments) {
  if (!quantises(arguments)) {
    for (const OptionSpec& spec : kQuantOutputOptions) {
      if (spec.name != "quant")
        refuse_idle(arguments, spec.name, "with quant=none; nothing is quantised");
    }
    return {};
  }
  return {.coding = coding_options(arguments, "quant"),
          .from = arguments.text("quant_from") == "f32" ? QuantFrom::f32 : QuantFrom::via_x_type};
}

std::vector<std::int64_t> scales_shape_of_batch(QuantFormat format, ScaleLayout layout,
                                                std::int64_t group,
                                                const std::vector<std::int64_t>& codes) {
  std::vector<std::int64_t> shape =
      scales_shape_of(format, layout, group, {codes.begin() + 1, codes.end()});
  if (format != QuantFormat::fp8_tensor) shape.insert(shape.begin(), codes.front());
  return shape;
}

void add_quant_outputs(const Arguments& arguments, std::vector<OutputSpec>& outputs,
                       Batching batching) {
  if (!quantises(arguments)) return;
  const QuantFormat format = quant_format(arguments.text("quant"));
  const ScaleLayout layout = scale_layout(arguments.text("scale_layout"));
  outputs.front().making = Making::on_demand;
  const std::vector<std::int64_t> shape = outputs.front().shape;
  outputs.push_back({"q", element_type(arguments, format), shape, Making::always});
  const std::int64_t group = arguments.integer("group");
  outputs.push_back({"scales", scale_type(arguments, format),
                     batching == Batching::batch
                         ? scales_shape_of_batch(format, layout, group, shape)
                         : scales_shape_of(format, layout, group, shape),
                     Making::always});
}

namespace {

/// q, without its last rounding, and scales of a matrix y: those of `taken`, if it is there.
HostTensors codes_of_rows(const Arguments& arguments, const HostTensors& tensors, const Array& y,
                          const Array* taken) {
  const QuantOutputOptions options = quant_output_options(arguments);
  const Type type = options.from == QuantFrom::f32 ? f32 : arguments.tensor("x").type;
  HostTensors of_y;
  of_y.set(make_array("x", type, y.shape, to_doubles(y)));
  for (const char* given : {"scale", "encode_scale", "saturated"}) {
    if (const Array* array = tensors.find(given)) of_y.set(*array);
  }
  const QuantFormat format = options.coding.format;
  quantize_reference(options.coding, element_type(arguments, format), scale_type(arguments, format),
                     of_y, Quotients::unrounded, taken);
  return of_y;
}

/// As codes_of_rows, of the matrices of a batch one by one.
HostTensors codes_of_experts(const Arguments& arguments, const std::vector<std::int64_t>& counts,
                             const HostTensors& tensors, const Array& y, const Array* taken) {
  const QuantizeOptions coding = quant_output_options(arguments).coding;
  std::vector<OutputSpec> specs{{"y", y.type, y.shape}};
  add_quant_outputs(arguments, specs, Batching::batch);
  auto one = [&](std::size_t index, const HostTensors& so_far) {
    std::optional<Array> taken_here;
    if (taken != nullptr && coding.format != QuantFormat::fp8_tensor)
      taken_here = matrix_of(*taken, index);
    return codes_of_rows(arguments, so_far, matrix_of(y, index),
                         taken_here ? &*taken_here : nullptr);
  };
  return codes_of_batch({coding,
                         counts,
                         {"q", f64, specs[1].shape, {}},
                         {"scales", specs[2].type, specs[2].shape, {}},
                         one},
                        tensors);
}

HostTensors codes_of_y(const Arguments& arguments, const ExpertRows& experts,
                       const HostTensors& tensors, const Array& y, const Array* taken = nullptr) {
  return experts ? codes_of_experts(arguments, *experts, tensors, y, taken)
                 : codes_of_rows(arguments, tensors, y, taken);
}

void set_codes(const HostTensors& codes, HostTensors& tensors) {
  for (const char* output : {"q", "scales", "saturated"}) {
    if (const Array* array = codes.find(output)) tensors.set(*array);
  }
}

/// Of a result whose largest elements come by a relative error of `error`: how far scales may be
/// from the reference's besides their own rounding.
double error_of_largest(const Arguments& arguments, double error) {
  const bool rounds_first = arguments.text("quant_from") == "via_x_dtype";
  return error + (rounds_first ? 2 * rows::half_ulp(arguments.tensor("x").type) : 0) + 2 * 0x1p-24;
}

/// `array` with every element multiplied.
Array multiplied(const Array& array, double factor) {
  std::vector<double> values = to_doubles(array);
  for (double& value : values)
    value *= factor;
  return make_array(array.name, f64, array.shape, values);
}

/// Whether scales are rounded to few bits, so that neighbours are further apart than errors.
bool has_coarse_scales(const Arguments& arguments) {
  const QuantFormat format = quant_format(arguments.text("quant"));
  if (format == QuantFormat::fp8_tensor) return false;
  return scale_type(arguments, format) != f32 || arguments.boolean("pow2_scale");
}

/// `reference` with the elements of `out` that lie between those of `low` and `high`.
Array taken_between(const Array& out, const Array& reference, const Array& low, const Array& high) {
  const std::vector<double> outs = to_doubles(out), least = to_doubles(low),
                            most = to_doubles(high);
  std::vector<double> values = to_doubles(reference);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (least[i] <= outs[i] && outs[i] <= most[i]) values[i] = outs[i];
  }
  return make_array(reference.name, reference.type, reference.shape, values);
}

bool differs(const Array* out, const Array& reference, NanRule open) {
  return out != nullptr && compare(*out, reference, {}, open).wrong > 0;
}

/// The codes of y by the scales that are written, wherever y within `error` |y| has them, and the
/// counter likewise.
HostTensors settled(const Arguments& arguments, const ExpertRows& experts,
                    const HostTensors& tensors, double error, const HostTensors& codes) {
  const Array& y = tensors.at("y");
  const Array& scales = codes.at("scales");
  const double most = error + 2 * 0x1p-24;  // that of x's type is rounded as y itself is
  const HostTensors low = codes_of_y(arguments, experts, tensors, multiplied(y, 1 - most));
  const HostTensors high = codes_of_y(arguments, experts, tensors, multiplied(y, 1 + most));
  const Array taken =
      taken_between(*written(tensors, "scales"), scales, low.at("scales"), high.at("scales"));
  HostTensors result = codes_of_y(arguments, experts, tensors, y, &taken);
  const Array* count = written(tensors, "saturated");
  if (count != nullptr && low.find("saturated") != nullptr) {
    result.set(
        taken_between(*count, codes.at("saturated"), low.at("saturated"), high.at("saturated")));
  }
  return result;
}

}  // namespace

void quant_output_reference(const Arguments& arguments, HostTensors& tensors, double error,
                            const ExpertRows& experts) {
  if (!quantises(arguments)) return;
  HostTensors codes = codes_of_y(arguments, experts, tensors, tensors.at("y"));
  const Array* scales = written(tensors, "scales");
  const Array* count = codes.find("saturated");
  const NanRule open = experts ? NanRule::skip : NanRule::equal;
  const bool is_known = scales != nullptr && scales->shape == codes.at("scales").shape;
  if (is_known && has_coarse_scales(arguments) &&
      (differs(scales, codes.at("scales"), open) ||
       (count != nullptr && differs(written(tensors, "saturated"), *count, open)))) {
    codes = settled(arguments, experts, tensors, error, codes);
  }
  set_codes(codes, tensors);
}

// A result that is rounded to x's type first may land on the neighbour of a tie, and so may the
// largest one of its group.
std::optional<Tolerance> quant_output_tolerance(const Arguments& arguments, std::string_view output,
                                                double error) {
  if (output == "saturated") return Tolerance{};
  if (output != "q" && output != "scales") return std::nullopt;
  const QuantFormat format = quant_format(arguments.text("quant"));
  const double of_largest = error_of_largest(arguments, error);
  if (output == "scales") return Tolerance{.relative = of_largest};
  Tolerance tolerance = rounded_once(element_type(arguments, format), 4);
  tolerance.relative += 2 * of_largest;
  return tolerance;
}

void check_scale(const Arguments& arguments, std::span<const Array> inputs) {
  for (const char* name : {"scale", "encode_scale"}) {
    const Array* scale = find_input(inputs, name);
    if (scale == nullptr) continue;
    for (const double value : to_doubles(*scale)) {
      if (value > 0) continue;
      arguments.fail(std::string(name) + " is " + rows::number_text(value) +
                     "; it must be above 0");
    }
  }
}

bool has_experts(const Arguments& arguments, std::string_view which) {
  if (arguments.find("tokens_per_expert") == nullptr) return false;
  const View& rows = arguments.tensor(which);
  if (rows.rank == 3) return true;
  arguments.fail(std::string(which) + " is " + to_string(rows) +
                 "; with experts it must have the modes [E, T, N]");
}

void check_tokens(const Arguments& arguments, std::span<const Array> inputs, const View& rows) {
  const Array* tokens = find_input(inputs, "tokens_per_expert");
  if (tokens == nullptr) return;
  const std::int64_t most = rows.rank == 3 ? rows.shape[1] : 0;
  const std::vector<double> counts = to_doubles(*tokens);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] >= 0 && counts[i] <= static_cast<double>(most)) continue;
    arguments.fail("tokens_per_expert[" + std::to_string(i) + "] is " + std::to_string(counts[i]) +
                   "; it must be 0 to the " + std::to_string(most) + " rows of an expert");
  }
}

void fill_experts(const Problem& problem, std::vector<Array>& inputs, std::string_view which) {
  if (find_input(inputs, "tokens_per_expert") == nullptr) return;
  const std::int64_t experts = problem.size("E");
  const std::int64_t each = problem.size("T") / std::max<std::int64_t>(1, experts);
  for (Array& array : inputs) {
    if (array.name == "tokens_per_expert") {
      array = make_array(
          array.name, s32, {experts},
          std::vector<double>(static_cast<std::size_t>(experts), static_cast<double>(each)));
    }
    if (array.name != which) continue;
    array.shape = {experts, each, array.shape.back()};
    array.bytes.resize(static_cast<std::size_t>(storage_bytes(array.type, array.shape)));
  }
}

void fill_quant_scales(std::vector<Array>& inputs, double largest) {
  for (Array& array : inputs) {
    if (array.name == "scale") array = make_array(array.name, f32, {1}, std::array{largest / 448});
    if (array.name == "encode_scale")
      array = make_array(array.name, f32, {1}, std::array{2688 / largest});
    if (array.name == "saturated") array = make_array(array.name, u32, {1}, std::array{0.0});
  }
}

}  // namespace tilewright
