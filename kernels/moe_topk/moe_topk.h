// SPDX-License-Identifier: Apache-2.0
// Routing of a mixture of experts: the K experts of each token and their weights.
#pragma once

#include "kernels/rows/rows.h"
#include "tilewright/operator.h"
#include "tilewright/trace.h"

#include <optional>
#include <string>

namespace tilewright {

enum class Scoring : std::uint8_t {
  softmax,           ///< over all experts; renormalised over the chosen ones if asked
  softmax_selected,  ///< over the chosen experts
  sigmoid            ///< of each expert alone, chosen with a bias, by groups
};

struct MoeTopkTensors {
  View logits;                    ///< [T, E] bf16, f16 or f32
  std::optional<View> bias = {};  ///< [E] f32: added to the score for the choice alone
  std::optional<View> expert_map =
      {};                            ///< [E] s32: the ids to write, -1 for experts of other ranks
  std::optional<View> bound_m = {};  ///< [1] s32: rows from there on are padding
  View ids;                          ///< [T, K + shared experts] s32 or s64
  View weights;                      ///< [T, K + shared experts] f32
};

struct MoeTopkOptions {
  std::int64_t k = 8;
  Scoring scoring = Scoring::softmax;
  bool renormalize = true;
  std::int64_t groups = 1;      ///< neighbouring experts are chosen by groups first
  std::int64_t topk_group = 1;  ///< groups that are kept
  float scale = 1;              ///< of the K weights
  std::int64_t shared_experts = 0;
  float shared_weight = 1;
};

/// How often experts of a token have equal scores. A bias keeps them apart, even where logits were
/// rounded to a few bits.
enum class TiedScores : std::uint8_t { common, rare };

/// The specialisation besides the facts of the arguments. A warp chooses for a token; its lanes are
/// split evenly among the groups, each lane with `accesses` vectors of neighbouring experts.
struct MoeTopkConfig {
  Scoring scoring = Scoring::softmax;
  bool renormalize = true;
  int experts = 0, k = 0, shared_experts = 0;
  int groups = 1, topk_group = 1;
  int lanes = 32;        ///< of a group
  int vector_elems = 1;  ///< divides a group's experts
  int accesses = 1;
  int warps = 1;          ///< of a block: each chooses for a token
  int team = 1;           ///< warps that share the scores of a token; more than one if warps = 1
  bool unrolled = false;  ///< the loop over choices
  bool keys_tell_experts = false;  ///< scores of 16 bits leave room in a word for the expert
  TiedScores ties = TiedScores::common;
  friend bool operator==(const MoeTopkConfig&, const MoeTopkConfig&) = default;
  int group_size() const { return experts / groups; }
  int columns() const { return k + shared_experts; }
  int threads() const { return 32 * warps * team; }
  int held() const { return accesses * vector_elems; }  ///< experts of a lane
};
std::string to_string(const MoeTopkConfig& config);

struct MoeTopkPlan {
  MoeTopkConfig config;
  MoeTopkOptions options;
  MoeTopkTensors tensors;
  TensorArg logits_arg, ids_arg, weights_arg;
  std::optional<TensorArg> bias_arg, map_arg, bound_arg;
  LaunchConfig launch;

  std::string key() const;
  Traced trace(ptx::Target target) const;
  Parameters parameters() const;
};
MoeTopkPlan plan_moe_topk(const DeviceProperties& device, const MoeTopkTensors& tensors,
                          const MoeTopkOptions& options, SourceLoc at = SourceLoc::here());

void launch_moe_topk(const Stream& stream, const MoeTopkPlan& plan,
                     SourceLoc at = SourceLoc::here());

/// Routes every row of logits on the stream. Allocates nothing on the device and does not wait.
void moe_topk(const Stream& stream, const MoeTopkTensors& tensors, const MoeTopkOptions& options,
              SourceLoc at = SourceLoc::here());

const Operator& moe_topk_operator();

}  // namespace tilewright
