// SPDX-License-Identifier: Apache-2.0
// The operator rms_norm as the command line and bindings see it.
#include "kernels/rms_norm/reference.h"
#include "kernels/rms_norm/rms_norm.h"
#include "kernels/rows/rows.h"

#include <array>
#include <cmath>

namespace tilewright {
namespace {

constexpr std::array kReals{bf16, f16, f32};
constexpr std::array kF32{f32};
constexpr std::array<TensorSpec, 4> kTensors{{
    {.name = "x",
     .role = Role::input,
     .shape = "...,H",
     .types = kReals,
     .doc = "rows; all modes but the last are folded"},
    {.name = "w",
     .role = Role::input,
     .presence = Presence::optional,
     .shape = "H",
     .types = kReals,
     .doc = "x's type or f32; absent: 1"},
    {.name = "y",
     .role = Role::output,
     .shape = "...,H",
     .types = kReals,
     .may_alias = "x",
     .doc = "x's type or f32 (out_type)"},
    {.name = "rstd",
     .role = Role::output,
     .presence = Presence::optional,
     .shape = "T",
     .types = kF32,
     .doc = "1 / sqrt(mean(x^2) + eps) of each row"},
}};
constexpr std::array<std::string_view, 2> kOutTypes{"as_x", "f32"};
constexpr std::array<OptionSpec, 5> kOptions{{
    {.name = "eps",
     .type = OptionType::real,
     .default_text = "1e-6",
     .least = 0,
     .doc = "added to the mean of the squares"},
    {.name = "weight_bias",
     .type = OptionType::real,
     .default_text = "0",
     .doc = "added to w in f32: 1 for Gemma"},
    {.name = "cast_before_weight",
     .type = OptionType::boolean,
     .default_text = "false",
     .doc = "round x / rms to x's type before the weight"},
    {.name = "partial",
     .type = OptionType::integer,
     .default_text = "0",
     .least = 0,
     .doc = "take the mean over the first elements only; 0: all"},
    {.name = "out_type",
     .type = OptionType::choice,
     .default_text = "as_x",
     .words = kOutTypes,
     .doc = "type of y"},
}};
constexpr std::array<std::string_view, 6> kBenchProblems{
    "T=32768,H=2048,x=bf16,w=bf16", "T=32768,H=4096,x=bf16,w=bf16", "T=32768,H=7168,x=bf16,w=bf16",
    "T=32768,H=8192,x=bf16,w=bf16", "T=1,H=4096,x=bf16,w=bf16",     "T=64,H=4096,x=bf16,w=bf16"};

RmsNormOptions options_of(const Arguments& arguments) {
  RmsNormOptions options;
  options.eps = static_cast<float>(arguments.real("eps"));
  options.weight_bias = static_cast<float>(arguments.real("weight_bias"));
  options.order =
      arguments.boolean("cast_before_weight") ? WeightOrder::after_rounding : WeightOrder::last;
  options.partial = arguments.integer("partial");
  return options;
}

RmsNormTensors tensors_of(const Arguments& arguments) {
  RmsNormTensors tensors{arguments.tensor("x"), std::nullopt, arguments.tensor("y"), std::nullopt};
  if (const View* w = arguments.find("w")) tensors.w = *w;
  if (const View* rstd = arguments.find("rstd")) tensors.rstd = *rstd;
  return tensors;
}

std::vector<OutputSpec> outputs(const Arguments& arguments) {
  const View& x = arguments.tensor("x");
  if (x.rank < 1) arguments.fail("x has rank 0; it must have the modes [..., H]");
  std::vector<std::int64_t> shape(x.shape.begin(), x.shape.begin() + x.rank);
  std::int64_t rows = 1;
  for (int i = 0; i + 1 < x.rank; ++i)
    rows *= x.shape[static_cast<std::size_t>(i)];
  Type type = arguments.text("out_type") == "f32" ? f32 : x.type;
  return {{"y", type, std::move(shape)}, {"rstd", f32, {rows}}};
}

void launch(const Device&, const Stream& stream, const Arguments& arguments) {
  rms_norm(stream, tensors_of(arguments), options_of(arguments));
}

void reference(const Arguments& arguments, HostTensors& tensors) {
  RmsNormOptions options = options_of(arguments);
  rms_norm_reference({static_cast<double>(options.eps), static_cast<double>(options.weight_bias),
                      options.order == WeightOrder::after_rounding, options.partial},
                     tensors);
}

/// Contract, I 0.5 and 1.1: half an ulp of the output plus (log2(H) + 8) 2^-24 of |ref|.
/// Rounding first may land on the neighbour of a tie, which is one ulp of x's type.
Tolerance tolerance(const Arguments& arguments, std::string_view output) {
  const View& x = arguments.tensor("x");
  auto h = static_cast<double>(x.shape[static_cast<std::size_t>(x.rank - 1)]);
  double computed = (std::log2(h) + 8) * std::ldexp(1.0, -24);
  if (output == "rstd")
    return {.relative = computed + rows::half_ulp(f32), .absolute = rows::half_tiniest(f32)};
  Type type = arguments.text("out_type") == "f32" ? f32 : x.type;
  double rounding = rows::half_ulp(type);
  if (arguments.boolean("cast_before_weight")) rounding += 2 * rows::half_ulp(x.type);
  return {.relative = computed + rounding, .absolute = rows::half_tiniest(type)};
}

std::int64_t bytes(const Arguments& arguments) {
  const View& x = arguments.tensor("x");
  Type type = arguments.text("out_type") == "f32" ? f32 : x.type;
  std::int64_t total = size_bytes(x) + size(x) * bits(type) / 8;
  if (const View* w = arguments.find("w")) total += size_bytes(*w);
  if (const View* rstd = arguments.find("rstd")) total += size_bytes(*rstd);
  return total;
}

std::vector<Traced> trace(const Arguments& arguments, ptx::Target target) {
  DeviceProperties device;
  device.sm_count = 1;
  std::vector<Traced> traced;
  traced.push_back(
      plan_rms_norm(device, tensors_of(arguments), options_of(arguments)).trace(target));
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
