// SPDX-License-Identifier: Apache-2.0
// The operator fused_add_rms_norm as the command line and bindings see it.
#include "kernels/fused_add_rms_norm/fused_add_rms_norm.h"
#include "kernels/fused_add_rms_norm/reference.h"
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
    {.name = "residual",
     .role = Role::input,
     .shape = "...,H",
     .types = kReals,
     .doc = "x's type or f32"},
    kWeightTensor,
    {.name = "extra",
     .role = Role::input,
     .presence = Presence::optional,
     .shape = "...,H",
     .types = kReals,
     .doc = "added after residual: a second branch; x's type or f32"},
    kNormOutput,
    {.name = "residual_out",
     .role = Role::output,
     .shape = "...,H",
     .types = kReals,
     .may_alias = "residual",
     .doc = "x + residual + extra in residual's type"},
}};
constexpr std::array<OptionSpec, 6> kOptions{{
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
constexpr std::array<std::string_view, 6> kBenchProblems{
    "T=8192,H=7168,x=bf16,residual=bf16,w=bf16",  "T=32768,H=2048,x=bf16,residual=bf16,w=bf16",
    "T=32768,H=4096,x=bf16,residual=bf16,w=bf16", "T=32768,H=8192,x=bf16,residual=bf16,w=bf16",
    "T=1,H=4096,x=bf16,residual=bf16,w=bf16",     "T=64,H=4096,x=bf16,residual=bf16,w=bf16"};

FusedAddRmsNormOptions options_of(const Arguments& arguments) {
  RowNormOptions options = rms_options(arguments);
  options.rounding = sum_rounding(arguments);
  return options;
}

FusedAddRmsNormTensors tensors_of(const Arguments& arguments) {
  return {.x = arguments.tensor("x"),
          .residual = arguments.tensor("residual"),
          .w = optional_view(arguments, "w"),
          .extra = optional_view(arguments, "extra"),
          .y = arguments.tensor("y"),
          .residual_out = arguments.tensor("residual_out")};
}

std::vector<OutputSpec> outputs(const Arguments& arguments) {
  OutputSpec y = norm_output(arguments);
  OutputSpec sum{"residual_out", arguments.tensor("residual").type, y.shape};
  return {std::move(y), std::move(sum)};
}

void launch(const Device&, const Stream& stream, const Arguments& arguments) {
  fused_add_rms_norm(stream, tensors_of(arguments), options_of(arguments));
}

void reference(const Arguments& arguments, HostTensors& tensors) {
  fused_add_rms_norm_reference(options_of(arguments), tensors);
}

/// Contract, I 1.2: residual_out bit for bit; y as rms_norm's, of the sum that the norm reads.
Tolerance tolerance(const Arguments& arguments, std::string_view output) {
  if (output == "residual_out") return {};
  double computed = std::log2(static_cast<double>(arguments.size("H"))) + 8;
  Tolerance tolerance = rounded_once(norm_output(arguments).type, computed);
  if (arguments.boolean("cast_before_weight"))
    tolerance.relative += 2 * rows::half_ulp(arguments.tensor("x").type);
  return tolerance;
}

std::int64_t bytes(const Arguments& arguments) {
  const View& x = arguments.tensor("x");
  return bytes_of_inputs(arguments) + size(x) * bits(norm_output(arguments).type) / 8 +
         size_bytes(arguments.tensor("residual"));
}

std::vector<Traced> trace(const Arguments& arguments, ptx::Target target) {
  std::vector<Traced> traced;
  traced.push_back(
      plan_fused_add_rms_norm(traced_device(), tensors_of(arguments), options_of(arguments))
          .trace(target));
  return traced;
}

constexpr Operator kFusedAddRmsNorm{
    .schema = {.name = "fused_add_rms_norm",
               .version = 1,
               .formula = "z = x + residual + extra; y = z / sqrt(mean(z^2) + eps) * (w + "
                          "weight_bias); residual_out = z",
               .doc = "Adds the residual, and normalises the sum by its root mean square.",
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

const Operator& fused_add_rms_norm_operator() { return kFusedAddRmsNorm; }

}  // namespace tilewright
