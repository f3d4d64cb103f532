// SPDX-License-Identifier: Apache-2.0
// Counts by expert, their sums over warps and blocks, and the row of each choice.
#include "kernels/moe_dispatch/route.h"

#include "tilewright/atomic.h"
#include "tilewright/bit.h"
#include "tilewright/control.h"
#include "tilewright/fragment.h"
#include "tilewright/sync.h"
#include "tilewright/thread.h"
#include "tilewright/warp.h"

#include <vector>

namespace tilewright {
namespace {

constexpr int kLoadsInFlight = 4;

int round_up(int value, int multiple) { return (value + multiple - 1) / multiple * multiple; }

/// Where the parts of the block's shared memory begin, in elements of s32.
struct SharedParts {
  explicit SharedParts(const RouteConfig& c)
      : counts(round_up(c.counters() * c.experts, 4)),
        begins(counts + c.experts),
        offsets(begins + c.experts),
        sums(offsets + c.experts + 1),
        end(round_up(sums + 32, 4)) {}
  int counts, begins, offsets, sums, end;
};

class TokenRouter {
 public:
  TokenRouter(const RouteConfig& config, const RouteTensors& tensors, const RouteTeam& team)
      : c_(config),
        t_(tensors),
        team_(team),
        parts_(config),
        words_(part(0, parts_.end)),
        counters_(words_.with_layout(make_row_major(Shape{config.counters(), config.experts}))),
        counts_(part(parts_.counts, config.experts)),
        begins_(part(parts_.begins, config.experts)),
        offsets_(part(parts_.offsets, config.experts + 1)),
        sums_(part(parts_.sums, 32)),
        thread_(linear_thread_idx()),
        lane_(lane_idx()),
        warp_(warp_idx()),
        choices_(to_value(tensors.slot.shape()[0].value())) {}

  ExpertRows route(const std::optional<RouteExchange>& exchange,
                   const std::optional<Tensor>& slots) {
    clear();
    barrier();
    count();
    barrier();
    add_warps();
    if (exchange) add_blocks(*exchange);
    lay_out_experts();
    barrier();
    if_(team_.writes, [&] { describe_rows(); });
    place(slots);
    return {counts_, offsets_};
  }

 private:
  static Tensor part(int first, int size) {
    return dynamic_shared(s32, make_row_major(Shape{size}), std::int64_t{first} * 4);
  }

  void clear() const {
    Fragment zeros(s32, 4);
    zeros.fill(0);
    for_(thread_ * 4, parts_.end, c_.threads * 4,
         [&](const Value& i) { store(words_(i.assume({.divisor = 4})), zeros); });
  }

  /// Calls visit(choice, expert, routed, exists) for the warp's choices in order, all lanes
  /// together. `routed`: the choice exists and its expert is one of this rank's.
  template <class Visit>
  void for_choices(const Visit& visit) const {
    Value begin = (team_.block * c_.warps() + warp_) * team_.choices_per_warp;
    Value end = min(begin + team_.choices_per_warp, choices_);
    for_(begin, end, 32 * kLoadsInFlight, [&](const Value& first) {
      std::vector<Value> choices, experts;
      for (int i = 0; i < kLoadsInFlight; ++i) {
        Value choice = (first + (lane_ + 32 * i)).assume({.lo = 0});
        Fragment id = load_if(choice < end, t_.ids(choice / c_.k, choice % c_.k), 1);
        choices.push_back(choice);
        experts.push_back(id[0].get() - c_.first_expert);
      }
      for (std::size_t i = 0; i < choices.size(); ++i) {
        Value here = experts[i] >= 0 && experts[i] < c_.experts;
        Value expert = experts[i].assume({.lo = 0, .hi = c_.experts - 1});  // used where it is here
        visit(choices[i], expert, choices[i] < end && here, choices[i] < end);
      }
    });
  }

  Value counter_row() const { return c_.order == DispatchOrder::stable ? warp_ : constant(s32, 0); }

  void count() const {
    for_choices([&](const Value&, const Value& expert, const Value& routed, const Value&) {
      if_(routed, [&] { red_add(counters_(counter_row(), expert), 1, {.scope = Scope::cta}); });
    });
  }

  /// Calls visit(expert) for the experts of this thread: neighbours, so that sums run in order.
  template <class Visit>
  void for_experts(const Visit& visit) const {
    int each = (c_.experts + c_.threads - 1) / c_.threads;
    for (int i = 0; i < each; ++i) {
      Value expert = thread_ * each + i;
      visit(expert, expert < c_.experts);
    }
  }

  /// A warp's counters become the number of choices of the warps before it.
  void add_warps() const {
    for_experts([&](const Value& expert, const Value& exists) {
      if_(exists, [&] {
        std::vector<Value> of_warps;
        of_warps.reserve(static_cast<std::size_t>(c_.counters()));
        for (int row = 0; row < c_.counters(); ++row)
          of_warps.push_back(counters_(row, expert).load());
        Var sum(s32, 0);
        for (int row = 0; row < c_.counters(); ++row) {
          counters_(row, expert) = sum;
          sum += of_warps[static_cast<std::size_t>(row)];
        }
        counts_(expert) = sum;
      });
    });
  }

  /// counts_ become those of all blocks, begins_ those of the blocks before this one.
  void add_blocks(const RouteExchange& exchange) const {
    for_experts([&](const Value& expert, const Value& exists) {
      if_(exists, [&] {
        exchange.table(team_.block * c_.experts + expert) = counts_(expert).load();
        counts_(expert) = 0;
      });
    });
    exchange.barrier.sync();
    Value end = team_.blocks * c_.experts;
    for_(thread_, end, c_.threads * kLoadsInFlight, [&](const Value& first) {
      std::vector<Value> indices, counts;
      for (int i = 0; i < kLoadsInFlight; ++i) {
        indices.push_back(first + c_.threads * i);
        counts.push_back(load_if(indices.back() < end, exchange.table(indices.back()), 1)[0].get());
      }
      for (std::size_t i = 0; i < indices.size(); ++i) {
        Value expert = indices[i] % c_.experts;
        Value before = indices[i] / c_.experts < team_.block;
        if_(indices[i] < end, [&] {
          red_add(counts_(expert), counts[i], {.scope = Scope::cta});
          if_(before, [&] { red_add(begins_(expert), counts[i], {.scope = Scope::cta}); });
        });
      }
    });
    barrier();
  }

  /// The sum over the lanes up to this one.
  Value scan_warp(const Value& value) const {
    Var sum(s32, value);
    for (int distance = 1; distance < 32; distance *= 2) {
      Value other = shuffle_up(sum, distance);
      sum = select(lane_ >= distance, Value(sum) + other, sum);
    }
    return sum;
  }

  /// offsets_, and begins_ as this block's first row of each expert. The first block writes both.
  void lay_out_experts() const {
    std::vector<Value> counts, padded;
    Var mine(s32, 0);
    for_experts([&](const Value& expert, const Value& exists) {
      Value count = load_if(exists, counts_(expert), 1)[0].get();
      counts.push_back(count);
      padded.push_back((count + (c_.block - 1)) / c_.block * c_.block);
      mine += padded.back();
    });
    Value through = scan_warp(mine);
    if_(lane_ == 31, [&] { sums_(warp_) = through; });
    barrier();
    Value of_warp = load_if(lane_ < c_.warps(), sums_(lane_), 1)[0].get();
    Value before = redux_add(select(lane_ < warp_, of_warp, 0));
    Value total = redux_add(of_warp);
    Value writes = team_.writes && team_.block == 0;
    Var offset(s32, before + through - mine);
    std::size_t i = 0;
    for_experts([&](const Value& expert, const Value& exists) {
      if_(exists, [&] {
        offsets_(expert) = offset;
        begins_(expert) = begins_(expert).load() + offset;
        if_(writes, [&] {
          t_.counts(expert) = counts[i];
          t_.offsets(expert) = offset;
        });
      });
      offset += padded[i++];
    });
    if_(thread_ == 0, [&] {
      offsets_(c_.experts) = total;
      if_(writes, [&] {
        t_.offsets(c_.experts) = total;
        t_.total_rows(0) = total;
      });
    });
  }

  /// What no choice writes: padding in sorted_token_ids, and block_expert.
  void describe_rows() const {
    if (!t_.sorted_token_ids && !t_.block_expert) return;
    Value team_warp = team_.block * c_.warps() + warp_;
    for_(team_warp, c_.experts, team_.blocks * c_.warps(), [&](const Value& expert) {
      Value begin = offsets_(expert).load(), end = offsets_(expert + 1).load();
      if (t_.sorted_token_ids && c_.block > 1) {
        Value padding = begin + counts_(expert).load();
        fill(*t_.sorted_token_ids, padding + lane_, end, 32, choices_);
      }
      if (t_.block_expert)
        fill(*t_.block_expert, begin / c_.block + lane_, end / c_.block, 32, expert);
    });
    Value total = offsets_(c_.experts).load();
    Value team_thread = team_.block * c_.threads + thread_;
    Value step = team_.blocks * c_.threads;
    auto fill_rest = [&](const Tensor& of, const Value& first, const Value& value) {
      fill(of, first + team_thread, to_value(of.shape()[0].value()), step, value);
    };
    if (t_.sorted_token_ids) fill_rest(*t_.sorted_token_ids, total, choices_);
    if (t_.block_expert) fill_rest(*t_.block_expert, total / c_.block, constant(s32, -1));
  }

  static void fill(const Tensor& tensor, const Value& begin, const Value& end, const Arg& step,
                   const Value& value) {
    for_(begin, end, step, [&](const Value& i) { tensor(i) = value; });
  }

  void place(const std::optional<Tensor>& slots) const {
    for_choices(
        [&](const Value& choice, const Value& expert, const Value& routed, const Value& exists) {
          Value row = c_.order == DispatchOrder::stable ? stable_row(expert, routed)
                                                        : next_row(expert, routed);
          if (slots) if_(exists, [&] { (*slots)(choice) = row; });
          if_(exists && team_.writes, [&] { t_.slot(choice) = row; });
          if (t_.sorted_token_ids)
            if_(routed && team_.writes, [&] { (*t_.sorted_token_ids)(row) = choice; });
        });
  }

  Value first_row(const Value& expert, const Value& routed) const {
    return load_if(routed, begins_(expert), 1)[0].get();
  }

  /// Lanes with the same expert take rows in their order, behind what the warp has placed so far.
  Value stable_row(const Value& expert, const Value& routed) const {
    Value mates = match_any(select(routed, expert, c_.experts));
    Value before = popc(mates & ((constant(u32, 1) << lane_) - 1)).bitcast(s32);
    Element counter = counters_(warp_, expert);
    Value placed = load_if(routed, counter, 1)[0].get();
    warp_barrier();
    if_(routed && before == 0, [&] { counter = placed + popc(mates).bitcast(s32); });
    warp_barrier();
    return select(routed, first_row(expert, routed) + placed + before, -1);
  }

  Value next_row(const Value& expert, const Value& routed) const {
    Var row(s32, -1);
    if_(routed, [&] {
      Value placed = atomic_add(counters_(0, expert), 1, {.scope = Scope::cta});
      row = begins_(expert).load() + placed;
    });
    return row;
  }

  RouteConfig c_;
  RouteTensors t_;
  RouteTeam team_;
  SharedParts parts_;
  Tensor words_, counters_, counts_, begins_, offsets_, sums_;
  Value thread_, lane_, warp_;
  Value choices_;  // T K
};

}  // namespace

std::string to_string(const RouteConfig& c) {
  return "e=" + std::to_string(c.first_expert) + "+" + std::to_string(c.experts) +
         " k=" + std::to_string(c.k) + " b=" + std::to_string(c.block) +
         (c.order == DispatchOrder::stable ? " stable" : " unordered") +
         " t=" + std::to_string(c.threads);
}

std::int64_t route_smem_bytes(const RouteConfig& config) {
  return std::int64_t{SharedParts(config).end} * 4;
}

ExpertRows route_tokens(const RouteConfig& config, const RouteTensors& tensors,
                        const RouteTeam& team, const std::optional<RouteExchange>& exchange,
                        const std::optional<Tensor>& slots) {
  return TokenRouter(config, tensors, team).route(exchange, slots);
}

}  // namespace tilewright
