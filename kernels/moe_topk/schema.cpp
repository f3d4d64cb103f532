// SPDX-License-Identifier: Apache-2.0
// The operator moe_topk as the command line and bindings see it.
#include "kernels/moe_topk/reference.h"
#include "kernels/rows/row_schema.h"

#include <algorithm>
#include <cmath>

namespace tilewright {
namespace {

constexpr std::array kIndices{s32, s64};
constexpr std::array kS32{s32};

constexpr std::array<TensorSpec, 6> kTensors{{
    {.name = "logits",
     .role = Role::input,
     .shape = "T,E",
     .types = kReals,
     .doc = "of the router"},
    {.name = "bias",
     .role = Role::input,
     .presence = Presence::optional,
     .shape = "E",
     .types = kF32,
     .doc = "added to sigmoid's scores for the choice, not for the weights"},
    {.name = "expert_map",
     .role = Role::input,
     .presence = Presence::optional,
     .shape = "E",
     .types = kS32,
     .doc = "what to write for each expert: its local number, or -1"},
    {.name = "bound_m",
     .role = Role::input,
     .presence = Presence::optional,
     .shape = "1",
     .types = kS32,
     .doc = "how many tokens there are; the other rows get ids -1 and weights 0"},
    {.name = "ids",
     .role = Role::output,
     .shape = "T,KS",
     .types = kIndices,
     .doc = "of the chosen experts, best first; then E, E+1, ... for shared experts"},
    {.name = "weights", .role = Role::output, .shape = "T,KS", .types = kF32, .doc = "of the ids"},
}};

constexpr std::array<std::string_view, 3> kScorings{"softmax", "softmax_selected", "sigmoid"};
constexpr std::array<std::string_view, 2> kIdTypes{"s32", "s64"};
constexpr std::array<OptionSpec, 9> kOptions{{
    {.name = "k", .type = OptionType::integer, .least = 1, .most = 64, .doc = "experts of a token"},
    {.name = "scoring",
     .type = OptionType::choice,
     .default_text = "softmax",
     .words = kScorings,
     .doc = "over all experts, over the chosen ones, or of each alone"},
    {.name = "renormalize",
     .type = OptionType::boolean,
     .default_text = "true",
     .doc = "the weights of a token add up to scale"},
    {.name = "groups",
     .type = OptionType::integer,
     .default_text = "1",
     .least = 1,
     .most = 32,
     .doc = "of neighbouring experts; a group's score is the sum of its two best (sigmoid)"},
    {.name = "topk_group",
     .type = OptionType::integer,
     .default_text = "1",
     .least = 1,
     .most = 32,
     .doc = "groups that are kept; experts of others count as -infinity"},
    {.name = "scale",
     .type = OptionType::real,
     .default_text = "1",
     .doc = "a factor for the weights of chosen experts"},
    {.name = "shared_experts",
     .type = OptionType::integer,
     .default_text = "0",
     .least = 0,
     .most = 64,
     .doc = "experts of every token, behind the chosen ones"},
    {.name = "shared_weight",
     .type = OptionType::real,
     .default_text = "1",
     .doc = "the weight of each shared expert"},
    {.name = "id_type",
     .type = OptionType::choice,
     .default_text = "s32",
     .words = kIdTypes,
     .doc = "type of ids"},
}};

// Routers of Qwen3 (both sizes), gpt-oss-120b, DeepSeek-V3 and Kimi.
constexpr std::array<std::string_view, 10> kBenchProblems{
    "T=1,E=128,k=8,logits=bf16",
    "T=64,E=128,k=8,logits=bf16",
    "T=4096,E=128,k=8,logits=bf16",
    "T=64,E=128,k=4,logits=bf16,scoring=softmax_selected",
    "T=4096,E=128,k=4,logits=bf16,scoring=softmax_selected",
    "T=1,E=256,k=8,logits=f32,bias=f32,scoring=sigmoid,groups=8,topk_group=4,scale=2.5",
    "T=64,E=256,k=8,logits=f32,bias=f32,scoring=sigmoid,groups=8,topk_group=4,scale=2.5",
    "T=4096,E=256,k=8,logits=f32,bias=f32,scoring=sigmoid,groups=8,topk_group=4,scale=2.5",
    "T=64,E=384,k=8,logits=f32,bias=f32,scoring=sigmoid,scale=2.827",
    "T=16384,E=256,k=8,logits=f32,bias=f32,scoring=sigmoid,groups=8,topk_group=4,scale=2.5"};

Scoring scoring_of(const Arguments& arguments) {
  auto word = std::find(kScorings.begin(), kScorings.end(), arguments.text("scoring"));
  return static_cast<Scoring>(word - kScorings.begin());
}

MoeTopkOptions options_of(const Arguments& arguments) {
  return {.k = arguments.integer("k"),
          .scoring = scoring_of(arguments),
          .renormalize = arguments.boolean("renormalize"),
          .groups = arguments.integer("groups"),
          .topk_group = arguments.integer("topk_group"),
          .scale = static_cast<float>(arguments.real("scale")),
          .shared_experts = arguments.integer("shared_experts"),
          .shared_weight = static_cast<float>(arguments.real("shared_weight"))};
}

MoeTopkPlan plan_of(const Arguments& a, const DeviceProperties& device) {
  return plan_moe_topk(device,
                       {.logits = a.tensor("logits"),
                        .bias = optional_view(a, "bias"),
                        .expert_map = optional_view(a, "expert_map"),
                        .bound_m = optional_view(a, "bound_m"),
                        .ids = a.tensor("ids"),
                        .weights = a.tensor("weights")},
                       options_of(a));
}

std::vector<OutputSpec> outputs(const Arguments& arguments) {
  MoeTopkOptions options = options_of(arguments);
  std::vector<std::int64_t> shape{arguments.size("T"), options.k + options.shared_experts};
  return {{"ids", *type_from_name(arguments.text("id_type")), shape}, {"weights", f32, shape}};
}

/// Contract, I 6.1: 2^-20 relative. What underflows is off by half the smallest subnormal number
/// more, which 1 / (sum + 1e-20) can enlarge.
Tolerance tolerance(const Arguments& arguments, std::string_view output) {
  if (output == "ids") return {};
  MoeTopkOptions options = options_of(arguments);
  bool enlarged = options.scoring == Scoring::sigmoid && options.renormalize;
  double scale = std::max(1.0, std::abs(static_cast<double>(options.scale)));
  return {.relative = 0x1p-20, .absolute = scale * (enlarged ? 0x1p-148 * 1e20 : 0x1p-148)};
}

constexpr Operator kMoeTopk{
    .schema = {.name = "moe_topk",
               .version = 1,
               .formula = "ids = the K largest of softmax(logits), or of sigmoid(logits) + bias in "
                          "the best groups; weights = scale * their shares",
               .doc = "Chooses the experts of each token. Equal scores go to the lower expert; NaN "
                      "comes after -infinity and weighs 0.",
               .tensors = kTensors,
               .options = kOptions},
    .outputs = outputs,
    .launch = [](const Device& device, const Stream& stream,
                 const Arguments& a) { launch_moe_topk(stream, plan_of(a, device.properties())); },
    .reference = [](const Arguments& a,
                    HostTensors& tensors) { moe_topk_reference(options_of(a), tensors); },
    .tolerance = tolerance,
    .bytes =
        [](const Arguments& a) {
          return bytes_of_inputs(a) + size_bytes(a.tensor("ids")) + size_bytes(a.tensor("weights"));
        },
    .trace =
        [](const Arguments& a, ptx::Target target) {
          std::vector<Traced> traced;
          traced.push_back(plan_of(a, traced_device()).trace(target));
          return traced;
        },
    .bench_problems = kBenchProblems,
};

}  // namespace

const Operator& moe_topk_operator() { return kMoeTopk; }

}  // namespace tilewright
