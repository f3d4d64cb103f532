// SPDX-License-Identifier: Apache-2.0
// The operator layer_norm as the command line and bindings see it.
#include "kernels/layer_norm/layer_norm.h"
#include "kernels/layer_norm/reference.h"
#include "kernels/rows/row_schema.h"

#include <cmath>

namespace tilewright {
namespace {

constexpr std::array<TensorSpec, 6> kTensors{{
    {.name = "x",
     .role = Role::input,
     .shape = "...,H",
     .types = kReals,
     .doc = "rows; all modes but the last are folded"},
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
    kNormOutput,
    {.name = "residual_out",
     .role = Role::output,
     .presence = Presence::optional,
     .shape = "...,H",
     .types = kReals,
     .may_alias = "residual",
     .doc = "x + residual in residual's type"},
}};
constexpr std::array<OptionSpec, 4> kOptions{{
    {.name = "eps",
     .type = OptionType::real,
     .default_text = "1e-5",
     .least = 0,
     .doc = "added to the variance"},
    kWeightBiasOption,
    kOutTypeOption,
    kSumRoundingOption,
}};
constexpr std::array<std::string_view, 6> kBenchProblems{
    "T=32768,H=2048,x=bf16,w=bf16,bias=bf16", "T=32768,H=4096,x=bf16,w=bf16,bias=bf16",
    "T=8192,H=7168,x=bf16,w=bf16,bias=bf16",  "T=32768,H=8192,x=bf16,w=bf16,bias=bf16",
    "T=1,H=4096,x=bf16,w=bf16,bias=bf16",     "T=64,H=4096,x=bf16,w=bf16,bias=bf16"};

LayerNormOptions options_of(const Arguments& arguments) {
  return {.eps = static_cast<float>(arguments.real("eps")),
          .weight_bias = static_cast<float>(arguments.real("weight_bias")),
          .rounding = sum_rounding(arguments)};
}

LayerNormTensors tensors_of(const Arguments& arguments) {
  return {.x = arguments.tensor("x"),
          .w = optional_view(arguments, "w"),
          .bias = optional_view(arguments, "bias"),
          .residual = optional_view(arguments, "residual"),
          .y = arguments.tensor("y"),
          .residual_out = optional_view(arguments, "residual_out")};
}

std::vector<OutputSpec> outputs(const Arguments& arguments) {
  std::vector<OutputSpec> specs{norm_output(arguments)};
  if (const View* residual = arguments.find("residual"))
    specs.push_back({"residual_out", residual->type, specs.front().shape});
  return specs;
}

void launch(const Device&, const Stream& stream, const Arguments& arguments) {
  layer_norm(stream, tensors_of(arguments), options_of(arguments));
}

void reference(const Arguments& arguments, HostTensors& tensors) {
  layer_norm_reference(options_of(arguments), tensors);
}

/// Contract, I 1.3: half an ulp of the output plus (log2(H) + 12) 2^-24 of
/// (|x| + |mean|) rstd |w| + |bias|, for rows whose mean is at most a few standard deviations:
/// then four times the row's largest |ref| is more than that.
Tolerance tolerance(const Arguments& arguments, std::string_view output) {
  if (output == "residual_out") return {};
  double computed = std::log2(static_cast<double>(arguments.size("H"))) + 12;
  Tolerance tolerance = rounded_once(norm_output(arguments).type, 0);
  tolerance.of_row_max = 4 * computed * 0x1p-24;
  return tolerance;
}

std::int64_t bytes(const Arguments& arguments) {
  const View& x = arguments.tensor("x");
  std::int64_t total = bytes_of_inputs(arguments) + size(x) * bits(norm_output(arguments).type) / 8;
  if (const View* sum = arguments.find("residual_out")) total += size_bytes(*sum);
  return total;
}

std::vector<Traced> trace(const Arguments& arguments, ptx::Target target) {
  std::vector<Traced> traced;
  traced.push_back(
      plan_layer_norm(traced_device(), tensors_of(arguments), options_of(arguments)).trace(target));
  return traced;
}

constexpr Operator kLayerNorm{
    .schema = {.name = "layer_norm",
               .version = 1,
               .formula = "z = x + residual; y = (z - mean(z)) / sqrt(mean((z - mean(z))^2) + eps) "
                          "* (w + weight_bias) + bias; residual_out = z",
               .doc = "Normalisation of rows to mean 0 and variance 1, with an optional sum first.",
               .tensors = kTensors,
               .options = kOptions},
    .outputs = outputs,
    .launch = launch,
    .reference = reference,
    .tolerance = tolerance,
    .bytes = bytes,
    .trace = trace,
    .bench_problems = kBenchProblems,
};

}  // namespace

const Operator& layer_norm_operator() { return kLayerNorm; }

}  // namespace tilewright
