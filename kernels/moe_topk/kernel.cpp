// SPDX-License-Identifier: Apache-2.0
// The device side of moe_topk: a warp chooses the experts of a token.
#include "kernels/moe_topk/moe_topk.h"
#include "kernels/moe_topk/score_key.h"
#include "kernels/moe_topk/warp_choice.h"
#include "kernels/rows/row_shape.h"
#include "tilewright/control.h"
#include "tilewright/fragment.h"
#include "tilewright/inline_ptx.h"
#include "tilewright/math.h"
#include "tilewright/sync.h"
#include "tilewright/thread.h"

#include <algorithm>
#include <vector>

namespace tilewright {
namespace {

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

/// 1 / x within an ulp. Pre: neither is a subnormal number.
Value rcp_of_normal(const Value& x) {
  return inline_ptx("rcp.approx.ftz.f32 $0, $1;", {f32}, {x})[0];
}

/// a / b within an ulp, or two subnormal steps. A correctly rounded division is thrice as long.
/// Pre: b is normal, and so is 1 / b.
Value quotient(const Value& a, const Value& b) {
  Value reciprocal = rcp_of_normal(b);
  Value rounded = a * reciprocal;
  return fma(fma(-rounded, b, a), reciprocal, rounded);
}

/// sigmoid(x) within 2.6 ulp: that of e^-|x| (1.1), half for each operation that follows. Correctly
/// rounded divisions would be most of the instructions.
Value quick_sigmoid(const Value& x) {
  Value power = exp(-abs(x));
  Value divisor = power + 1.0f;
  Value reciprocal = rcp_of_normal(divisor);
  Value refined = fma(reciprocal, fma(-divisor, reciprocal, 1.0f), reciprocal);
  return select(x < 0.0f, power * refined, refined);
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
        first_(topk::first_expert(config, lane_)),
        row_(config.team == 1 ? warp_idx() : constant(s32, 0)) {}

  void run() {
    Int tokens = t_.logits.shape()[0].value();
    Type index = is_short_extent(tokens) ? s32 : s64;
    Value token = block_idx().x.to(index) * c_.warps + row_.to(index);
    if_(token < to_value(tokens), [&] { route(token); });
  }

 private:
  void route(const Value& token) {
    std::optional<Value> bound;
    if (t_.bound_m) bound.emplace((*t_.bound_m)(0).load());
    if (c_.scoring == Scoring::sigmoid)
      shares_.emplace(shared(f32, make_row_major(Shape{c_.warps, c_.experts})));
    if (c_.team == 1) {
      load_keys(token);
      if (shares_) warp_barrier();
      choose(token, bound);
      return;
    }
    Tensor keys = shared(u32, make_row_major(Shape{c_.accesses, 32 * c_.vector_elems}));
    share_keys(token, keys);
    if_(warp_idx() == 0, [&] {
      take_keys(keys);
      choose(token, bound);
    });
  }

  void choose(const Value& token, const std::optional<Value>& bound) {
    topk::WarpChoice choice(c_, keys_);
    choice.choose();
    std::vector<Value> experts;
    for (std::size_t round = 0; round < choice.rounds(); ++round)
      experts.push_back(choice.expert(round).assume({.lo = 0, .hi = c_.experts - 1}));
    std::vector<Value> weights =
        c_.scoring == Scoring::sigmoid ? sigmoid_weights(choice, experts) : softmax_weights(choice);
    Value padding = bound ? token >= bound->to(token.type()) : constant(pred, false);
    for (std::size_t round = 0; round < experts.size(); ++round) {
      Value column = lane_ + static_cast<int>(round) * 32;
      write(token, column, experts[round], weights[round], padding);
    }
  }

  /// The experts of one access.
  struct Loaded {
    Value inside, column;
    Fragment logits;
    std::optional<Fragment> bias;
  };

  Loaded load_access(const Value& token, const Value& access) const {
    Value first = access * c_.vector_elems;
    Value inside = group_ < c_.groups && access < c_.accesses &&
                   lane_ % c_.lanes * c_.held() + first < c_.group_size();
    Value column = first_ + first;
    std::optional<Fragment> bias;
    if (t_.bias) bias.emplace(load_if(inside, (*t_.bias)(column), c_.vector_elems));
    return {inside, column, load_if(inside, t_.logits(token, column), c_.vector_elems), bias};
  }

  void load_keys(const Value& token) {
    std::vector<Loaded> loaded;
    loaded.reserve(static_cast<std::size_t>(c_.accesses));
    for (int access = 0; access < c_.accesses; ++access)
      loaded.push_back(load_access(token, constant(s32, access)));
    for (const Loaded& access : loaded)
      add_keys(access);
  }

  /// The warps of a team take an access of each lane in turn.
  void share_keys(const Value& token, const Tensor& keys) {
    std::vector<Loaded> loaded;
    for (int turn = 0; turn < c_.accesses; turn += c_.team)
      loaded.push_back(load_access(token, warp_idx() + turn));
    for (std::size_t turn = 0; turn < loaded.size(); ++turn) {
      add_keys(loaded[turn]);
      Fragment own(u32, c_.vector_elems);
      for (int i = 0; i < c_.vector_elems; ++i)
        own[i] = keys_[keys_.size() - static_cast<std::size_t>(c_.vector_elems - i)];
      Value access = warp_idx() + static_cast<int>(turn) * c_.team;
      store_if(access < c_.accesses, keys(access, lane_ * c_.vector_elems), own);
    }
    barrier();
  }

  void take_keys(const Tensor& keys) {
    keys_.clear();
    for (int access = 0; access < c_.accesses; ++access) {
      Fragment taken = load(keys(access, lane_ * c_.vector_elems), c_.vector_elems);
      for (int i = 0; i < c_.vector_elems; ++i)
        keys_.push_back(taken[i]);
    }
  }

  void add_keys(const Loaded& access) {
    Fragment score = access.logits.to(f32);
    if (c_.scoring == Scoring::sigmoid) {
      score = map(score, [](const Value& x) { return quick_sigmoid(x); });
      store_if(access.inside, (*shares_)(row_, access.column), score);
    }
    if (access.bias) score = score + *access.bias;
    if (c_.scoring != Scoring::sigmoid) score = score + 0.0f;  // -0 and 0 are equal
    for (int i = 0; i < c_.vector_elems; ++i) {
      scores_.push_back(score[i]);
      Value key = c_.keys_tell_experts ? topk::key_with_expert(score[i], access.column + i)
                                       : topk::key_of(score[i]);
      keys_.push_back(select(access.inside, key, topk::kTaken));
    }
  }

  Value score_of(const Value& key) const {
    return c_.keys_tell_experts ? topk::score_beside_expert(key) : topk::score_of(key);
  }

  /// The sum of e^(logit - largest) over all experts that are no NaN; 0 if there is none.
  Value sum_of_all(const Value& largest) const {
    Var sum(f32, 0.0f);
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      Value power = exp(select(scores_[i] == largest, 0.0f, scores_[i] - largest));
      sum += select(topk::is_number(keys_[i]), power, 0.0f);
    }
    return warp_reduce(sum, add);
  }

  /// Over all choices of the token, lanes first; choices that are NaN or none count as 0.
  Value sum_of_chosen(const std::vector<Value>& parts) const {
    Var sum(f32, parts[0]);
    for (std::size_t i = 1; i < parts.size(); ++i)
      sum += parts[i];
    return warp_reduce(sum, add, static_cast<int>(rows::power_of_two_from(std::min(c_.k, 32))));
  }

  std::vector<Value> softmax_weights(const topk::WarpChoice& choice) const {
    Value largest = score_of(choice.largest());
    std::vector<Value> powers;
    for (std::size_t round = 0; round < choice.rounds(); ++round) {
      Value key = choice.key(round);
      powers.push_back(select(topk::is_number(key), exp_below(score_of(key), largest), 0.0f));
    }
    const bool of_all = c_.scoring == Scoring::softmax && !c_.renormalize;
    Value sum = of_all ? sum_of_all(largest) : sum_of_chosen(powers);
    std::vector<Value> weights;
    weights.reserve(powers.size());
    for (const Value& power : powers)
      weights.push_back(select(sum > 0.0f, quotient(power, sum), 0.0f) * scale_);
    return weights;
  }

  /// From the sigmoids before a bias was added; that of a NaN counts as 0.
  std::vector<Value> sigmoid_weights(const topk::WarpChoice& choice,
                                     const std::vector<Value>& experts) const {
    std::vector<Value> shares;
    for (std::size_t round = 0; round < experts.size(); ++round) {
      Value share = (*shares_)(row_, experts[round]).load();
      shares.push_back(select(topk::is_number(choice.key(round)), share, 0.0f));
    }
    std::vector<Value> weights;
    std::optional<Value> sum;
    if (c_.renormalize) sum.emplace(sum_of_chosen(shares) + 1e-20f);
    weights.reserve(shares.size());
    for (const Value& share : shares)
      weights.push_back((sum ? quotient(share, *sum) : share) * scale_);
    return weights;
  }

  void write(const Value& token, const Value& column, const Value& chosen, const Value& weight,
             const Value& padding) const {
    Value inside = column < c_.columns(), routed = column < c_.k;
    Value expert = t_.expert_map ? load_if(routed, (*t_.expert_map)(chosen), 1)[0].get() : chosen;
    auto or_shared = [&](const Value& of_chosen, const Value& of_shared) {
      return c_.shared_experts == 0 ? of_chosen : select(routed, of_chosen, of_shared);
    };
    Fragment id(t_.ids.type(), 1), share(f32, 1);
    Value written = or_shared(expert, column + (c_.experts - c_.k));
    id[0] = select(padding, constant(s32, -1), written).to(t_.ids.type());
    share[0] = select(padding, constant(f32, 0.0f), or_shared(weight, shared_weight_));
    store_if(inside, t_.ids(token, column), id);
    store_if(inside, t_.weights(token, column), share);
  }

  MoeTopkConfig c_;
  TopkTensors t_;
  Value scale_, shared_weight_;
  Value lane_, group_;
  Value first_;                       // the lane's first expert
  Value row_;                         // of the block's tokens
  std::vector<Value> scores_, keys_;  // of the lane's experts
  std::optional<Tensor> shares_;      // of the block's tokens: sigmoids, before a bias was added
};

}  // namespace

Traced MoeTopkPlan::trace(ptx::Target target) const {
  TraceOptions trace_options{.name = "moe_topk_" + std::string(name(tensors.logits.type)) + "_" +
                                     std::to_string(config.k) + "of" +
                                     std::to_string(config.experts),
                             .target = target,
                             .block = {config.threads(), 1, 1},
                             .min_blocks_per_sm = config.team == 1 ? 0 : 1};
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
