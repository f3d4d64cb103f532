// SPDX-License-Identifier: Apache-2.0
// quantize and dequantize as the command line and bindings see them.
#include "kernels/quantize/reference.h"

#include <array>

namespace tilewright {
namespace {

constexpr std::array kReals{bf16, f16, f32};
constexpr std::array kF32{f32};
constexpr std::array kScales{f32, ue8m0};
constexpr std::array kCodes{e4m3};

constexpr std::array<TensorSpec, 4> kQuantizeTensors{{
    {.name = "x", .role = Role::input, .shape = "...,H", .types = kReals, .doc = "rows"},
    {.name = "scale",
     .role = Role::input,
     .presence = Presence::optional,
     .shape = "1",
     .types = kF32,
     .doc = "fp8_tensor: the decode scale"},
    {.name = "q", .role = Role::output, .shape = "...,H", .types = kCodes, .doc = "codes"},
    {.name = "scales",
     .role = Role::output,
     .shape = "*",
     .types = kScales,
     .doc = "decode scales: [1] (fp8_tensor), [T] (fp8_token) or [..., H/128] (fp8_block)"},
}};
constexpr std::array<TensorSpec, 3> kDequantizeTensors{{
    {.name = "q", .role = Role::input, .shape = "...,H", .types = kCodes, .doc = "codes"},
    {.name = "scales",
     .role = Role::input,
     .shape = "*",
     .types = kScales,
     .doc = "decode scales: [1], [T] or [..., H/128]"},
    {.name = "y", .role = Role::output, .shape = "...,H", .types = kReals, .doc = "numbers"},
}};

constexpr std::array<std::string_view, 3> kFormats{"fp8_tensor", "fp8_token", "fp8_block"};
constexpr std::array<std::string_view, 2> kScaleTypes{"f32", "ue8m0"};
constexpr std::array<std::string_view, 3> kOutTypes{"bf16", "f16", "f32"};
constexpr OptionSpec kFormat{.name = "format",
                             .type = OptionType::choice,
                             .default_text = "fp8_token",
                             .words = kFormats,
                             .doc = "what shares a scale: all, a row, 128 elements of a row"};
constexpr std::array<OptionSpec, 4> kQuantizeOptions{{
    kFormat,
    {.name = "scale_type",
     .type = OptionType::choice,
     .default_text = "f32",
     .words = kScaleTypes,
     .doc = "ue8m0: the power of two at or above"},
    {.name = "exact",
     .type = OptionType::boolean,
     .default_text = "true",
     .doc = "divide by the scale; false: multiply by its reciprocal"},
    {.name = "floor",
     .type = OptionType::real,
     .default_text = "1e-10",
     .least = 1e-30,
     .doc = "least largest magnitude of a group"},
}};
constexpr std::array<OptionSpec, 2> kDequantizeOptions{{
    kFormat,
    {.name = "out_type",
     .type = OptionType::choice,
     .default_text = "bf16",
     .words = kOutTypes,
     .doc = "type of y"},
}};

constexpr std::array<std::string_view, 5> kQuantizeProblems{
    "T=32768,H=4096,x=bf16,format=fp8_token", "T=32768,H=7168,x=bf16,format=fp8_token",
    "T=32768,H=4096,x=bf16,format=fp8_block", "T=32768,H=7168,x=bf16,format=fp8_block",
    "T=64,H=7168,x=bf16,format=fp8_block"};

constexpr std::array<std::string_view, 2> kDequantizeProblems{"T=32768,H=7168,format=fp8_token",
                                                              "T=32768,H=7168,format=fp8_block"};

QuantFormat format_named(std::string_view text) {
  return text == "fp8_tensor"  ? QuantFormat::fp8_tensor
         : text == "fp8_token" ? QuantFormat::fp8_token
                               : QuantFormat::fp8_block;
}
QuantFormat format_of(const Arguments& arguments) { return format_named(arguments.text("format")); }

std::vector<std::int64_t> scales_shape(QuantFormat format, std::vector<std::int64_t> rows) {
  if (format == QuantFormat::fp8_tensor) return {1};
  if (format == QuantFormat::fp8_block) {
    rows.back() /= kQuantBlock;
    return rows;
  }
  rows.pop_back();
  return {element_count(rows)};
}

QuantizeOptions options_of(const Arguments& arguments) {
  return {format_of(arguments), static_cast<float>(arguments.real("floor")),
          arguments.boolean("exact")};
}

QuantizeTensors quantize_tensors(const Arguments& arguments) {
  QuantizeTensors tensors{arguments.tensor("x"), std::nullopt, arguments.tensor("q"),
                          arguments.tensor("scales")};
  if (const View* scale = arguments.find("scale")) tensors.scale = *scale;
  return tensors;
}

DequantizeTensors dequantize_tensors(const Arguments& arguments) {
  return {arguments.tensor("q"), arguments.tensor("scales"), arguments.tensor("y")};
}

Type scale_type(const Arguments& arguments) {
  return arguments.text("scale_type") == "ue8m0" ? ue8m0 : f32;
}

std::vector<std::int64_t> shape_of(const Arguments& arguments, const View& rows) {
  if (rows.rank < 1) arguments.fail("the rows have rank 0; they must have the modes [..., H]");
  return {rows.shape.begin(), rows.shape.begin() + rows.rank};
}

std::vector<OutputSpec> quantize_outputs(const Arguments& arguments) {
  std::vector<std::int64_t> shape = shape_of(arguments, arguments.tensor("x"));
  std::vector<std::int64_t> groups = scales_shape(format_of(arguments), shape);
  return {{"q", e4m3, std::move(shape)}, {"scales", scale_type(arguments), std::move(groups)}};
}

/// Scales of the shape that the format wants, powers of two.
void fill_scales(const Problem& problem, std::vector<Array>& inputs) {
  QuantFormat format = QuantFormat::fp8_token;
  for (const auto& [name, value] : problem.options) {
    if (name == "format") format = format_named(value);
  }
  std::vector<std::int64_t> rows;
  for (const Array& array : inputs) {
    if (array.name == "q") rows = array.shape;
  }
  for (Array& array : inputs) {
    if (array.name != "scales") continue;
    std::vector<std::int64_t> shape = scales_shape(format, rows);
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
               .version = 1,
               .formula = "scale = max(max |x|, floor) / 448, q = e4m3(x / scale)",
               .doc = "Quantises rows to e4m3, saturating; NaN makes its group NaN.",
               .tensors = kQuantizeTensors,
               .options = kQuantizeOptions},
    .outputs = quantize_outputs,
    .launch = [](const Device&, const Stream& stream,
                 const Arguments& a) { quantize(stream, quantize_tensors(a), options_of(a)); },
    .reference =
        [](const Arguments& a, HostTensors& tensors) {
          quantize_reference(options_of(a), scale_type(a), tensors);
        },
    .tolerance = [](const Arguments&, std::string_view) { return Tolerance{}; },  // exact codes
    .bytes =
        [](const Arguments& a) {
          return size_bytes(a.tensor("x")) + size_bytes(a.tensor("q")) +
                 size_bytes(a.tensor("scales"));
        },
    .trace =
        [](const Arguments& a, ptx::Target target) {
          return traced_of(
              plan_quantize(DeviceProperties{}, quantize_tensors(a), options_of(a)).trace(target));
        },
    .bench_problems = kQuantizeProblems,
};

/// One rounding to y's type, and one of the product in f32.
Tolerance dequantize_tolerance(const Arguments& arguments, std::string_view) {
  Type type = *type_from_name(arguments.text("out_type"));
  return {.relative = rows::half_ulp(type) + 2 * 0x1p-24, .absolute = rows::half_tiniest(type)};
}

constexpr Operator kDequantize{
    .schema = {.name = "dequantize",
               .version = 1,
               .formula = "y = q * scale",
               .doc = "Expands e4m3 codes with their scales.",
               .tensors = kDequantizeTensors,
               .options = kDequantizeOptions},
    .outputs = [](const Arguments& a) -> std::vector<OutputSpec> {
      return {{"y", *type_from_name(a.text("out_type")), shape_of(a, a.tensor("q"))}};
    },
    .launch = [](const Device&, const Stream& stream,
                 const Arguments& a) { dequantize(stream, dequantize_tensors(a), format_of(a)); },
    .reference = [](const Arguments& a,
                    HostTensors& tensors) { dequantize_reference(format_of(a), tensors); },
    .tolerance = dequantize_tolerance,
    .bytes =
        [](const Arguments& a) {
          return size_bytes(a.tensor("q")) + size_bytes(a.tensor("scales")) +
                 size_bytes(a.tensor("y"));
        },
    .trace =
        [](const Arguments& a, ptx::Target target) {
          return traced_of(plan_dequantize(DeviceProperties{}, dequantize_tensors(a), format_of(a))
                               .trace(target));
        },
    .fill = fill_scales,
    .bench_problems = kDequantizeProblems,
};

}  // namespace

const Operator& quantize_operator() { return kQuantize; }
const Operator& dequantize_operator() { return kDequantize; }

}  // namespace tilewright
