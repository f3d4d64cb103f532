// SPDX-License-Identifier: Apache-2.0
// How a warp chooses the experts with the largest keys.
#pragma once

#include "kernels/moe_topk/moe_topk.h"
#include "tilewright/value.h"

#include <optional>
#include <vector>

namespace tilewright::topk {

/// The first expert of a lane: lanes are in the order of their experts.
Value first_expert(const MoeTopkConfig& config, const Value& lane);

/// The K choices of a warp among all its lanes' experts. What a choice waits for is a reduction of
/// the lanes' largest keys and, for keys that are often equal, a ballot: each lane has its keys in
/// falling order, and which experts they belong to is found at the end, for all choices at once.
/// Where equal keys are rare, all choices are made as if there were none, and again if there are.
class WarpChoice {
 public:
  /// `keys` of the lane's experts.
  WarpChoice(const MoeTopkConfig& config, const std::vector<Value>& keys);

  void choose();

  /// The largest key of all. Pre: choose() was called.
  Value largest() const { return largest_; }
  /// Of choices i, i + 32, ... in lane i. Pre: choose() was called.
  Value key(std::size_t round) const { return chosen_.keys[round]; }
  Value expert(std::size_t round) const { return experts_[round]; }
  std::size_t rounds() const { return chosen_.keys.size(); }

 private:
  enum class Ties : std::uint8_t { impossible, ignored, resolved };

  /// What lane i knows of the choices i, i + 32, ...: one of each a round. Of keys that do not tell
  /// their expert, also the lanes that had the key first, and how many of the same key the first of
  /// these lanes had given before.
  struct Chosen {
    std::vector<Var> keys, lanes, skips;
  };

  void mask_groups();
  Value better_groups(const Value& mine) const;
  void choose_all(Ties ties);
  void choose_again(const std::vector<Value>& queue);
  void choose_next(const Value& choice, std::size_t left, Ties ties);
  void find_experts();
  void pop_if(const Value& condition, std::size_t left);
  void note(std::vector<Var>& of_rounds, const Value& choice, const Value& what) const;
  Value found(std::size_t round, const Value& lane, const std::optional<Value>& last) const;

  MoeTopkConfig c_;
  Value lane_, group_;
  std::vector<Value> keys_;          // of the lane's experts
  std::vector<Var> queue_;           // the largest of them that are left, in falling order
  std::optional<Value> kept_lanes_;  // whose groups are kept
  Chosen chosen_;
  std::vector<Value> experts_;  // of lane i's choices i, i + 32, ...
  Var largest_;
  Var last_best_, last_lanes_, skipped_, most_skipped_;
  Var tied_;  // whether keys that were chosen are equal
};

}  // namespace tilewright::topk
