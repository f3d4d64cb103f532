// SPDX-License-Identifier: Apache-2.0
// quantize and dequantize as the command line and bindings see them.
#include "kernels/quantize/reference.h"
#include "kernels/quantize/tensor_scale.h"

#include <algorithm>
#include <array>

namespace tilewright {
namespace {

constexpr std::array kReals{bf16, f16, f32};
constexpr std::array kF32{f32};
constexpr std::array kScales{f32, ue8m0, e4m3};
constexpr std::array kCodes{e4m3, e5m2, e2m1};

constexpr TensorSpec kScalesTensor{
    .name = "scales",
    .role = Role::output,
    .shape = "*",
    .types = kScales,
    .doc =
        "[1] (fp8_tensor), [T] (fp8_token), [T/128, H/128] (fp8_block2d), else [..., G] for G "
        "groups a row, or scale_layout's "
        "modes; f32 or ue8m0 (fp8), ue8m0 (mx), e4m3 (nvfp4)"};
constexpr TensorSpec kCodesTensor{.name = "q",
                                  .role = Role::output,
                                  .shape = "...,H",
                                  .types = kCodes,
                                  .doc = "e4m3 (fp8, mxfp8), e5m2 (mxfp8) or e2m1 (fp4)"};
constexpr TensorSpec as_input(TensorSpec spec) {
  spec.role = Role::input;
  return spec;
}

constexpr std::array<TensorSpec, 5> kQuantizeTensors{{
    {.name = "x", .role = Role::input, .shape = "...,H", .types = kReals, .doc = "rows"},
    {.name = "scale",
     .role = Role::input,
     .presence = Presence::optional,
     .shape = "1",
     .types = kF32,
     .doc = "fp8_tensor: the decode scale; absent: found in a pass before"},
    {.name = "encode_scale",
     .role = Role::input,
     .presence = Presence::optional,
     .shape = "1",
     .types = kF32,
     .doc = "nvfp4: 2688 / the tensor's largest magnitude"},
    kCodesTensor,
    kScalesTensor,
}};
constexpr std::array<TensorSpec, 4> kDequantizeTensors{{
    as_input(kCodesTensor),
    as_input(kScalesTensor),
    {.name = "decode_scale",
     .role = Role::input,
     .presence = Presence::optional,
     .shape = "1",
     .types = kF32,
     .doc = "nvfp4: 1 / encode_scale"},
    {.name = "y", .role = Role::output, .shape = "...,H", .types = kReals, .doc = "numbers"},
}};

constexpr std::array<std::string_view, 7> kFormats{
    "fp8_tensor", "fp8_token", "fp8_block", "fp8_block2d", "mxfp8", "mxfp4", "nvfp4"};
constexpr std::array<std::string_view, 2> kElements{"e4m3", "e5m2"};
constexpr std::array<std::string_view, 2> kScaleTypes{"f32", "ue8m0"};
constexpr std::array<std::string_view, 3> kRules{"ceil", "floor", "even"};
constexpr std::array<std::string_view, 5> kLayouts{"row", "column_tma", "packed_ue8m0",
                                                   "swizzle_128x4", "swizzle_8x4"};
constexpr std::array<std::string_view, 3> kOutTypes{"bf16", "f16", "f32"};
constexpr OptionSpec kFormat{.name = "format",
                             .type = OptionType::choice,
                             .default_text = "fp8_token",
                             .words = kFormats,
                             .doc =
                                 "what shares a scale: all, a row, 128 elements of a row, 128 of "
                                 "128 rows, or 32, 32, 16 elements of a row"};
constexpr OptionSpec kScaleLayout{.name = "scale_layout",
                                  .type = OptionType::choice,
                                  .default_text = "row",
                                  .words = kLayouts,
                                  .doc = "where the scales of groups lie; padding is written"};
constexpr std::array<OptionSpec, 7> kQuantizeOptions{{
    kFormat,
    {.name = "element",
     .type = OptionType::choice,
     .default_text = "e4m3",
     .words = kElements,
     .doc = "type of mxfp8's elements"},
    {.name = "scale_type",
     .type = OptionType::choice,
     .default_text = "f32",
     .words = kScaleTypes,
     .doc = "of fp8 formats; ue8m0: the power of two at or above"},
    {.name = "scale_rule",
     .type = OptionType::choice,
     .default_text = "ceil",
     .words = kRules,
     .doc =
         "mx: nothing saturates; by the exponent of the largest; by that of the rounded largest"},
    kScaleLayout,
    {.name = "exact",
     .type = OptionType::boolean,
     .default_text = "true",
     .doc = "divide by the scale; false: multiply by its reciprocal"},
    {.name = "floor",
     .type = OptionType::real,
     .default_text = "1e-10",
     .least = 1e-30,
     .doc = "fp8: least largest magnitude of a group"},
}};
constexpr std::array<OptionSpec, 3> kDequantizeOptions{{
    kFormat,
    kScaleLayout,
    {.name = "out_type",
     .type = OptionType::choice,
     .default_text = "bf16",
     .words = kOutTypes,
     .doc = "type of y"},
}};

constexpr std::array<std::string_view, 11> kQuantizeProblems{
    "T=32768,H=4096,x=bf16,format=fp8_token",
    "T=32768,H=7168,x=bf16,format=fp8_token",
    "T=32768,H=4096,x=bf16,format=fp8_block",
    "T=32768,H=7168,x=bf16,format=fp8_block",
    "T=64,H=7168,x=bf16,format=fp8_block",
    "T=32768,H=7168,x=bf16,format=mxfp8",
    "T=32768,H=7168,x=bf16,format=mxfp4",
    "T=32768,H=7168,x=bf16,encode_scale=f32,format=nvfp4",
    "T=64,H=7168,x=bf16,encode_scale=f32,format=nvfp4,scale_layout=swizzle_128x4",
    "T=32768,H=7168,x=bf16,format=fp8_tensor",
    "T=7168,H=18432,x=bf16,format=fp8_block2d"};

constexpr std::array<std::string_view, 4> kDequantizeProblems{
    "T=32768,H=7168,format=fp8_token", "T=32768,H=7168,format=fp8_block",
    "T=32768,H=7168,format=mxfp4,q=e2m1,scales=ue8m0",
    "T=32768,H=7168,format=nvfp4,q=e2m1,scales=e4m3,decode_scale=f32"};

QuantFormat format_of(const Arguments& arguments) { return quant_format(arguments.text("format")); }
ScaleLayout layout_of(const Arguments& arguments) {
  return scale_layout(arguments.text("scale_layout"));
}

/// Of codes of this shape, as the outputs and inputs that the schema makes have it.
std::vector<std::int64_t> scales_shape_of(QuantFormat format, ScaleLayout layout,
                                          std::vector<std::int64_t> rows) {
  if (format == QuantFormat::fp8_tensor) return {1};
  const std::int64_t h = rows.back();
  if (format == QuantFormat::fp8_block2d) {
    rows.pop_back();
    return {rows::ceil_div(element_count(rows), 128), rows::ceil_div(h, 128)};
  }
  rows.back() = h / std::max<std::int64_t>(1, group_elems(format, h));
  const std::int64_t groups_n = rows.back();
  if (layout == ScaleLayout::row && format != QuantFormat::fp8_token) return rows;
  rows.pop_back();
  if (format == QuantFormat::fp8_token) return {element_count(rows)};
  return scales_shape(layout, element_count(rows), groups_n);
}

QuantizeOptions options_of(const Arguments& arguments) {
  std::string_view rule = arguments.text("scale_rule");
  return {.format = format_of(arguments),
          .floor = static_cast<float>(arguments.real("floor")),
          .exact = arguments.boolean("exact"),
          .rule = rule == "ceil"    ? ScaleRule::ceil
                  : rule == "floor" ? ScaleRule::floor
                                    : ScaleRule::even,
          .layout = layout_of(arguments)};
}
DequantizeOptions dequantize_options(const Arguments& arguments) {
  return {format_of(arguments), layout_of(arguments)};
}

std::optional<View> optional_view(const Arguments& arguments, std::string_view name) {
  const View* view = arguments.find(name);
  return view == nullptr ? std::nullopt : std::optional(*view);
}

QuantizeTensors quantize_tensors(const Arguments& a) {
  return {a.tensor("x"), optional_view(a, "scale"), optional_view(a, "encode_scale"), a.tensor("q"),
          a.tensor("scales")};
}

DequantizeTensors dequantize_tensors(const Arguments& a) {
  return {a.tensor("q"), a.tensor("scales"), optional_view(a, "decode_scale"), a.tensor("y")};
}

Type element_type(const Arguments& arguments) {
  QuantFormat format = format_of(arguments);
  if (format == QuantFormat::mxfp4 || format == QuantFormat::nvfp4) return e2m1;
  return arguments.text("element") == "e5m2" ? e5m2 : e4m3;
}

Type scale_type(const Arguments& arguments) {
  QuantFormat format = format_of(arguments);
  if (format == QuantFormat::nvfp4) return e4m3;
  return is_mx(format) || arguments.text("scale_type") == "ue8m0" ? ue8m0 : f32;
}

std::vector<std::int64_t> shape_of(const Arguments& arguments, const View& rows) {
  if (rows.rank < 1) arguments.fail("the rows have rank 0; they must have the modes [..., H]");
  return {rows.shape.begin(), rows.shape.begin() + rows.rank};
}

std::vector<OutputSpec> quantize_outputs(const Arguments& arguments) {
  std::vector<std::int64_t> shape = shape_of(arguments, arguments.tensor("x"));
  std::vector<std::int64_t> groups =
      scales_shape_of(format_of(arguments), layout_of(arguments), shape);
  return {{"q", element_type(arguments), std::move(shape)},
          {"scales", scale_type(arguments), std::move(groups)}};
}

std::int64_t workspace_bytes(const Arguments& arguments) {
  return quantize_workspace_bytes(format_of(arguments), arguments.find("scale") != nullptr);
}

/// The scale of a tensor whose largest magnitude is about 4.
void fill_encode_scale(const Problem&, std::vector<Array>& inputs) {
  constexpr std::array kEncode{672.0};
  for (Array& array : inputs) {
    if (array.name == "encode_scale") array = make_array(array.name, f32, {1}, kEncode);
  }
}

/// Scales of the shape that the format wants, powers of two.
void fill_scales(const Problem& problem, std::vector<Array>& inputs) {
  QuantFormat format = QuantFormat::fp8_token;
  ScaleLayout layout = ScaleLayout::row;
  for (const auto& [name, value] : problem.options) {
    if (name == "format") format = quant_format(value);
    if (name == "scale_layout") layout = scale_layout(value);
  }
  std::vector<std::int64_t> rows;
  for (const Array& array : inputs) {
    if (array.name == "q") rows = array.shape;
  }
  for (Array& array : inputs) {
    if (array.name != "scales") continue;
    std::vector<std::int64_t> shape = scales_shape_of(format, layout, rows);
    std::vector<double> values(static_cast<std::size_t>(element_count(shape)));
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = i % 2 == 0 ? 0.25 : 2;
    array = make_array(array.name, array.type, shape, values);
  }
}

std::vector<Traced> traced_of(Traced kernel) {
  std::vector<Traced> traced;
  traced.push_back(std::move(kernel));
  return traced;
}

constexpr Operator kQuantize{
    .schema = {.name = "quantize",
               .version = 2,
               .formula =
                   "fp8: scale = max(max |x|, floor) / 448, q = e4m3(x / scale); mx: scale = "
                   "2^k by scale_rule, q = x / scale; nvfp4: scale = e4m3(max |x| / 6 "
                   "encode_scale), q = e2m1(x encode_scale / scale)",
               .doc = "Quantises rows, saturating. NaN makes its group NaN; in mx and nvfp4, "
                      "infinity too, by a scale of NaN over codes of 0.",
               .tensors = kQuantizeTensors,
               .options = kQuantizeOptions},
    .outputs = quantize_outputs,
    .launch =
        [](const Device&, const Stream& stream, const Arguments& a) {
          quantize(stream, quantize_tensors(a), options_of(a), a.workspace(workspace_bytes(a)));
        },
    .workspace_bytes = workspace_bytes,
    .reference =
        [](const Arguments& a, HostTensors& tensors) {
          quantize_reference(options_of(a), element_type(a), scale_type(a), tensors);
        },
    .tolerance = [](const Arguments&, std::string_view) { return Tolerance{}; },  // exact codes
    .bytes =
        [](const Arguments& a) {
          return size_bytes(a.tensor("x")) + size_bytes(a.tensor("q")) +
                 size_bytes(a.tensor("scales"));
        },
    .trace =
        [](const Arguments& a, ptx::Target target) {
          const QuantizePlan plan =
              plan_quantize(DeviceProperties{}, quantize_tensors(a), options_of(a));
          std::vector<Traced> traced;
          if (plan.scale_is_found) {
            traced.push_back(plan_tensor_scale(DeviceProperties{}, plan.tensors.x,
                                               a.tensor("scales"), plan.options.floor,
                                               {0, kTensorScaleBytes}, {"quantize", {}})
                                 .trace(target));
          }
          traced.push_back(plan.trace(target));
          return traced;
        },
    .fill = fill_encode_scale,
    .bench_problems = kQuantizeProblems,
};

/// One rounding to y's type, and two of products in f32.
Tolerance dequantize_tolerance(const Arguments& arguments, std::string_view) {
  Type type = *type_from_name(arguments.text("out_type"));
  return {.relative = rows::half_ulp(type) + 3 * 0x1p-24, .absolute = rows::half_tiniest(type)};
}

constexpr Operator kDequantize{
    .schema = {.name = "dequantize",
               .version = 2,
               .formula = "y = q * scale (* decode_scale)",
               .doc = "Expands codes with their scales.",
               .tensors = kDequantizeTensors,
               .options = kDequantizeOptions},
    .outputs = [](const Arguments& a) -> std::vector<OutputSpec> {
      return {{"y", *type_from_name(a.text("out_type")), shape_of(a, a.tensor("q"))}};
    },
    .launch =
        [](const Device&, const Stream& stream, const Arguments& a) {
          dequantize(stream, dequantize_tensors(a), dequantize_options(a));
        },
    .reference = [](const Arguments& a,
                    HostTensors& tensors) { dequantize_reference(dequantize_options(a), tensors); },
    .tolerance = dequantize_tolerance,
    .bytes =
        [](const Arguments& a) {
          return size_bytes(a.tensor("q")) + size_bytes(a.tensor("scales")) +
                 size_bytes(a.tensor("y"));
        },
    .trace =
        [](const Arguments& a, ptx::Target target) {
          return traced_of(
              plan_dequantize(DeviceProperties{}, dequantize_tensors(a), dequantize_options(a))
                  .trace(target));
        },
    .fill = fill_scales,
    .bench_problems = kDequantizeProblems,
};

}  // namespace

const Operator& quantize_operator() { return kQuantize; }
const Operator& dequantize_operator() { return kDequantize; }

}  // namespace tilewright
