// SPDX-License-Identifier: Apache-2.0
// quantize and dequantize as the command line and bindings see them.
#include "kernels/quantize/batch_reference.h"
#include "kernels/quantize/quant_schema.h"
#include "kernels/quantize/reference.h"
#include "kernels/quantize/tensor_scale.h"

#include <algorithm>
#include <array>

namespace tilewright {
namespace {

constexpr TensorSpec as_input(TensorSpec spec) {
  spec.role = Role::input;
  return spec;
}

constexpr std::array<TensorSpec, 7> kQuantizeTensors{{
    {.name = "x", .role = Role::input, .shape = "...,H", .types = kReals, .doc = "rows"},
    {.name = "scale",
     .role = Role::input,
     .presence = Presence::optional,
     .shape = "1",
     .types = kF32,
     .doc = "fp8_tensor: the decode scale; absent: found in a pass before"},
    kEncodeScaleTensor,
    kCodesTensor,
    kScalesTensor,
    kSaturatedTensor,
    kTokensPerExpert,
}};
constexpr std::array<TensorSpec, 5> kDequantizeTensors{{
    as_input(kCodesTensor),
    as_input(kScalesTensor),
    {.name = "decode_scale",
     .role = Role::input,
     .presence = Presence::optional,
     .shape = "1",
     .types = kF32,
     .doc = "nvfp4: 1 / encode_scale"},
    {.name = "y", .role = Role::output, .shape = "...,H", .types = kReals, .doc = "numbers"},
    kTokensPerExpert,
}};

constexpr std::array<std::string_view, 7> kFormats{
    "fp8_tensor", "fp8_token", "fp8_block", "fp8_block2d", "mxfp8", "mxfp4", "nvfp4"};
constexpr std::array<std::string_view, 3> kNumberTypes{"bf16", "f16", "f32"};
constexpr OptionSpec kFormat{.name = "format",
                             .type = OptionType::choice,
                             .default_text = "fp8_token",
                             .words = kFormats,
                             .doc =
                                 "what shares a scale: all, a row, 128 elements of a row, 128 of "
                                 "128 rows, or 32, 32, 16 elements of a row"};
constexpr auto kQuantizeOptions = joined(std::array{kFormat}, kCodingOptions);
constexpr std::array<OptionSpec, 5> kDequantizeOptions{{
    kFormat,
    kScaleLayoutOption,
    kGroupOption,
    kRaggedTailOption,
    {.name = "out_type",
     .type = OptionType::choice,
     .default_text = "bf16",
     .words = kNumberTypes,
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

QuantizeOptions options_of(const Arguments& arguments) {
  return coding_options(arguments, "format");
}
DequantizeOptions dequantize_options(const Arguments& arguments) {
  refuse_idle_groups(arguments, format_of(arguments));
  return {format_of(arguments), layout_of(arguments), arguments.integer("group"),
          arguments.boolean("ragged_tail") ? Tail::ragged : Tail::whole};
}

QuantizeTensors quantize_tensors(const Arguments& a) {
  return {a.tensor("x"),
          optional_view(a, "scale"),
          optional_view(a, "encode_scale"),
          a.tensor("q"),
          a.tensor("scales"),
          optional_view(a, "saturated"),
          optional_view(a, "tokens_per_expert")};
}

DequantizeTensors dequantize_tensors(const Arguments& a) {
  return {a.tensor("q"), a.tensor("scales"), optional_view(a, "decode_scale"), a.tensor("y"),
          optional_view(a, "tokens_per_expert")};
}

std::vector<std::int64_t> rows_shape(const Arguments& arguments, const View& rows) {
  if (rows.rank < 1) arguments.fail("the rows have rank 0; they must have the modes [..., H]");
  return shape_of(rows);
}

/// The shape of the scales of codes.
std::vector<std::int64_t> scales_of(const Arguments& arguments,
                                    const std::vector<std::int64_t>& codes) {
  const QuantFormat format = format_of(arguments);
  const ScaleLayout layout = layout_of(arguments);
  const std::int64_t group = arguments.integer("group");
  return has_experts(arguments, "x") ? scales_shape_of_batch(format, layout, group, codes)
                                     : scales_shape_of(format, layout, group, codes);
}

std::vector<OutputSpec> quantize_outputs(const Arguments& arguments) {
  std::vector<std::int64_t> shape = rows_shape(arguments, arguments.tensor("x"));
  std::vector<std::int64_t> groups = scales_of(arguments, shape);
  return {{"q", element_type(arguments, format_of(arguments)), std::move(shape)},
          {"scales", scale_type(arguments, format_of(arguments)), std::move(groups)}};
}

std::int64_t workspace_bytes(const Arguments& arguments) {
  return quantize_workspace_bytes(format_of(arguments), arguments.find("scale") != nullptr);
}

/// The scale of a tensor whose largest magnitude is about 4.
void fill_encode_scale(const Problem& problem, std::vector<Array>& inputs) {
  fill_quant_scales(inputs, 4);
  fill_experts(problem, inputs, "x");
}

/// Scales of the shape that the format wants, powers of two.
void fill_scales(const Problem& problem, std::vector<Array>& inputs) {
  QuantFormat format = QuantFormat::fp8_token;
  ScaleLayout layout = ScaleLayout::row;
  std::int64_t group = 128;
  for (const auto& [name, value] : problem.options) {
    if (name == "format") format = quant_format(value);
    if (name == "group") group = std::stoll(value);
    if (name == "scale_layout") layout = scale_layout(value);
  }
  fill_experts(problem, inputs, "q");
  const bool experts = find_input(inputs, "tokens_per_expert") != nullptr;
  const std::vector<std::int64_t> rows = find_input(inputs, "q")->shape;
  for (Array& array : inputs) {
    if (array.name != "scales") continue;
    std::vector<std::int64_t> shape = experts ? scales_shape_of_batch(format, layout, group, rows)
                                              : scales_shape_of(format, layout, group, rows);
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

/// What an expert has no rows for is open.
NanRule open_behind_experts(const Arguments& arguments) {
  return arguments.find("tokens_per_expert") != nullptr ? NanRule::skip : NanRule::equal;
}

constexpr Operator kQuantize{
    .schema = {.name = "quantize",
               .version = 2,
               .formula =
                   "fp8: scale = max(max |x|, floor) / 448, q = e4m3(x / scale); mx: scale = "
                   "2^k by scale_rule, q = x / scale; nvfp4: scale = e4m3(max |x| / 6 "
                   "encode_scale), q = e2m1(x encode_scale / scale)",
               .doc = "Quantises rows, saturating. NaN makes its group NaN; in mx and nvfp4, "
                      "infinity too, by a scale of NaN over codes of 0. Experts' rows [E, T, H] "
                      "have scales in a layout of each expert's own.",
               .tensors = kQuantizeTensors,
               .options = kQuantizeOptions,
               .limits =
                   "H is a multiple of the format's group without ragged_tail, and even for "
                   "e2m1; fp8_token takes 2^30 elements. column_tma is for fp8_block with f32, "
                   "packed_ue8m0 for groups with ue8m0, the swizzles for mxfp8, mxfp4 and "
                   "nvfp4. Scales that are given are above 0."},
    .outputs = quantize_outputs,
    .launch =
        [](const Device&, const Stream& stream, const Arguments& a) {
          quantize(stream, quantize_tensors(a), options_of(a), a.workspace(workspace_bytes(a)));
        },
    .workspace_bytes = workspace_bytes,
    .reference =
        [](const Arguments& a, HostTensors& tensors) {
          const Type element = element_type(a, format_of(a));
          const Type scale = scale_type(a, format_of(a));
          if (!has_experts(a, "x")) {
            quantize_reference(options_of(a), element, scale, tensors);
            return;
          }
          quantize_batch_reference(options_of(a), element, scale,
                                   scales_of(a, tensors.at("x").shape), tensors);
        },
    .tolerance = [](const Arguments&, std::string_view) { return Tolerance{}; },  // exact codes
    .nan_rule = open_behind_experts,
    .check_contents =
        [](const Arguments& a, std::span<const Array> inputs) {
          check_scale(a, inputs);
          check_tokens(a, inputs, a.tensor("x"));
        },
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
                                               {0, kTensorScaleBytes}, {"quantize", {}},
                                               plan.tensors.tokens_per_expert)
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
               .options = kDequantizeOptions,
               .limits =
                   "As quantize's. Products are of f32: one rounding to it, and one to y's type."},
    .outputs = [](const Arguments& a) -> std::vector<OutputSpec> {
      const View& q = a.tensor("q");
      (void)has_experts(a, "q");  // refuses modes that those do not have
      return {{"y", *type_from_name(a.text("out_type")), rows_shape(a, q)}};
    },
    .launch =
        [](const Device&, const Stream& stream, const Arguments& a) {
          dequantize(stream, dequantize_tensors(a), dequantize_options(a));
        },
    .reference =
        [](const Arguments& a, HostTensors& tensors) {
          const auto reference =
              has_experts(a, "q") ? dequantize_batch_reference : dequantize_reference;
          reference(dequantize_options(a), tensors);
        },
    .tolerance = dequantize_tolerance,
    .nan_rule = open_behind_experts,
    .check_contents = [](const Arguments& a,
                         std::span<const Array> inputs) { check_tokens(a, inputs, a.tensor("q")); },
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
