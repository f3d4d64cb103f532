// SPDX-License-Identifier: Apache-2.0
// The operator rms_norm as the command line and bindings see it.
#include "kernels/rms_norm/reference.h"
#include "kernels/rms_norm/rms_norm.h"
#include "kernels/rows/row_schema.h"

#include <cmath>

namespace tilewright {
namespace {

constexpr std::array<TensorSpec, 4> kTensors{{
    {.name = "x",
     .role = Role::input,
     .shape = "...,H",
     .types = kReals,
     .doc = "rows; all modes but the last are folded"},
    kWeightTensor,
    kNormOutput,
    {.name = "rstd",
     .role = Role::output,
     .presence = Presence::optional,
     .shape = "T",
     .types = kF32,
     .doc = "1 / sqrt(mean(x^2) + eps) of each row"},
}};
constexpr std::array<OptionSpec, 5> kOptions{{
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
constexpr std::array<std::string_view, 6> kBenchProblems{
    "T=32768,H=2048,x=bf16,w=bf16", "T=32768,H=4096,x=bf16,w=bf16", "T=32768,H=7168,x=bf16,w=bf16",
    "T=32768,H=8192,x=bf16,w=bf16", "T=1,H=4096,x=bf16,w=bf16",     "T=64,H=4096,x=bf16,w=bf16"};

RmsNormTensors tensors_of(const Arguments& arguments) {
  return {arguments.tensor("x"), optional_view(arguments, "w"), arguments.tensor("y"),
          optional_view(arguments, "rstd")};
}

std::vector<OutputSpec> outputs(const Arguments& arguments) {
  OutputSpec y = norm_output(arguments);
  std::int64_t row_count = 1;
  for (std::size_t i = 0; i + 1 < y.shape.size(); ++i)
    row_count *= y.shape[i];
  return {std::move(y), {"rstd", f32, {row_count}}};
}

void launch(const Device&, const Stream& stream, const Arguments& arguments) {
  rms_norm(stream, tensors_of(arguments), rms_options(arguments));
}

void reference(const Arguments& arguments, HostTensors& tensors) {
  rms_norm_reference(rms_options(arguments), tensors);
}

/// Contract, I 0.5 and 1.1: half an ulp of the output plus (log2(H) + 8) 2^-24 of |ref|.
/// Rounding first may land on the neighbour of a tie, which is one ulp of x's type.
Tolerance tolerance(const Arguments& arguments, std::string_view output) {
  double computed = std::log2(static_cast<double>(arguments.size("H"))) + 8;
  if (output == "rstd") return rounded_once(f32, computed);
  Tolerance tolerance = rounded_once(norm_output(arguments).type, computed);
  if (arguments.boolean("cast_before_weight"))
    tolerance.relative += 2 * rows::half_ulp(arguments.tensor("x").type);
  return tolerance;
}

std::int64_t bytes(const Arguments& arguments) {
  const View& x = arguments.tensor("x");
  std::int64_t total = bytes_of_inputs(arguments) + size(x) * bits(norm_output(arguments).type) / 8;
  if (const View* rstd = arguments.find("rstd")) total += size_bytes(*rstd);
  return total;
}

std::vector<Traced> trace(const Arguments& arguments, ptx::Target target) {
  std::vector<Traced> traced;
  traced.push_back(
      plan_rms_norm(traced_device(), tensors_of(arguments), rms_options(arguments)).trace(target));
  return traced;
}

constexpr Operator kRmsNorm{
    .schema = {.name = "rms_norm",
               .version = 1,
               .formula = "y = x / sqrt(mean(x^2) + eps) * (w + weight_bias)",
               .doc = "Root-mean-square normalisation of rows.",
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

const Operator& rms_norm_operator() { return kRmsNorm; }

}  // namespace tilewright
