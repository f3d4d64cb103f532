// SPDX-License-Identifier: Apache-2.0
// The device side of moe_topk: a warp chooses the experts of a token.
#include "kernels/moe_topk/moe_topk.h"
#include "tilewright/control.h"
#include "tilewright/fragment.h"
#include "tilewright/math.h"
#include "tilewright/sync.h"
#include "tilewright/thread.h"
#include "tilewright/warp.h"

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

/// sigmoid(x) within 3 ulp: correctly rounded divisions would be most of the instructions.
Value quick_sigmoid(const Value& x) {
  Value divisor = exp(-x) + 1.0f;
  Value reciprocal = rcp_approx(divisor);
  Value refined = fma(reciprocal, fma(-divisor, reciprocal, 1.0f), reciprocal);
  return select(reciprocal > 0.0f, refined, reciprocal);  // 1 / infinity is 0
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
        first_(group_ * config.group_size() + lane_ % config.lanes * config.vector_elems) {}

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
  int held() const { return c_.accesses * c_.vector_elems; }  // experts of a lane
  /// Of the lane's expert i, from its first one on.
  int distance(int i) const {
    return i / c_.vector_elems * c_.lanes * c_.vector_elems + i % c_.vector_elems;
  }

  void route(const Value& token) {
    std::optional<Value> bound;
    if (t_.bound_m) bound.emplace((*t_.bound_m)(0).load());
    load_keys(token);
    if (c_.groups > 1) mask_groups();
    std::optional<Value> sum;
    if (c_.scoring == Scoring::softmax && !c_.renormalize) sum.emplace(sum_of_all());
    Chosen chosen = choose();
    std::vector<Value> weights = c_.scoring == Scoring::sigmoid ? sigmoid_weights(token, chosen)
                                                                : softmax_weights(chosen, sum);
    Value padding = bound ? token >= bound->to(token.type()) : constant(pred, false);
    for (int round = 0; round < rounds(); ++round)
      write(token, round, chosen, weights[static_cast<std::size_t>(round)], padding);
  }

  void load_keys(const Value& token) {
    for (int access = 0; access < c_.accesses; ++access) {
      int offset = distance(access * c_.vector_elems);
      Value inside =
          group_ < c_.groups && lane_ % c_.lanes * c_.vector_elems + offset < c_.group_size();
      Value column = first_ + offset;
      Fragment score = load_if(inside, t_.logits(token, column), c_.vector_elems).to(f32);
      if (c_.scoring == Scoring::sigmoid)
        score = map(score, [](const Value& x) { return quick_sigmoid(x); });
      if (t_.bias) score = score + load_if(inside, (*t_.bias)(column), c_.vector_elems);
      for (int i = 0; i < c_.vector_elems; ++i)
        keys_.emplace_back(select(inside, key_of(score[i]), kTaken));
    }
  }

  /// Experts of groups that are not kept count as -infinity. A group's score is the sum of its two
  /// best experts, a NaN among them -infinity; equal scores go to the lower group.
  void mask_groups() {
    Var best(u32, kTaken), second(u32, kTaken);
    for (const Var& key : keys_) {
      second = max(second, min(best, key));
      best = max(best, key);
    }
    for (int mask = c_.lanes / 2; mask > 0; mask /= 2) {
      Value other = shuffle_xor(best, mask), other_second = shuffle_xor(second, mask);
      second = max(min(best, other), max(second, other_second));
      best = max(best, other);
    }
    auto score = [](const Var& key) { return score_of(max(key, constant(u32, kMinusInfinity))); };
    Value sum = c_.group_size() == 1 ? score(best) : score(best) + score(second);
    Value mine = key_of(sum);
    Var better(s32, 0);
    for (int group = 0; group < c_.groups; ++group) {
      Value other = shuffle(mine, group * c_.lanes);
      Value before = other > mine || (other == mine && constant(s32, group) < group_);
      better += select(before, constant(s32, 1), 0);
    }
    Value kept = better < c_.topk_group;
    for (Var& key : keys_)
      key = select(kept || key == kTaken, key, constant(u32, kMinusInfinity));
  }

  /// The sum of e^(logit - largest) over all experts that are no NaN; 0 if there is none.
  Value sum_of_all() const {
    Value largest = score_of(redux_max(largest_key()));
    Var sum(f32, 0.0f);
    for (const Var& key : keys_) {
      Value x = score_of(key);
      Value power = exp(select(x == largest, 0.0f, x - largest));
      sum += select(Value(key) > kNan, power, 0.0f);
    }
    return warp_reduce(sum, add);
  }

  Value largest_key() const {
    std::vector<Value> level(keys_.begin(), keys_.end());
    while (level.size() > 1) {  // a tree, for short chains of dependent instructions
      std::vector<Value> next;
      for (std::size_t i = 0; i + 1 < level.size(); i += 2)
        next.push_back(max(level[i], level[i + 1]));
      if (level.size() % 2 == 1) next.push_back(level.back());
      level.swap(next);
    }
    return level.front();
  }

  /// K times the largest key that is left, of the lowest expert among equals.
  Chosen choose() {
    Chosen chosen;
    for (int round = 0; round < rounds(); ++round) {
      chosen.keys.emplace_back(u32, kTaken);
      chosen.experts.emplace_back(s32, 0);
    }
    for_(c_.k, [&](const Value& choice) {
      Value best = redux_max(largest_key());
      Var candidate(s32, c_.experts * 2);  // beyond every expert
      for (int i = held(); i-- > 0;) {
        candidate =
            select(keys_[static_cast<std::size_t>(i)] == best, first_ + distance(i), candidate);
      }
      Value expert = redux_min(candidate);
      Value here = expert - first_;
      for (int i = 0; i < held(); ++i) {
        Var& key = keys_[static_cast<std::size_t>(i)];
        key = select(here == distance(i), constant(u32, kTaken), key);
      }
      for (int round = 0; round < rounds(); ++round) {
        auto r = static_cast<std::size_t>(round);
        Value mine = choice == lane_ + round * 32;
        chosen.keys[r] = select(mine, best, chosen.keys[r]);
        chosen.experts[r] = select(mine, expert, chosen.experts[r]);
      }
    });
    return chosen;
  }

  /// Over all choices of the token, lanes first; choices that are NaN or none count as 0.
  Value sum_of_chosen(const std::vector<Value>& parts) const {
    Var sum(f32, 0.0f);
    for (const Value& part : parts)
      sum += part;
    return warp_reduce(sum, add);
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

  std::vector<Value> sigmoid_weights(const Value& token, const Chosen& chosen) const {
    std::vector<Value> scores;
    for (std::size_t r = 0; r < chosen.keys.size(); ++r) {
      Value number = Value(chosen.keys[r]) > kNan;
      Fragment logit = load_if(number, t_.logits(token, chosen.experts[r]), 1).to(f32);
      Value score = sigmoid(logit[0].get());
      scores.push_back(select(number && score == score, score, 0.0f));
    }
    std::vector<Value> weights;
    std::optional<Value> sum;
    if (c_.renormalize) sum.emplace(sum_of_chosen(scores) + 1e-20f);
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
