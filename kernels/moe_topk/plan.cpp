// SPDX-License-Identifier: Apache-2.0
// The host side of moe_topk: checks, how a warp's lanes share the experts, blocks.
#include "kernels/moe_topk/moe_topk.h"
#include "kernels/rows/row_shape.h"
#include "tilewright/stream.h"
#include "tilewright/tune.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace tilewright {
namespace {

constexpr std::int64_t kMaxExperts = 4096;  // that a warp holds in registers
constexpr std::int64_t kMaxChosen = 64;
constexpr std::int64_t kMaxGroups = 32;  // one lane each at least

constexpr std::array<tune::KeySpec, 4> kKeys{{{"bits"},
                                              {"experts", tune::Match::nearest},
                                              {"k", tune::Match::nearest},
                                              {"tokens", tune::Match::nearest}}};
constexpr std::array kWarps{1, 2, 4, 8};
constexpr std::array kUnrolled{0, 1};
constexpr std::array<tune::Knob, 2> kKnobs{{{"warps", kWarps}, {"unrolled", kUnrolled}}};
constexpr std::array<tune::Reducible, 1> kReducible{{{"T", 300}}};

// Of sigmoids, which are most of the instructions for few tokens.
constexpr std::array<tune::KeySpec, 3> kTeamKeys{
    {{"bits"}, {"experts", tune::Match::nearest}, {"tokens", tune::Match::nearest}}};
constexpr std::array kTeams{1, 2, 3, 4};
constexpr std::array<tune::Knob, 1> kTeamKnobs{{{"team", kTeams}}};

/// As long as multiprocessors have no other token to do meanwhile.
tune::Config standard_team(const DeviceProperties& device, const tune::Key& key) {
  return {key[2] > device.sm_count ? 1 : kTeams.back()};
}
bool valid_team(const DeviceProperties&, const tune::Key&, const tune::Config& config) {
  return config[0] >= 1 && config[0] <= kTeams.back();
}
constexpr tune::Space kTeamSpace{"moe_topk.team", kTeamKeys,  kTeamKnobs,
                                 standard_team,   valid_team, kReducible};

constexpr std::int64_t kMaxShares = 12'288;  // numbers of a block's experts in shared memory

/// Blocks of one warp until every multiprocessor has one.
tune::Config standard(const DeviceProperties& device, const tune::Key& key) {
  const int warps_of_many_tokens = key[1] <= kMaxShares / 4 ? 4 : 2;
  return {key[3] > device.sm_count ? warps_of_many_tokens : 1, 0};
}
bool valid(const DeviceProperties&, const tune::Key& key, const tune::Config& config) {
  constexpr std::int64_t kMostUnrolled = 16;
  const bool known = config[1] == 0 || (config[1] == 1 && key[2] <= kMostUnrolled);
  return known && config[0] >= 1 && config[0] <= kWarps.back() && config[0] * key[1] <= kMaxShares;
}
constexpr tune::Space kSpace{"moe_topk", kKeys, kKnobs, standard, valid, kReducible};

struct Checks {
  const MoeTopkTensors& t;
  const MoeTopkOptions& options;
  rows::Caller caller;

  void range(const char* what, std::int64_t value, std::int64_t least, std::int64_t most) const {
    if (value >= least && value <= most) return;
    caller.refuse(std::string(what) + "=" + std::to_string(value) + "; it must be " +
                  std::to_string(least) + " to " + std::to_string(most));
  }
  void finite(const char* what, float value) const {
    if (!std::isfinite(value))
      caller.refuse(std::string(what) + "=" + std::to_string(value) + "; it must be finite");
  }

  void logits() const {
    rows::check_real(t.logits, "logits", caller);
    if (t.logits.rank != 2)
      caller.refuse("logits is " + to_string(t.logits) + "; it must have the modes [T, E]");
    std::int64_t experts = t.logits.shape[1];
    if (experts < 1 || experts > kMaxExperts) {
      caller.refuse("logits is " + to_string(t.logits) + "; E must be 1 to " +
                    std::to_string(kMaxExperts));
    }
    if (experts > 1 && t.logits.stride[1] != 1)
      caller.refuse("logits is " + to_string(t.logits) + "; its last stride must be 1");
  }

  void numbers() const {
    std::int64_t experts = t.logits.shape[1];
    range("k", options.k, 1, std::min(experts, kMaxChosen));
    range("shared_experts", options.shared_experts, 0, kMaxChosen);
    range("groups", options.groups, 1, std::min(experts, kMaxGroups));
    range("topk_group", options.topk_group, 1, options.groups);
    if (experts % options.groups != 0) {
      caller.refuse("groups=" + std::to_string(options.groups) + "; it must divide the " +
                    std::to_string(experts) + " experts");
    }
    finite("scale", options.scale);
    finite("shared_weight", options.shared_weight);
    if (options.scoring == Scoring::sigmoid) return;
    if (options.groups != 1)
      caller.refuse("groups=" + std::to_string(options.groups) + "; only scoring=sigmoid has them");
    if (t.bias) caller.refuse("bias is given; only scoring=sigmoid has one");
  }

  void output(const View& view, const char* which) const {
    std::int64_t columns = options.k + options.shared_experts;
    bool fits = view.rank == 2 && view.shape[0] == t.logits.shape[0] && view.shape[1] == columns &&
                (columns == 1 || view.stride[1] == 1);
    if (!fits) {
      caller.refuse(std::string(which) + " is " + to_string(view) + "; it must be [" +
                    std::to_string(t.logits.shape[0]) + "," + std::to_string(columns) +
                    "] with contiguous rows: k and the shared experts");
    }
  }

  void typed(const View& view, const char* which, Type type) const {
    if (view.type != type) {
      caller.refuse(std::string(which) + " has type " + std::string(name(view.type)) +
                    "; it must be " + std::string(name(type)));
    }
  }

  void others() const {
    output(t.ids, "ids");
    output(t.weights, "weights");
    if (!rows::is_index_type(t.ids.type)) typed(t.ids, "ids", s32);
    typed(t.weights, "weights", f32);
    rows::check_apart(t.ids, "ids", t.weights, "weights", caller);
    rows::check_apart(t.logits, "logits", t.ids, "ids", caller);
    rows::check_apart(t.logits, "logits", t.weights, "weights", caller);
    vector(t.bias, "bias", f32, t.logits.shape[1]);
    vector(t.expert_map, "expert_map", s32, t.logits.shape[1]);
    vector(t.bound_m, "bound_m", s32, 1);
  }

  void vector(const std::optional<View>& view, const char* which, Type type,
              std::int64_t elems) const {
    if (!view) return;
    typed(*view, which, type);
    rows::check_vector(*view, which, elems, caller);
    rows::check_apart(*view, which, t.ids, "ids", caller);
    rows::check_apart(*view, which, t.weights, "weights", caller);
  }
};

/// Lanes go to groups in equal, power-of-two parts; vectors are no longer than evens them out.
void share_experts(MoeTopkConfig& config, const View& logits) {
  config.lanes = static_cast<int>(32 / rows::power_of_two_from(config.groups));
  int each = static_cast<int>(rows::ceil_div(config.group_size(), config.lanes));
  int elems = rows::common_vector(logits.type, std::array{logits});
  while (elems > 1 && (config.group_size() % elems != 0 || elems > each))
    elems /= 2;
  config.vector_elems = elems;
  config.accesses =
      static_cast<int>(rows::ceil_div(config.group_size(), std::int64_t{config.lanes} * elems));
}

}  // namespace

std::string to_string(const MoeTopkConfig& c) {
  constexpr std::array<const char*, 3> kScorings{"softmax", "softmax_selected", "sigmoid"};
  return std::string(kScorings[static_cast<std::size_t>(c.scoring)]) +
         (c.renormalize ? " renormalize" : "") + " e=" + std::to_string(c.experts) +
         " k=" + std::to_string(c.k) + "+" + std::to_string(c.shared_experts) +
         " g=" + std::to_string(c.topk_group) + "/" + std::to_string(c.groups) +
         " l=" + std::to_string(c.lanes) + " v=" + std::to_string(c.vector_elems) +
         " n=" + std::to_string(c.accesses) + " w=" + std::to_string(c.warps) +
         (c.team > 1 ? " team=" + std::to_string(c.team) : "") + (c.unrolled ? " unrolled" : "");
}

MoeTopkPlan plan_moe_topk(const DeviceProperties& device, const MoeTopkTensors& tensors,
                          const MoeTopkOptions& options, SourceLoc at) {
  rows::Caller caller{"moe_topk", at};
  Checks checks{tensors, options, caller};
  checks.logits();
  checks.numbers();
  checks.others();
  MoeTopkPlan plan;
  plan.options = options;
  plan.tensors = tensors;
  MoeTopkConfig& config = plan.config;
  config.scoring = options.scoring;
  config.renormalize = options.renormalize || options.scoring == Scoring::softmax_selected;
  config.experts = static_cast<int>(tensors.logits.shape[1]);
  config.k = static_cast<int>(options.k);
  config.shared_experts = static_cast<int>(options.shared_experts);
  config.groups = static_cast<int>(options.groups);
  config.topk_group = static_cast<int>(options.topk_group);
  if (config.topk_group == config.groups) config.groups = config.topk_group = 1;  // all are kept
  config.keys_tell_experts = bits(tensors.logits.type) == 16 && options.scoring != Scoring::sigmoid;
  config.ties = tensors.bias ? TiedScores::rare : TiedScores::common;
  share_experts(config, tensors.logits);
  std::int64_t tokens = tensors.logits.shape[0];
  tune::Config chosen =
      tune::choose(kSpace, device, {bits(tensors.logits.type), config.experts, config.k, tokens});
  config.warps = chosen[0];
  config.unrolled = chosen[1] == 1;
  if (config.scoring == Scoring::sigmoid && config.accesses > 1) {
    tune::Config team =
        tune::choose(kTeamSpace, device, {bits(tensors.logits.type), config.experts, tokens});
    config.team = std::min(team[0], config.accesses);
    if (config.team > 1) config.warps = 1;
  }
  constexpr DynamicModes kRows{.extents = 1, .strides = 1};
  auto fixed = [](const std::optional<View>& view) {
    return view ? std::optional(tensor_arg(*view)) : std::nullopt;
  };
  plan.logits_arg = tensor_arg(tensors.logits, kRows);
  plan.ids_arg = tensor_arg(tensors.ids, kRows);
  plan.weights_arg = tensor_arg(tensors.weights, kRows);
  plan.bias_arg = fixed(tensors.bias);
  plan.map_arg = fixed(tensors.expert_map);
  plan.bound_arg = fixed(tensors.bound_m);
  plan.launch.grid.x = rows::row_blocks(tokens, config.warps, caller);
  plan.launch.block.x = config.threads();
  return plan;
}

std::string MoeTopkPlan::key() const {
  std::string text = "moe_topk/5 " + to_string(config);
  for (const TensorArg* arg : {&logits_arg, &ids_arg, &weights_arg})
    text += " | " + tilewright::to_string(*arg);
  for (const std::optional<TensorArg>* arg : {&bias_arg, &map_arg, &bound_arg})
    text += " | " + rows::key_text(*arg);
  return text;
}

Parameters MoeTopkPlan::parameters() const {
  Parameters parameters;
  pack(parameters, logits_arg, tensors.logits);
  if (bias_arg) pack(parameters, *bias_arg, *tensors.bias);
  if (map_arg) pack(parameters, *map_arg, *tensors.expert_map);
  if (bound_arg) pack(parameters, *bound_arg, *tensors.bound_m);
  pack(parameters, ids_arg, tensors.ids);
  pack(parameters, weights_arg, tensors.weights);
  parameters.add(options.scale);
  parameters.add(options.shared_weight);
  return parameters;
}

void launch_moe_topk(const Stream& stream, const MoeTopkPlan& plan, SourceLoc at) {
  if (plan.launch.grid.x == 0) return;
  rows::prepare(stream.device(), plan, at).launch(stream, at);
}

void moe_topk(const Stream& stream, const MoeTopkTensors& tensors, const MoeTopkOptions& options,
              SourceLoc at) {
  launch_moe_topk(stream, plan_moe_topk(stream.device().properties(), tensors, options, at), at);
}

}  // namespace tilewright
