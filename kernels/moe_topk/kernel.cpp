// SPDX-License-Identifier: Apache-2.0
// The device side of moe_topk: a warp chooses the experts of a token.
#include "kernels/moe_topk/moe_topk.h"
#include "tilewright/bit.h"
#include "tilewright/control.h"
#include "tilewright/fragment.h"
#include "tilewright/math.h"
#include "tilewright/sync.h"
#include "tilewright/thread.h"
#include "tilewright/warp.h"

#include <algorithm>
#include <vector>

namespace tilewright {
namespace {

// Keys are u32 in the order of scores: kTaken < kNan < any number. The sign bit of a positive
// number's key is 1; a negative one's bits are inverted.
constexpr std::uint32_t kTaken = 0;
constexpr std::uint32_t kNan = 1;
constexpr std::uint32_t kSign = 0x80000000u;
constexpr std::uint32_t kMinusInfinity = 0x007fffffu;

Value key_of(const Value& score) {
  Value word = (score + 0.0f).bitcast(u32);  // -0 and 0 are equal scores
  Value flip = (word.bitcast(s32) >> 31).bitcast(u32) | kSign;
  return select(score == score, word ^ flip, kNan);
}

Value score_of(const Value& key) {
  return select((key & kSign) != 0, key ^ kSign, ~key).bitcast(f32);
}

Value add(const Value& a, const Value& b) { return a + b; }

/// x - y with its rounding error (Knuth's two-sum).
struct Difference {
  Value rounded, error;
};
Difference exact_difference(const Value& x, const Value& y) {
  Value rounded = x - y;
  Value minus_y = rounded - x;
  return {rounded, (x - (rounded - minus_y)) - (y + minus_y)};
}

/// e^(x - largest), 1 for x = largest even if both are infinite.
Value exp_below(const Value& x, const Value& largest) {
  Difference difference = exact_difference(x, largest);
  Value power = exp(select(x == largest, 0.0f, difference.rounded));
  Value refined = fma(power, difference.error, power);
  return select(power > 0.0f && x != largest, refined, power);
}

/// sigmoid(x) within 2.6 ulp: that of e^-|x| (1.1), half for each operation that follows. Correctly
/// rounded divisions would be most of the instructions.
Value quick_sigmoid(const Value& x) {
  Value power = exp(-abs(x));
  Value divisor = power + 1.0f;
  Value reciprocal = rcp_approx(divisor);
  Value refined = fma(reciprocal, fma(-divisor, reciprocal, 1.0f), reciprocal);
  return select(x < 0.0f, power * refined, refined);
}

/// The largest key of some experts, and the first of them that has it.
struct Place {
  Value key, index;
};
Place larger(const Place& first, const Place& second) {
  Value index = select(first.key >= second.key, first.index, second.index);
  return {max(first.key, second.key), index};
}

/// The two largest keys of some experts.
struct TopTwo {
  Value best, second;
};
TopTwo merge(const TopTwo& a, const TopTwo& b) {
  return {max(a.best, b.best), max(min(a.best, b.best), max(a.second, b.second))};
}

/// Combines neighbours in a tree, for short chains of dependent instructions.
template <class T, class Combine>
T over_tree(std::vector<T> level, const Combine& combine) {
  while (level.size() > 1) {
    std::vector<T> next;
    for (std::size_t i = 0; i + 1 < level.size(); i += 2)
      next.push_back(combine(level[i], level[i + 1]));
    if (level.size() % 2 == 1) next.push_back(level.back());
    level.swap(next);
  }
  return level.front();
}

struct TopkTensors {
  Tensor logits;
  std::optional<Tensor> bias, expert_map, bound_m;
  Tensor ids, weights;
};

class TopkKernel {
 public:
  TopkKernel(const MoeTopkConfig& config, const TopkTensors& tensors, const Value& scale,
             const Value& shared_weight)
      : c_(config),
        t_(tensors),
        scale_(scale),
        shared_weight_(shared_weight),
        lane_(lane_idx()),
        group_(lane_ / config.lanes),
        first_(group_ * config.group_size() + lane_ % config.lanes * held()) {}

  void run() {
    Int tokens = t_.logits.shape()[0].value();
    Type index = is_short_extent(tokens) ? s32 : s64;
    Value token = block_idx().x.to(index) * c_.warps + warp_idx().to(index);
    if_(token < to_value(tokens), [&] { route(token); });
  }

 private:
  /// What lane i knows of the choices i, i + 32, ...: one of each a round.
  struct Chosen {
    std::vector<Var> keys, experts;
  };

  int rounds() const { return (c_.columns() + 31) / 32; }
  /// Neighbouring experts of a lane, so that lanes are in the order of their experts.
  int held() const { return c_.accesses * c_.vector_elems; }

  void route(const Value& token) {
    std::optional<Value> bound;
    if (t_.bound_m) bound.emplace((*t_.bound_m)(0).load());
    load_keys(token);
    if (shares_) warp_barrier();
    if (c_.groups > 1) mask_groups();
    std::optional<Value> sum;
    if (c_.scoring == Scoring::softmax && !c_.renormalize) sum.emplace(sum_of_all());
    Chosen chosen = choose();
    std::vector<Value> weights =
        c_.scoring == Scoring::sigmoid ? sigmoid_weights(chosen) : softmax_weights(chosen, sum);
    Value padding = bound ? token >= bound->to(token.type()) : constant(pred, false);
    for (int round = 0; round < rounds(); ++round)
      write(token, round, chosen, weights[static_cast<std::size_t>(round)], padding);
  }

  void load_keys(const Value& token) {
    if (c_.scoring == Scoring::sigmoid)
      shares_.emplace(shared(f32, make_row_major(Shape{c_.warps, c_.experts})));
    for (int first = 0; first < held(); first += c_.vector_elems) {
      Value inside = group_ < c_.groups && lane_ % c_.lanes * held() + first < c_.group_size();
      Value column = first_ + first;
      Fragment score = load_if(inside, t_.logits(token, column), c_.vector_elems).to(f32);
      if (c_.scoring == Scoring::sigmoid) {
        score = map(score, [](const Value& x) { return quick_sigmoid(x); });
        store_if(inside, (*shares_)(warp_idx(), column), score);
      }
      if (t_.bias) score = score + load_if(inside, (*t_.bias)(column), c_.vector_elems);
      for (int i = 0; i < c_.vector_elems; ++i)
        keys_.emplace_back(select(inside, key_of(score[i]), kTaken));
    }
  }

  /// Experts of groups that are not kept count as -infinity, but a NaN stays one: it must not weigh
  /// either. A group's score is the sum of its two best experts, a NaN among them -infinity; equal
  /// scores go to the lower group.
  void mask_groups() {
    std::vector<TopTwo> singles;
    for (const Var& key : keys_)
      singles.push_back({key, constant(u32, kTaken)});
    TopTwo own = over_tree(singles, merge);
    Var best(own.best), second(own.second);
    for (int mask = c_.lanes / 2; mask > 0; mask /= 2) {
      TopTwo both = merge({best, second}, {shuffle_xor(best, mask), shuffle_xor(second, mask)});
      best = both.best;
      second = both.second;
    }
    auto score = [](const Value& key) { return score_of(max(key, constant(u32, kMinusInfinity))); };
    Value sum = c_.group_size() == 1 ? score(best) : score(best) + score(second);
    Value kept = better_groups(key_of(sum)) < c_.topk_group;
    for (Var& key : keys_)
      key = select(kept || key <= kNan, key, constant(u32, kMinusInfinity));
  }

  /// How many groups come before the lane's: its lanes share the comparisons.
  Value better_groups(const Value& mine) const {
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

  /// The sum of e^(logit - largest) over all experts that are no NaN; 0 if there is none.
  Value sum_of_all() const {
    Value largest = score_of(redux_max(largest_key().key));
    Var sum(f32, 0.0f);
    for (const Var& key : keys_) {
      Value x = score_of(key);
      Value power = exp(select(x == largest, 0.0f, x - largest));
      sum += select(Value(key) > kNan, power, 0.0f);
    }
    return warp_reduce(sum, add);
  }

  Place largest_key() const {
    std::vector<Place> places;
    places.reserve(keys_.size());
    for (int i = 0; i < held(); ++i)
      places.push_back({keys_[static_cast<std::size_t>(i)], constant(s32, i)});
    return over_tree(places, larger);
  }

  Chosen choose() {
    Chosen chosen;
    for (int round = 0; round < rounds(); ++round) {
      chosen.keys.emplace_back(u32, kTaken);
      chosen.experts.emplace_back(s32, 0);
    }
    if (c_.unrolled) {
      for (int choice = 0; choice < c_.k; ++choice)
        choose_next(constant(s32, choice), chosen);
    } else {
      for_(c_.k, [&](const Value& choice) { choose_next(choice, chosen); });
    }
    return chosen;
  }

  /// The largest key that is left, of the lowest expert among equals: of the first lane that has
  /// it.
  void choose_next(const Value& choice, Chosen& chosen) {
    Place mine = largest_key();
    Value best = redux_max(mine.key);
    Value ties = ballot(mine.key == best);
    Value lower_lanes = (constant(u32, 1) << lane_.bitcast(u32)) - 1;
    Value owns = mine.key == best && (ties & lower_lanes) == 0;
    Value owner = clz(brev(ties));
    Value expert = shuffle(first_ + mine.index, owner);
    if (shares_ && c_.unrolled) chosen_shares_.push_back(share_of(expert, best));
    for (int i = 0; i < held(); ++i) {
      Var& key = keys_[static_cast<std::size_t>(i)];
      key = select(owns && mine.index == i, constant(u32, kTaken), key);
    }
    for (int round = 0; round < rounds(); ++round) {
      auto r = static_cast<std::size_t>(round);
      Value here = choice == lane_ + round * 32;
      chosen.keys[r] = select(here, best, chosen.keys[r]);
      chosen.experts[r] = select(here, expert, chosen.experts[r]);
    }
  }

  /// The sigmoid of an expert of the token, 0 if its key is no number's.
  Value share_of(const Value& expert, const Value& key) const {
    Value known = expert.assume({.lo = 0, .hi = c_.experts - 1});
    return select(key > kNan, (*shares_)(warp_idx(), known).load(), 0.0f);
  }

  /// Over all choices of the token, lanes first; choices that are NaN or none count as 0.
  Value sum_of_chosen(const std::vector<Value>& parts) const {
    Var sum(f32, 0.0f);
    for (const Value& part : parts)
      sum += part;
    return warp_reduce(sum, add);
  }

  /// What every lane knows, added as sum_of_chosen() does.
  static Value sum_of_lanes(std::vector<Value> parts) {
    for (std::size_t half = 16; half > 0; half /= 2) {
      std::vector<Value> sums;
      for (std::size_t i = 0; i < std::min(half, parts.size()); ++i)
        sums.push_back(i + half < parts.size() ? parts[i] + parts[i + half] : parts[i]);
      parts.swap(sums);
    }
    return parts.front();
  }

  std::vector<Value> softmax_weights(const Chosen& chosen, const std::optional<Value>& all) const {
    Value largest = score_of(shuffle(chosen.keys.front(), 0));  // the first choice's
    std::vector<Value> powers;
    for (const Var& key : chosen.keys)
      powers.push_back(select(Value(key) > kNan, exp_below(score_of(key), largest), 0.0f));
    Value sum = all ? *all : sum_of_chosen(powers);
    std::vector<Value> weights;
    weights.reserve(powers.size());
    for (const Value& power : powers)
      weights.push_back(select(sum > 0.0f, power / sum, 0.0f) * scale_);
    return weights;
  }

  std::vector<Value> sigmoid_weights(const Chosen& chosen) const {
    std::vector<Value> scores;
    for (std::size_t r = 0; r < chosen.keys.size(); ++r)
      scores.push_back(share_of(chosen.experts[r], chosen.keys[r]));
    std::vector<Value> weights;
    std::optional<Value> sum;
    if (c_.renormalize)
      sum.emplace((c_.unrolled ? sum_of_lanes(chosen_shares_) : sum_of_chosen(scores)) + 1e-20f);
    weights.reserve(scores.size());
    for (const Value& score : scores)
      weights.push_back((sum ? score / *sum : score) * scale_);
    return weights;
  }

  void write(const Value& token, int round, const Chosen& chosen, const Value& weight,
             const Value& padding) const {
    auto r = static_cast<std::size_t>(round);
    Value column = lane_ + round * 32;
    Value routed = column < c_.k;
    Var expert(s32, chosen.experts[r]);
    if (t_.expert_map) expert = load_if(routed, (*t_.expert_map)(chosen.experts[r]), 1)[0].get();
    Value id = select(routed, expert, column + (c_.experts - c_.k));
    Value share = select(routed, weight, shared_weight_);
    if_(column < c_.columns(), [&] {
      t_.ids(token, column) = select(padding, constant(s32, -1), id).to(t_.ids.type());
      t_.weights(token, column) = select(padding, constant(f32, 0.0f), share);
    });
  }

  MoeTopkConfig c_;
  TopkTensors t_;
  Value scale_, shared_weight_;
  Value lane_, group_;
  Value first_;  // the lane's first expert
  std::vector<Var> keys_;
  std::optional<Tensor> shares_;      // of the block's warps: sigmoids, before a bias was added
  std::vector<Value> chosen_shares_;  // of a loop that is unrolled
};

}  // namespace

Traced MoeTopkPlan::trace(ptx::Target target) const {
  TraceOptions trace_options{.name = "moe_topk_" + std::string(name(tensors.logits.type)) + "_" +
                                     std::to_string(config.k) + "of" +
                                     std::to_string(config.experts),
                             .target = target,
                             .block = {config.warps * 32, 1, 1}};
  using Maybe = std::optional<Tensor>;
  auto body = [this](const Tensor& logits, const Maybe& bias, const Maybe& map, const Maybe& bound,
                     const Tensor& ids, const Tensor& weights, const Value& scale,
                     const Value& shared_weight) {
    TopkKernel(config, {logits, bias, map, bound, ids, weights}, scale, shared_weight).run();
  };
  ScalarArg real{f32, {}};
  return tilewright::trace(trace_options, body, logits_arg, bias_arg, map_arg, bound_arg, ids_arg,
                           weights_arg, real, real);
}

}  // namespace tilewright
