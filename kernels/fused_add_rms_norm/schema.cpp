// SPDX-License-Identifier: Apache-2.0
// The operator fused_add_rms_norm as the command line and bindings see it.
#include "kernels/fused_add_rms_norm/fused_add_rms_norm.h"
#include "kernels/fused_add_rms_norm/reference.h"
#include "kernels/quantize/quant_schema.h"

namespace tilewright {
namespace {

constexpr std::array<TensorSpec, 6> kOwnTensors{{
    {.name = "x",
     .role = Role::input,
     .shape = "...,H",
     .types = kReals,
     .doc = "rows; all modes but the last are folded, and may be two strides apart"},
    {.name = "residual",
     .role = Role::input,
     .shape = "...,H",
     .types = kReals,
     .doc = "x's type or f32"},
    kWeightTensor,
    kExtraTensor,
    kNormOutput,
    {.name = "residual_out",
     .role = Role::output,
     .shape = "...,H",
     .types = kReals,
     .may_alias = "residual",
     .doc = "x + residual + extra in residual's type"},
}};
constexpr auto kTensors = joined(kOwnTensors, kQuantOutputTensors);
constexpr std::array<OptionSpec, 6> kOwnOptions{{
    {.name = "eps",
     .type = OptionType::real,
     .default_text = "1e-6",
     .least = 0,
     .doc = "added to the mean of the squares"},
    kWeightBiasOption,
    kCastBeforeWeightOption,
    kPartialOption,
    kOutTypeOption,
    kSumRoundingOption,
}};
constexpr auto kOptions = joined(kOwnOptions, kQuantOutputOptions);
constexpr std::array<std::string_view, 11> kBenchProblems{
    "T=8192,H=7168,x=bf16,residual=bf16,w=bf16",
    "T=32768,H=2048,x=bf16,residual=bf16,w=bf16",
    "T=32768,H=4096,x=bf16,residual=bf16,w=bf16",
    "T=32768,H=8192,x=bf16,residual=bf16,w=bf16",
    "T=1,H=4096,x=bf16,residual=bf16,w=bf16",
    "T=64,H=4096,x=bf16,residual=bf16,w=bf16",
    "T=8192,H=7168,x=bf16,residual=bf16,w=bf16,quant=fp8_token",
    "T=8192,H=7168,x=bf16,residual=bf16,w=bf16,quant=fp8_block,scale_layout=column_tma",
    "T=8192,H=7168,x=bf16,residual=bf16,w=bf16,quant=mxfp8,scale_layout=swizzle_128x4",
    "T=8192,H=7168,x=bf16,residual=bf16,w=bf16,encode_scale=f32,quant=nvfp4,scale_layout="
    "swizzle_128x4",
    "T=64,H=7168,x=bf16,residual=bf16,w=bf16,quant=fp8_token"};

FusedAddRmsNormOptions options_of(const Arguments& arguments) {
  RowNormOptions options = rms_options(arguments);
  options.rounding = sum_rounding(arguments);
  options.quant = quant_output_options(arguments);
  return options;
}

FusedAddRmsNormTensors tensors_of(const Arguments& arguments) {
  return {.x = arguments.tensor("x"),
          .residual = arguments.tensor("residual"),
          .w = optional_view(arguments, "w"),
          .extra = optional_view(arguments, "extra"),
          .y = optional_view(arguments, "y"),
          .residual_out = arguments.tensor("residual_out"),
          .quant = quant_output_tensors(arguments)};
}

std::vector<OutputSpec> outputs(const Arguments& arguments) {
  OutputSpec y = norm_output(arguments);
  OutputSpec sum{"residual_out", arguments.tensor("residual").type, y.shape};
  std::vector<OutputSpec> specs{std::move(y), std::move(sum)};
  add_quant_outputs(arguments, specs);
  return specs;
}

void launch(const Device&, const Stream& stream, const Arguments& arguments) {
  fused_add_rms_norm(stream, tensors_of(arguments), options_of(arguments));
}

void reference(const Arguments& arguments, HostTensors& tensors) {
  fused_add_rms_norm_reference(options_of(arguments), tensors);
  quant_output_reference(arguments, tensors, rms_norm_error(arguments));
}

/// Contract, I 1.2: residual_out bit for bit; y as rms_norm's, of the sum that the norm reads.
Tolerance tolerance(const Arguments& arguments, std::string_view output) {
  if (output == "residual_out") return {};
  const double error = rms_norm_error(arguments);
  if (const auto codes = quant_output_tolerance(arguments, output, error)) return *codes;
  Tolerance tolerance = rounded_once(norm_output(arguments).type, 0);
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
      plan_fused_add_rms_norm(traced_device(), tensors_of(arguments), options_of(arguments))
          .trace(target));
  return traced;
}

constexpr Operator kFusedAddRmsNorm{
    .schema =
        {.name = "fused_add_rms_norm",
         .version = 2,
         .formula = "z = x + residual + extra; y = z / sqrt(mean(z^2) + eps) * (w + "
                    "weight_bias); residual_out = z",
         .doc = "Adds the residual, and normalises the sum by its root mean square, also as codes "
                "with scales.",
         .tensors = kTensors,
         .options = kOptions,
         .limits = "y is bit for bit rms_norm of residual_out (round_first). H is 1 to 1048576, "
                   "and elements of a row are next to each other. A row of zeros is NaN where eps "
                   "is 0; a sum of squares beyond f32 counts as infinite, and finite elements "
                   "become 0; a NaN makes its row NaN, and so does infinity itself, beside which "
                   "finite elements become 0. With quant, groups of fp8_block have 128 elements at "
                   "most, and rows a multiple of a 32nd of them."},
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

const Operator& fused_add_rms_norm_operator() { return kFusedAddRmsNorm; }

}  // namespace tilewright
