// SPDX-License-Identifier: Apache-2.0
// The operator moe_combine as the command line and bindings see it.
#include "kernels/moe_combine/moe_combine.h"
#include "kernels/moe_combine/reference.h"
#include "kernels/rows/row_schema.h"

#include <algorithm>
#include <numeric>

namespace tilewright {
namespace {

constexpr std::array kS32{s32};

constexpr std::array<TensorSpec, 5> kTensors{{
    {.name = "y", .role = Role::input, .shape = "M,H", .types = kReals, .doc = "rows of experts"},
    {.name = "slot",
     .role = Role::input,
     .shape = "*",
     .types = kS32,
     .doc = "T K elements: the row of y of each choice; one outside y is skipped"},
    {.name = "weights", .role = Role::input, .shape = "T,K", .types = kF32, .doc = "of choices"},
    {.name = "shared",
     .role = Role::input,
     .presence = Presence::optional,
     .shape = "T,H",
     .types = kReals,
     .doc = "what the sum begins with: the output of shared experts"},
    {.name = "out",
     .role = Role::inout,
     .presence = Presence::optional,
     .shape = "T,H",
     .types = kReals,
     .may_alias = "shared",
     .doc = "of out_type unless given; read with accumulate alone"},
}};

constexpr std::array<std::string_view, 4> kOutTypesOfY{"as_y", "bf16", "f16", "f32"};
constexpr std::array<OptionSpec, 2> kOptions{{
    {.name = "accumulate",
     .type = OptionType::boolean,
     .default_text = "false",
     .doc = "the sum begins with what is in out"},
    {.name = "out_type",
     .type = OptionType::choice,
     .default_text = "as_y",
     .words = kOutTypesOfY,
     .doc = "type of out where it is not given"},
}};

// Qwen3-30B-A3B, Qwen3-235B-A22B, DeepSeek-V3 and gpt-oss-120b.
constexpr std::array<std::string_view, 10> kBenchProblems{
    "T=1,K=8,M=8,H=7168,y=bf16",        "T=32,K=8,M=256,H=7168,y=bf16",
    "T=128,K=8,M=1024,H=7168,y=bf16",   "T=512,K=8,M=4096,H=7168,y=bf16",
    "T=4096,K=8,M=32768,H=7168,y=bf16", "T=64,K=8,M=512,H=2048,y=bf16",
    "T=8192,K=8,M=65536,H=2048,y=bf16", "T=8192,K=8,M=65536,H=4096,y=bf16",
    "T=4096,K=4,M=16384,H=2880,y=bf16", "T=4096,K=8,M=32768,H=7168,y=bf16,shared=bf16"};

MoeCombineOptions options_of(const Arguments& arguments) {
  return {.accumulate = arguments.boolean("accumulate")};
}

MoeCombinePlan plan_of(const Arguments& a, const DeviceProperties& device) {
  return plan_moe_combine(device,
                          {.y = a.tensor("y"),
                           .slot = a.tensor("slot"),
                           .weights = a.tensor("weights"),
                           .shared = optional_view(a, "shared"),
                           .out = a.tensor("out")},
                          options_of(a));
}

std::vector<OutputSpec> outputs(const Arguments& arguments) {
  if (arguments.find("out") != nullptr) return {};
  if (arguments.boolean("accumulate"))
    arguments.fail("accumulate=true, but out is not given; it is what the sum begins with");
  std::string_view text = arguments.text("out_type");
  Type type = text == "as_y" ? arguments.tensor("y").type : *type_from_name(text);
  return {{"out", type, {arguments.size("T"), arguments.size("H")}}};
}

/// Contract, I 6.3: half an ulp of out, and (K + 1) 2^-24 of |start| + sum |w y|, which is at most
/// four times the row's largest sum unless nearly all terms of a row cancel.
Tolerance tolerance(const Arguments& arguments, std::string_view) {
  double steps = static_cast<double>(arguments.size("K") + 1);
  Tolerance tolerance = rounded_once(arguments.tensor("out").type, steps);
  tolerance.of_row_max = 4 * steps * 0x1p-24;
  return tolerance;
}

/// Every choice has a row: each is read once.
std::int64_t bytes(const Arguments& arguments) {
  const View& y = arguments.tensor("y");
  std::int64_t rows_read = arguments.size("T") * arguments.size("K");
  std::int64_t total =
      rows_read * y.shape[1] * bits(y.type) / 8 + size_bytes(arguments.tensor("out"));
  if (arguments.boolean("accumulate")) total += size_bytes(arguments.tensor("out"));
  if (const View* shared = arguments.find("shared")) total += size_bytes(*shared);
  return total + size_bytes(arguments.tensor("slot")) + size_bytes(arguments.tensor("weights"));
}

/// Slots as a dispatch to 128 experts gives them, for choices spread by a multiplicative hash
/// (Knuth, volume 3, 6.4).
void fill_slots(const Problem& problem, std::vector<Array>& inputs) {
  auto count = static_cast<std::size_t>(problem.size("T") * problem.size("K"));
  auto rows = static_cast<std::size_t>(std::max<std::int64_t>(problem.size("M"), 1));
  std::vector<std::uint32_t> choices(count);
  std::iota(choices.begin(), choices.end(), 0U);
  auto expert = [](std::uint32_t choice) { return choice * 2654435761U >> 25; };
  std::stable_sort(choices.begin(), choices.end(),
                   [&](auto a, auto b) { return expert(a) < expert(b); });
  std::vector<double> slots(count);
  for (std::size_t row = 0; row < count; ++row)
    slots[choices[row]] = static_cast<double>(row % rows);
  for (Array& array : inputs) {
    if (array.name == "slot")
      array = make_array("slot", s32, {static_cast<std::int64_t>(count)}, slots);
  }
}

constexpr Operator kMoeCombine{
    .schema = {.name = "moe_combine",
               .version = 1,
               .formula = "out[t] = start + sum over k of weights[t,k] y[slot[t,k]], start = 0, "
                          "shared[t] or out[t]",
               .doc = "Sums the rows that experts made of each token, in order of k by fma in f32.",
               .tensors = kTensors,
               .options = kOptions},
    .outputs = outputs,
    .launch =
        [](const Device& device, const Stream& stream, const Arguments& a) {
          launch_moe_combine(stream, plan_of(a, device.properties()));
        },
    .reference =
        [](const Arguments& a, HostTensors& tensors) {
          moe_combine_reference(a.boolean("accumulate"), tensors);
        },
    .tolerance = tolerance,
    .bytes = bytes,
    .trace =
        [](const Arguments& a, ptx::Target target) {
          std::vector<Traced> traced;
          traced.push_back(plan_of(a, traced_device()).trace(target));
          return traced;
        },
    .fill = fill_slots,
    .bench_problems = kBenchProblems,
};

}  // namespace

const Operator& moe_combine_operator() { return kMoeCombine; }

}  // namespace tilewright
