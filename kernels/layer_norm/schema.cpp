// SPDX-License-Identifier: Apache-2.0
// The operator layer_norm as the command line and bindings see it.
#include "kernels/layer_norm/layer_norm.h"
#include "kernels/layer_norm/reference.h"
#include "kernels/quantize/quant_schema.h"

#include <cmath>

namespace tilewright {
namespace {

constexpr std::array<TensorSpec, 8> kOwnTensors{{
    {.name = "x",
     .role = Role::input,
     .shape = "...,H",
     .types = kReals,
     .doc = "rows; all modes but the last are folded, and may be two strides apart"},
    kWeightTensor,
    {.name = "bias",
     .role = Role::input,
     .presence = Presence::optional,
     .shape = "H",
     .types = kReals,
     .doc = "x's type or f32; absent: 0"},
    {.name = "residual",
     .role = Role::input,
     .presence = Presence::optional,
     .shape = "...,H",
     .types = kReals,
     .doc = "added to x first; x's type or f32"},
    kExtraTensor,
    kNormOutput,
    {.name = "residual_out",
     .role = Role::output,
     .presence = Presence::optional,
     .shape = "...,H",
     .types = kReals,
     .may_alias = "residual",
     .doc = "x + residual + extra in residual's type"},
    kRstdTensor,
}};
constexpr auto kTensors = joined(kOwnTensors, kQuantOutputTensors);
constexpr std::array<OptionSpec, 6> kOwnOptions{{
    {.name = "eps",
     .type = OptionType::real,
     .default_text = "1e-5",
     .least = 0,
     .doc = "added to the variance"},
    kWeightBiasOption,
    kCastBeforeWeightOption,
    kPartialOption,
    kOutTypeOption,
    kSumRoundingOption,
}};
constexpr auto kOptions = joined(kOwnOptions, kQuantOutputOptions);
constexpr std::array<std::string_view, 9> kBenchProblems{
    "T=32768,H=2048,x=bf16,w=bf16,bias=bf16",
    "T=32768,H=4096,x=bf16,w=bf16,bias=bf16",
    "T=8192,H=7168,x=bf16,w=bf16,bias=bf16",
    "T=32768,H=8192,x=bf16,w=bf16,bias=bf16",
    "T=1,H=4096,x=bf16,w=bf16,bias=bf16",
    "T=64,H=4096,x=bf16,w=bf16,bias=bf16",
    "T=32768,H=4096,x=bf16,w=bf16,bias=bf16,quant=fp8_token",
    "T=32768,H=4096,x=bf16,w=bf16,bias=bf16,quant=mxfp8,scale_layout=swizzle_128x4",
    "T=32768,H=4096,x=bf16,w=bf16,bias=bf16,encode_scale=f32,quant=nvfp4"};

LayerNormOptions options_of(const Arguments& arguments) {
  if (arguments.find("residual") == nullptr)
    refuse_idle(arguments, "rounding", "without residual; there is no sum");
  const RowNormOptions shared = rms_options(arguments);
  return {.eps = shared.eps,
          .weight_bias = shared.weight_bias,
          .rounding = sum_rounding(arguments),
          .quant = quant_output_options(arguments),
          .order = shared.order,
          .partial = shared.partial};
}

LayerNormTensors tensors_of(const Arguments& arguments) {
  return {.x = arguments.tensor("x"),
          .w = optional_view(arguments, "w"),
          .bias = optional_view(arguments, "bias"),
          .residual = optional_view(arguments, "residual"),
          .y = optional_view(arguments, "y"),
          .residual_out = optional_view(arguments, "residual_out"),
          .quant = quant_output_tensors(arguments),
          .extra = optional_view(arguments, "extra"),
          .rstd = optional_view(arguments, "rstd")};
}

std::vector<OutputSpec> outputs(const Arguments& arguments) {
  std::vector<OutputSpec> specs{norm_output(arguments)};
  if (const View* residual = arguments.find("residual"))
    specs.push_back({"residual_out", residual->type, specs.front().shape});
  specs.push_back(rstd_output(specs.front()));
  add_quant_outputs(arguments, specs);
  return specs;
}

void launch(const Device&, const Stream& stream, const Arguments& arguments) {
  layer_norm(stream, tensors_of(arguments), options_of(arguments));
}

double units_of(const Arguments& arguments) { return layer_norm_units(arguments.size("H")); }

/// Of elements that hardly differ from the mean, whose error is the mean's: four times the units of
/// the row's largest |ref|. Groups of codes have at least a fourth of the row's largest. Rounding
/// to x's type before the weight may land on the neighbour of a tie.
double error_of_row_max(const Arguments& arguments) {
  const double error = 4 * units_of(arguments) * 0x1p-24;
  return arguments.boolean("cast_before_weight")
             ? error + 2 * rows::half_ulp(arguments.tensor("x").type)
             : error;
}

void reference(const Arguments& arguments, HostTensors& tensors) {
  layer_norm_reference(options_of(arguments), tensors);
  quant_output_reference(arguments, tensors, 4 * error_of_row_max(arguments));
}

Tolerance tolerance(const Arguments& arguments, std::string_view output) {
  if (output == "residual_out") return {};
  if (output == "rstd") return rounded_once(f32, units_of(arguments));
  const double error = error_of_row_max(arguments);
  if (auto codes = quant_output_tolerance(arguments, output, 4 * error)) {
    if (output == "q") codes->of_row_max = 4 * error;
    return *codes;
  }
  Tolerance tolerance = rounded_once(norm_output(arguments).type, 0);
  tolerance.of_row_max = error;
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
      plan_layer_norm(traced_device(), tensors_of(arguments), options_of(arguments)).trace(target));
  return traced;
}

constexpr Operator kLayerNorm{
    .schema =
        {.name = "layer_norm",
         .version = 2,
         .formula =
             "z = x + residual + extra; y = (z - mean(z)) / sqrt(mean((z - mean(z))^2) + eps) "
             "* (w + weight_bias) + bias; residual_out = z",
         .doc =
             "Normalisation of rows to mean 0 and variance 1, with an optional sum first, also as "
             "codes with scales.",
         .tensors = kTensors,
         .options = kOptions,
         .limits = "y is bit for bit layer_norm of residual_out (round_first). H is 1 to 1048576, "
                   "and elements of a row are next to each other. NaN and infinity make a row NaN. "
                   "A row of equal numbers gives the bias where their mean is exact (H a power of "
                   "two), else at most 2^-20 |z| / sqrt(eps) more. Where z and its mean cancel, y "
                   "may be off by (log2(H) + 12) 2^-24 of (|z| + |mean|) / deviation * |w| besides "
                   "the tolerance. With quant, groups of fp8_block have 128 elements at most, and "
                   "rows a multiple of a 32nd of them."},
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

const Operator& layer_norm_operator() { return kLayerNorm; }

}  // namespace tilewright
