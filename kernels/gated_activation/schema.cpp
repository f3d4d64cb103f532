// SPDX-License-Identifier: Apache-2.0
// The gated activations as the command line and bindings see them.
#include "kernels/gated_activation/reference.h"
#include "kernels/quantize/batch_reference.h"
#include "kernels/quantize/quant_schema.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string>
#include <vector>

namespace tilewright {
namespace {

constexpr std::array<TensorSpec, 4> kOwnTensors{{
    {.name = "x",
     .role = Role::input,
     .shape = "...,N",
     .types = kReals,
     .doc = "rows of d gates and d factors; all modes but the last are folded; [E, T, N] with the "
            "tensors of experts"},
    {.name = "bias",
     .role = Role::input,
     .presence = Presence::optional,
     .shape = "N",
     .types = kReals,
     .doc = "added to every row of x in f32; x's type or f32"},
    {.name = "row_weight",
     .role = Role::input,
     .presence = Presence::optional,
     .shape = "T",
     .types = kF32,
     .doc = "a factor for each row"},
    {.name = "y",
     .role = Role::output,
     .shape = "...,D",
     .types = kReals,
     .doc = "x's type; with quant on demand"},
}};
constexpr TensorSpec kExpertAlpha{.name = "expert_alpha",
                                  .role = Role::input,
                                  .presence = Presence::optional,
                                  .shape = "E",
                                  .types = kF32,
                                  .doc = "in place of alpha"};
constexpr TensorSpec kExpertLimit{.name = "expert_limit",
                                  .role = Role::input,
                                  .presence = Presence::optional,
                                  .shape = "E",
                                  .types = kF32,
                                  .doc = "in place of limit"};
constexpr auto kRelu2Tensors =
    joined(joined(kOwnTensors, kQuantOutputTensors), std::array{kTokensPerExpert});
constexpr auto kMulTensors = joined(kRelu2Tensors, std::array{kExpertLimit});
constexpr auto kOaiTensors = joined(kMulTensors, std::array{kExpertAlpha});

constexpr std::array<std::string_view, 3> kLayouts{"halves", "swapped", "interleaved"};
constexpr std::array<std::string_view, 3> kClamps{"none", "before", "after"};
constexpr OptionSpec kLayout{
    .name = "layout",
    .type = OptionType::choice,
    .default_text = "halves",
    .words = kLayouts,
    .doc = "gates first, behind the factors (mul_and_silu), or alternating with them"};
constexpr OptionSpec kLimit{.name = "limit",
                            .type = OptionType::real,
                            .default_text = "7",
                            .doc = "largest gate, and largest factor of either sign"};
constexpr OptionSpec kRoundAct{.name = "round_act",
                               .type = OptionType::boolean,
                               .default_text = "false",
                               .doc = "round the activation to x's type before the product"};
constexpr OptionSpec kClampGate{.name = "clamp_gate",
                                .type = OptionType::choice,
                                .default_text = "none",
                                .words = kClamps,
                                .doc = "where the limit cuts the gate; none: no limit at all"};
constexpr OptionSpec kAlpha{.name = "alpha",
                            .type = OptionType::real,
                            .default_text = "1.702",
                            .doc = "factor inside the sigmoid"};
constexpr OptionSpec kGated{.name = "gated",
                            .type = OptionType::boolean,
                            .default_text = "false",
                            .doc = "x has two halves; the second one is multiplied in"};
constexpr auto kMulOptions =
    joined(std::array{kLayout, kClampGate, kLimit, kRoundAct}, kQuantOutputOptions);
constexpr auto kOaiOptions =
    joined(std::array{kLayout, kAlpha, kLimit, kRoundAct}, kQuantOutputOptions);
constexpr auto kRelu2Options = joined(std::array{kGated}, kQuantOutputOptions);

// Feed-forward widths of Qwen3-30B-A3B, DeepSeek-V3 and Qwen3-32B; one token.
constexpr std::array<std::string_view, 13> kMulProblems{
    "T=8192,N=1536,x=bf16",
    "T=8192,N=4096,x=bf16",
    "T=8192,N=24576,x=bf16",
    "T=8192,N=51200,x=bf16",
    "T=1,N=24576,x=bf16",
    "T=8192,N=24576,x=bf16,quant=fp8_token",
    "T=8192,N=24576,x=bf16,quant=fp8_block,scale_layout=column_tma",
    "T=8192,N=24576,x=bf16,quant=mxfp8,scale_layout=swizzle_128x4",
    "T=8192,N=24576,x=bf16,quant=mxfp4",
    "T=8192,N=24576,x=bf16,encode_scale=f32,quant=nvfp4,scale_layout=swizzle_128x4",
    "T=64,N=4096,x=bf16,quant=fp8_block",
    "E=32,T=8192,N=4096,x=bf16,tokens_per_expert=s32",
    "E=32,T=8192,N=4096,x=bf16,tokens_per_expert=s32,quant=fp8_block,scale_layout=column_tma"};
constexpr std::array<std::string_view, 3> kOaiProblems{
    "T=8192,N=5760,x=bf16,layout=interleaved", "T=64,N=5760,x=bf16,layout=interleaved",
    "T=8192,N=5760,x=bf16,layout=interleaved,quant=mxfp4"};
constexpr std::array<std::string_view, 3> kRelu2Problems{"T=8192,N=12288,x=bf16",
                                                         "T=8192,N=24576,x=bf16,gated=true",
                                                         "T=8192,N=12288,x=bf16,quant=fp8_block"};

template <Activation A>
GatedOptions options_of(const Arguments& arguments) {
  GatedOptions options;
  options.activation = A;
  options.quant = quant_output_options(arguments);
  if constexpr (A == Activation::relu2) {
    options.layout = arguments.boolean("gated") ? GateLayout::halves : GateLayout::none;
  } else {
    std::string_view layout = arguments.text("layout");
    options.layout = layout == "halves"    ? GateLayout::halves
                     : layout == "swapped" ? GateLayout::swapped
                                           : GateLayout::interleaved;
    options.limit = static_cast<float>(arguments.real("limit"));
    if (arguments.find("expert_limit") != nullptr)
      refuse_idle(arguments, "limit", "with expert_limit, which each expert has in its place");
    options.round_act = arguments.boolean("round_act");
    if constexpr (A == Activation::swigluoai) {
      options.alpha = static_cast<float>(arguments.real("alpha"));
      if (arguments.find("expert_alpha") != nullptr)
        refuse_idle(arguments, "alpha", "with expert_alpha, which each expert has in its place");
    } else {
      std::string_view clamp = arguments.text("clamp_gate");
      options.clamp_gate = clamp == "before"  ? ClampGate::before
                           : clamp == "after" ? ClampGate::after
                                              : ClampGate::none;
      if (options.clamp_gate == ClampGate::none)
        refuse_idle(arguments, "limit", "with clamp_gate=none; it takes before or after");
    }
  }
  return options;
}

template <Activation A>
GatedTensors tensors_of(const Arguments& arguments) {
  GatedTensors tensors{.x = arguments.tensor("x"),
                       .bias = optional_view(arguments, "bias"),
                       .row_weight = optional_view(arguments, "row_weight"),
                       .y = optional_view(arguments, "y"),
                       .quant = quant_output_tensors(arguments),
                       .tokens_per_expert = optional_view(arguments, "tokens_per_expert")};
  if constexpr (A != Activation::relu2)
    tensors.expert_limit = optional_view(arguments, "expert_limit");
  if constexpr (A == Activation::swigluoai)
    tensors.expert_alpha = optional_view(arguments, "expert_alpha");
  return tensors;
}

template <Activation A>
std::vector<OutputSpec> outputs(const Arguments& arguments) {
  const View& x = arguments.tensor("x");
  if (x.rank < 1) arguments.fail("x has rank 0; it must have the modes [..., N]");
  std::vector<std::int64_t> shape(x.shape.begin(), x.shape.begin() + x.rank);
  if (options_of<A>(arguments).layout != GateLayout::none) shape.back() /= 2;
  const bool experts = tensors_of<A>(arguments).has_experts();
  if (experts && x.rank != 3)
    arguments.fail("x is " + to_string(x) + "; with experts it must have the modes [E, T, N]");
  std::vector<OutputSpec> specs{{"y", x.type, std::move(shape)}};
  add_quant_outputs(arguments, specs, experts ? Batching::batch : Batching::one);
  return specs;
}

template <Activation A>
void launch(const Device&, const Stream& stream, const Arguments& arguments) {
  gated_activation(stream, tensors_of<A>(arguments), options_of<A>(arguments));
}

template <Activation A>
ExpertRows rows_of_experts(const Arguments& arguments, const HostTensors& tensors) {
  if (!tensors_of<A>(arguments).has_experts()) return std::nullopt;
  return expert_rows(tensors, tensors.at("x"));
}

/// What an expert has no rows for is open.
NanRule nan_rule(const Arguments& arguments) {
  return arguments.find("tokens_per_expert") != nullptr ? NanRule::skip : NanRule::equal;
}

/// Contract, I 3.1: half an ulp of the output and c = 32 (f32) or 16 units of 2^-24. The argument
/// of exp, up to 128 in size, has an error of its own in approximate code, which writes 16 bits:
/// 2^-24 of it. Tails of gelu below 2^-126 may become 0.
template <Activation A>
double error_of(const Arguments& arguments) {
  Type type = arguments.tensor("x").type;
  constexpr bool kHasExp = A != Activation::relu2;
  double units = type == f32 ? 32 : 16;
  if (kHasExp && type != f32) units += 128;
  double error = units * 0x1p-24;
  if constexpr (kHasExp) {
    // Rounding to a type and only then multiplying may land on the neighbour of a tie.
    if (arguments.boolean("round_act")) error += 2 * rows::half_ulp(type);
  }
  return error;
}

template <Activation A>
void reference(const Arguments& arguments, HostTensors& tensors) {
  gated_activation_reference(options_of<A>(arguments), tensors);
  quant_output_reference(arguments, tensors, error_of<A>(arguments),
                         rows_of_experts<A>(arguments, tensors));
}

template <Activation A>
Tolerance tolerance(const Arguments& arguments, std::string_view output) {
  const Type type = arguments.tensor("x").type;
  const double error = error_of<A>(arguments);
  if (const auto codes = quant_output_tolerance(arguments, output, error)) return *codes;
  return {.relative = rows::half_ulp(type) + error,
          .absolute = rows::half_tiniest(type) + (A == Activation::gelu ? 0x1p-110 : 0)};
}

std::int64_t bytes(const Arguments& arguments) {
  return bytes_of_inputs(arguments) + bytes_of_outputs(arguments);
}

/// Products of numbers of about 4. The T rows of a problem are those of its E experts: as many
/// each, all of which count, and so do their bytes.
void fill(const Problem& problem, std::vector<Array>& inputs) {
  fill_quant_scales(inputs, 16);
  bool has_experts = false;
  auto set_numbers = [&](Array& array, double number) {
    has_experts = true;
    array = make_array(array.name, array.type, array.shape,
                       std::vector<double>(static_cast<std::size_t>(array.shape[0]), number));
  };
  auto rows_each = [&] { return problem.size("T") / std::max<std::int64_t>(1, problem.size("E")); };
  for (Array& array : inputs) {
    if (array.name == "tokens_per_expert") set_numbers(array, static_cast<double>(rows_each()));
    if (array.name == "expert_alpha" || array.name == "expert_limit") set_numbers(array, 1.5);
  }
  if (!has_experts) return;
  const std::int64_t experts = problem.size("E"), each = rows_each();
  for (Array& array : inputs) {
    if (array.name == "x") array.shape = {experts, each, array.shape.back()};
    if (array.name == "row_weight") array.shape = {experts * each};
    if (!array.bytes.empty())
      array.bytes.resize(static_cast<std::size_t>(storage_bytes(array.type, array.shape)));
  }
}

/// Contents of the tensors of experts that no launch sees.
void check_contents(const Arguments& arguments, std::span<const Array> inputs) {
  check_scale(arguments, inputs);
  check_tokens(arguments, inputs, arguments.tensor("x"));
  auto check_each = [&](const char* name, auto&& right, const std::string& what) {
    const Array* array = find_input(inputs, name);
    if (array == nullptr) return;
    const std::vector<double> values = to_doubles(*array);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (right(values[i])) continue;
      arguments.fail(std::string(name) + "[" + std::to_string(i) + "] is " +
                     std::to_string(values[i]) + "; it must be " + what);
    }
  };
  check_each(
      "expert_alpha", [](double a) { return std::isfinite(a); }, "finite");
  check_each(
      "expert_limit", [](double a) { return std::isfinite(a) && a > 0; }, "finite and above 0");
}

template <Activation A>
std::vector<Traced> trace(const Arguments& arguments, ptx::Target target) {
  std::vector<Traced> traced;
  traced.push_back(
      plan_gated_activation(DeviceProperties{}, tensors_of<A>(arguments), options_of<A>(arguments))
          .trace(target));
  return traced;
}

template <Activation A>
constexpr Operator make_operator(std::string_view formula, std::string_view doc,
                                 std::span<const TensorSpec> tensors,
                                 std::span<const OptionSpec> options,
                                 std::span<const std::string_view> problems) {
  return {
      .schema = {.name = operator_name(A),
                 .version = 1,
                 .formula = formula,
                 .doc = doc,
                 .tensors = tensors,
                 .options = options,
                 .limits =
                     "N is even where there are two halves. A gate of -infinity gives NaN, but 0 "
                     "in relu2; in 16 bits sigmoids below 2^-128 count as 0. With quant, groups of "
                     "fp8_block have 128 elements at most, and rows a multiple of a 32nd of them."},
      .outputs = outputs<A>,
      .launch = launch<A>,
      .reference = reference<A>,
      .tolerance = tolerance<A>,
      .nan_rule = nan_rule,
      .check_contents = check_contents,
      .bytes = bytes,
      .trace = trace<A>,
      .fill = fill,
      .bench_problems = problems};
}

constexpr Operator kSilu = make_operator<Activation::silu>(
    "y = gate / (1 + exp(-gate)) * up",
    "SiLU of the gate times the other half (SwiGLU), also as codes with scales.", kMulTensors,
    kMulOptions, kMulProblems);
constexpr Operator kGelu = make_operator<Activation::gelu>(
    "y = gate / 2 * erfc(-gate / sqrt(2)) * up",
    "GELU of the gate times the other half (GeGLU), also as codes with scales.", kMulTensors,
    kMulOptions, kMulProblems);
constexpr Operator kGeluTanh = make_operator<Activation::gelu_tanh>(
    "y = gate / 2 * (1 + tanh(sqrt(2 / pi) * (gate + 0.044715 gate^3))) * up",
    "GELU by tanh of the gate times the other half, also as codes with scales.", kMulTensors,
    kMulOptions, kMulProblems);
constexpr Operator kSwigluoai = make_operator<Activation::swigluoai>(
    "y = g * sigmoid(alpha * g) * (clamp(up, -limit, limit) + 1), g = min(gate, limit)",
    "The clamped SwiGLU of gpt-oss, also as codes with scales.", kOaiTensors, kOaiOptions,
    kOaiProblems);
constexpr Operator kRelu2 = make_operator<Activation::relu2>(
    "y = max(x, 0)^2, or max(gate, 0)^2 * up", "Squared ReLU, also as codes with scales.",
    kRelu2Tensors, kRelu2Options, kRelu2Problems);

}  // namespace

const Operator& silu_and_mul_operator() { return kSilu; }
const Operator& gelu_and_mul_operator() { return kGelu; }
const Operator& gelu_tanh_and_mul_operator() { return kGeluTanh; }
const Operator& swigluoai_and_mul_operator() { return kSwigluoai; }
const Operator& relu2_operator() { return kRelu2; }

}  // namespace tilewright
