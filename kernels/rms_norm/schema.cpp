// SPDX-License-Identifier: Apache-2.0
// The operator rms_norm as the command line and bindings see it.
#include "kernels/quantize/quant_schema.h"
#include "kernels/rms_norm/reference.h"
#include "kernels/rms_norm/rms_norm.h"

namespace tilewright {
namespace {

constexpr std::array<TensorSpec, 4> kOwnTensors{{
    {.name = "x",
     .role = Role::input,
     .shape = "...,H",
     .types = kReals,
     .doc = "rows; all modes but the last are folded, and may be two strides apart"},
    kWeightTensor,
    kNormOutput,
    kRstdTensor,
}};
constexpr auto kTensors = joined(kOwnTensors, kQuantOutputTensors);
constexpr std::array<OptionSpec, 5> kOwnOptions{{
    {.name = "eps",
     .type = OptionType::real,
     .default_text = "1e-6",
     .least = 0,
     .doc = "added to the mean of the squares"},
    kWeightBiasOption,
    kCastBeforeWeightOption,
    kPartialOption,
    kOutTypeOption,
}};
constexpr auto kOptions = joined(kOwnOptions, kQuantOutputOptions);
constexpr std::array<std::string_view, 13> kBenchProblems{
    "T=32768,H=2048,x=bf16,w=bf16",
    "T=32768,H=4096,x=bf16,w=bf16",
    "T=32768,H=7168,x=bf16,w=bf16",
    "T=32768,H=8192,x=bf16,w=bf16",
    "T=1,H=4096,x=bf16,w=bf16",
    "T=64,H=4096,x=bf16,w=bf16",
    "T=32768,H=7168,x=bf16,w=bf16,scale=f32,quant=fp8_tensor",
    "T=32768,H=7168,x=bf16,w=bf16,quant=fp8_token",
    "T=32768,H=7168,x=bf16,w=bf16,quant=fp8_block,scale_layout=column_tma",
    "T=32768,H=7168,x=bf16,w=bf16,quant=mxfp8,scale_layout=swizzle_128x4",
    "T=32768,H=7168,x=bf16,w=bf16,quant=mxfp4",
    "T=32768,H=7168,x=bf16,w=bf16,encode_scale=f32,quant=nvfp4,scale_layout=swizzle_128x4",
    "T=64,H=7168,x=bf16,w=bf16,quant=fp8_block"};

RmsNormOptions options_of(const Arguments& arguments) {
  RmsNormOptions options = rms_options(arguments);
  options.quant = quant_output_options(arguments);
  return options;
}

RmsNormTensors tensors_of(const Arguments& arguments) {
  return {.x = arguments.tensor("x"),
          .w = optional_view(arguments, "w"),
          .y = optional_view(arguments, "y"),
          .rstd = optional_view(arguments, "rstd"),
          .quant = quant_output_tensors(arguments)};
}

std::vector<OutputSpec> outputs(const Arguments& arguments) {
  OutputSpec y = norm_output(arguments);
  OutputSpec rstd = rstd_output(y);
  std::vector<OutputSpec> specs{std::move(y), std::move(rstd)};
  add_quant_outputs(arguments, specs);
  return specs;
}

void launch(const Device&, const Stream& stream, const Arguments& arguments) {
  rms_norm(stream, tensors_of(arguments), options_of(arguments));
}

void reference(const Arguments& arguments, HostTensors& tensors) {
  rms_norm_reference(options_of(arguments), tensors);
  quant_output_reference(arguments, tensors, rms_norm_error(arguments));
}

/// Half an ulp of the output, and the contract's error.
Tolerance tolerance(const Arguments& arguments, std::string_view output) {
  const double error = rms_norm_error(arguments);
  if (const auto codes = quant_output_tolerance(arguments, output, error)) return *codes;
  Tolerance tolerance = rounded_once(output == "rstd" ? f32 : norm_output(arguments).type, 0);
  tolerance.relative += error;
  return tolerance;
}

std::int64_t bytes(const Arguments& arguments) {
  return bytes_of_inputs(arguments) + bytes_of_outputs(arguments);
}

/// Numbers of about 4 times weights of about 4.
void fill(const Problem&, std::vector<Array>& inputs) { fill_quant_scales(inputs, 16); }

std::vector<Traced> trace(const Arguments& arguments, ptx::Target target) {
  std::vector<Traced> traced;
  traced.push_back(
      plan_rms_norm(traced_device(), tensors_of(arguments), options_of(arguments)).trace(target));
  return traced;
}

constexpr Operator kRmsNorm{
    .schema = {.name = "rms_norm",
               .version = 2,
               .formula = "y = x / sqrt(mean(x^2) + eps) * (w + weight_bias)",
               .doc = "Root-mean-square normalisation of rows, also as codes with scales.",
               .tensors = kTensors,
               .options = kOptions,
               .limits =
                   "H is 1 to 1048576, and elements of a row are next to each other. A row of "
                   "zeros is NaN where eps is 0; a sum of squares beyond f32 counts as infinite, "
                   "and finite elements become 0; a NaN makes its row NaN, and so does infinity "
                   "itself, beside which finite elements become 0. With quant, groups of fp8_block "
                   "have 128 elements at most, and rows a multiple of a 32nd of them."},
    .outputs = outputs,
    .launch = launch,
    .reference = reference,
    .tolerance = tolerance,
    .check_contents = check_scale,
    .bytes = bytes,
    .trace = trace,
    .fill = fill,
    .bench_problems = kBenchProblems,
};

}  // namespace

const Operator& rms_norm_operator() { return kRmsNorm; }

}  // namespace tilewright
