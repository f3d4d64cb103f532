// SPDX-License-Identifier: Apache-2.0
// Groups, choices, and whose they were.
#include "kernels/moe_topk/warp_choice.h"

#include "kernels/moe_topk/largest_first.h"
#include "kernels/moe_topk/score_key.h"
#include "tilewright/bit.h"
#include "tilewright/control.h"
#include "tilewright/sync.h"
#include "tilewright/thread.h"
#include "tilewright/warp.h"

#include <algorithm>

namespace tilewright::topk {

Value first_expert(const MoeTopkConfig& config, const Value& lane) {
  return lane / config.lanes * config.group_size() + lane % config.lanes * config.held();
}

WarpChoice::WarpChoice(const MoeTopkConfig& config, const std::vector<Value>& keys)
    : c_(config),
      lane_(lane_idx()),
      group_(lane_ / config.lanes),
      keys_(keys),
      largest_(u32, kTaken),
      last_best_(u32, kTaken, Uniformity::warp),
      last_lanes_(u32, 0, Uniformity::warp),
      skipped_(s32, 0, Uniformity::warp),
      most_skipped_(s32, 0, Uniformity::warp),
      tied_(pred, false, Uniformity::warp) {
  auto needed = static_cast<std::size_t>(c_.groups > 1 ? std::max(c_.k, 2) : c_.k);
  for (const Value& key : largest_first(keys_, needed))
    queue_.emplace_back(key);
  for (int first = 0; first < c_.columns(); first += 32) {
    chosen_.keys.emplace_back(u32, kTaken);
    chosen_.lanes.emplace_back(u32, 1);
    chosen_.skips.emplace_back(s32, 0);
  }
  if (c_.groups > 1) mask_groups();
}

/// Experts of groups that are not kept count as -infinity, but a NaN stays one: it must not weigh
/// either. A group's score is the sum of its two best experts, a NaN among them -infinity; equal
/// scores go to the lower group.
void WarpChoice::mask_groups() {
  Value lowest = constant(u32, kMinusInfinity);
  Var best(u32, queue_[0]), second(u32, kTaken);
  if (queue_.size() > 1) second = queue_[1];
  for (int mask = c_.lanes / 2; mask > 0; mask /= 2) {
    Value other = shuffle_xor(best, mask), next = shuffle_xor(second, mask);
    second = max(min(best, other), max(second, next));
    best = max(best, other);
  }
  auto score = [&](const Value& key) { return score_of(max(key, lowest)); };
  Value sum = c_.group_size() == 1 ? score(best) : score(best) + score(second);
  Value kept = better_groups(key_of(sum)) < c_.topk_group;
  kept_lanes_.emplace(ballot(kept));
  for (Var& key : queue_)
    key = select(kept || !is_number(key), key, lowest);
}

/// How many groups come before the lane's: its lanes share the comparisons.
Value WarpChoice::better_groups(const Value& mine) const {
  Value lanes = constant(u32, (1u << c_.lanes) - 1) << (group_ * c_.lanes).bitcast(u32);
  Var better(u32, 0);
  for (int first = 0; first < c_.groups; first += c_.lanes) {
    Value group = lane_ % c_.lanes + first;
    Value other = shuffle(mine, group * c_.lanes % 32);
    Value before = group < c_.groups && (other > mine || (other == mine && group < group_));
    better += popc(ballot(before) & lanes);
  }
  return Value(better).bitcast(s32);
}

void WarpChoice::choose() {
  if (c_.keys_tell_experts) {
    choose_all(Ties::impossible);
    for (const Var& key : chosen_.keys)
      experts_.push_back(expert_of(key));
    return;
  }
  if (c_.ties == TiedScores::common) {
    choose_all(Ties::resolved);
    find_experts();
    return;
  }
  const std::vector<Value> queue(queue_.begin(), queue_.end());
  choose_all(Ties::ignored);
  if_(tied_, [&] { choose_again(queue); });
  find_experts();
}

void WarpChoice::choose_all(Ties ties) {
  if (!c_.unrolled) {
    for_(c_.k, [&](const Value& choice) { choose_next(choice, queue_.size(), ties); });
    return;
  }
  for (int choice = 0; choice < c_.k; ++choice)
    choose_next(constant(s32, choice), static_cast<std::size_t>(c_.k - 1 - choice), ties);
}

void WarpChoice::choose_again(const std::vector<Value>& queue) {
  queue_.clear();
  for (const Value& key : queue)
    queue_.emplace_back(key);
  last_best_ = kTaken;
  for_(c_.k, [&](const Value& choice) { choose_next(choice, queue_.size(), Ties::resolved); });
}

/// The largest key that is left, of the first lane that has it; `left` keys of a lane may be
/// wanted afterwards.
void WarpChoice::choose_next(const Value& choice, std::size_t left, Ties ties) {
  Value mine = queue_[0];
  Value best = redux_max(mine);
  largest_ = select(choice == 0, best, largest_);
  note(chosen_.keys, choice, best);
  Value equal = mine == best;
  if (ties == Ties::impossible) return pop_if(equal, left);
  Value lanes = ballot(equal);
  note(chosen_.lanes, choice, lanes);
  if (ties == Ties::ignored) {
    pop_if(equal, left);
    tied_ = tied_ || (lanes & (lanes - 1)) != 0 || best == last_best_;
  } else {
    Value lower_lanes = (constant(u32, 1) << lane_.bitcast(u32)) - 1;
    pop_if(equal && (lanes & lower_lanes) == 0, left);
    skipped_ = select(best == last_best_ && lanes == last_lanes_, skipped_ + 1, 0);
    most_skipped_ = max(most_skipped_, skipped_);
    last_lanes_ = lanes;
    note(chosen_.skips, choice, skipped_);
  }
  last_best_ = best;
}

void WarpChoice::pop_if(const Value& condition, std::size_t left) {
  for (std::size_t i = 0; i < std::min(queue_.size(), left); ++i) {
    Value next = i + 1 < queue_.size() ? Value(queue_[i + 1]) : constant(u32, kTaken);
    queue_[i] = select(condition, next, queue_[i]);
  }
  while (queue_.size() > left)
    queue_.pop_back();
}

void WarpChoice::note(std::vector<Var>& of_rounds, const Value& choice, const Value& what) const {
  for (std::size_t r = 0; r < of_rounds.size(); ++r) {
    Value here = choice == lane_ + static_cast<int>(r) * 32;
    of_rounds[r] = select(here, what, of_rounds[r]);
  }
}

/// Of each choice the expert of the first lane with the key: the first one there, or a later one if
/// the choices before were the same.
void WarpChoice::find_experts() {
  for (std::size_t round = 0; round < rounds(); ++round) {
    Value lanes = chosen_.lanes[round], skips = chosen_.skips[round];
    Value lane = (31 - clz(lanes & (0 - lanes)).bitcast(s32)).assume({.lo = 0, .hi = 31});
    Var index(s32, found(round, lane, {}));
    for_(most_skipped_, [&](const Value& skipped) {
      index = select(skipped < skips, found(round, lane, index), index);
    });
    experts_.push_back(first_expert(c_, lane) + index);
  }
}

/// The first expert of the lane, behind `last` if given, with the round's key.
Value WarpChoice::found(std::size_t round, const Value& lane,
                        const std::optional<Value>& last) const {
  Value key = chosen_.keys[round];
  // Numbers of a group that is not kept have all become -infinity.
  std::optional<Value> span;
  Var least(u32, key);
  if (kept_lanes_) {
    Value kept = (*kept_lanes_ >> lane.bitcast(u32)) & 1;
    Value all_numbers = kept == 0 && key == kMinusInfinity;
    least = select(all_numbers, kLeastNumber, key);
    span.emplace(select(all_numbers, constant(u32, ~kLeastNumber), 0));
  }
  Var index(s32, c_.held() - 1);
  for (int i = c_.held() - 2; i >= 0; --i) {
    Value other = shuffle(keys_[static_cast<std::size_t>(i)], lane);
    Value hit = span ? other - least <= *span : other == least;
    index = select(last ? hit && *last < i : hit, constant(s32, i), index);
  }
  return index;
}

}  // namespace tilewright::topk
