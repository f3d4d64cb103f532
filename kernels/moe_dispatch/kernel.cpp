// SPDX-License-Identifier: Apache-2.0
// The kernels of moe_dispatch: routing, barriers and copying put together in four ways.
#include "kernels/moe_dispatch/limits.h"
#include "kernels/moe_dispatch/moe_dispatch.h"
#include "tilewright/control.h"
#include "tilewright/sync.h"
#include "tilewright/thread.h"

#include <algorithm>

namespace tilewright {
namespace {

using DispatchTensors = DispatchArguments<Tensor>;

class DispatchKernel {
 public:
  DispatchKernel(const DispatchLaunch& how, const DispatchTensors& tensors,
                 const Value& choices_per_warp)
      : how_(how),
        t_(tensors),
        choices_per_warp_(choices_per_warp),
        block_(block_idx().x),
        in_global_{tensors.counts, tensors.offsets} {}

  void run() const {
    switch (how_.stage) {
      case DispatchStage::replicated:
        return run_replicated();
      case DispatchStage::decode:
        return run_decode();
      case DispatchStage::route:
        return run_route();
      case DispatchStage::copy:
        return run_copy();
    }
  }

 private:
  /// Slots stay in the block's shared memory; the first block writes the results too.
  void run_replicated() const {
    TokenCopier copier = make_copier();
    copier.begin();
    Tensor slots = dynamic_shared(s32, make_row_major(Shape{kMaxReplicatedChoices}),
                                  route_smem_bytes(how_.route));
    ExpertRows rows = route_tokens(how_.route, route_tensors(), alone(block_ == 0), {}, slots);
    barrier();
    copier.copy_tokens_to_experts(slots, rows);
  }

  void run_decode() const {
    GridBarrier grid_barrier(t_.barrier(0));
    TokenCopier copier = make_copier();
    copier.begin();
    if_(block_ == 0,
        [&] { route_tokens(how_.route, route_tensors(), alone(constant(pred, true)), {}, {}); });
    grid_barrier.sync();
    copier.copy_tokens_to_experts(t_.slot, in_global_);
  }

  void run_route() const {
    grid_dependency_launch();  // a dependent copy may begin to read x
    if (!how_.team) {
      route_tokens(how_.route, route_tensors(), alone(constant(pred, true)), {}, {});
      return;
    }
    GridBarrier grid_barrier(t_.barrier(0));
    RouteTeam team{block_, grid_dim().x, choices_per_warp_, constant(pred, true)};
    route_tokens(how_.route, route_tensors(), team, RouteExchange{grid_barrier, t_.table}, {});
  }

  /// x was there before the routing began, so that only the slots have to be waited for.
  void run_copy() const {
    TokenCopier copier = make_copier();
    copier.begin();
    grid_dependency_wait();
    copier.copy_tokens_to_experts(t_.slot, in_global_);
  }

  RouteTeam alone(const Value& writes) const {
    return {constant(s32, 0), constant(s32, 1), choices_per_warp_, writes};
  }
  RouteTensors route_tensors() const {
    return {t_.ids,          t_.counts,    t_.offsets, t_.slot, t_.sorted_token_ids,
            t_.block_expert, t_.total_rows};
  }
  TokenCopier make_copier() const {
    return {how_.copy, CopyTensors{t_.x, t_.x_perm, t_.scales, t_.scales_perm}};
  }

  const DispatchLaunch& how_;
  DispatchTensors t_;
  Value choices_per_warp_, block_;
  ExpertRows in_global_;
};

constexpr const char* stage_name(DispatchStage stage) {
  switch (stage) {
    case DispatchStage::replicated:
      return "replicated";
    case DispatchStage::decode:
      return "decode";
    case DispatchStage::route:
      return "route";
    case DispatchStage::copy:
      return "copy";
  }
  return "";
}

}  // namespace

std::string DispatchLaunch::key() const {
  std::string text = std::string("moe_dispatch/1 ") + stage_name(stage) + (team ? " team" : "");
  if (stage != DispatchStage::copy) text += " route " + to_string(route);
  if (stage != DispatchStage::route) text += " copy " + to_string(copy);
  text += " e=" + std::to_string(copy.experts) + " b=" + std::to_string(copy.block);
  for (const TensorArg* arg : {&args.x, &args.ids, &args.x_perm, &args.counts, &args.offsets,
                               &args.slot, &args.total_rows, &args.barrier, &args.table})
    text += " | " + to_string(*arg);
  for (const std::optional<TensorArg>* arg :
       {&args.scales, &args.scales_perm, &args.sorted_token_ids, &args.block_expert})
    text += " | " + (*arg ? to_string(**arg) : "-");
  return text;
}

Traced DispatchLaunch::trace(ptx::Target target) const {
  int threads = stage == DispatchStage::copy ? copy.threads : route.threads;
  // Without a bound ptxas keeps registers for more blocks by putting one load behind another.
  constexpr int kThreadsOfLoadsInFlight = 1024;
  bool holds_loads = stage == DispatchStage::copy && copy.stages == 0;
  TraceOptions trace_options{
      .name = std::string("moe_dispatch_") + stage_name(stage) + "_" + std::to_string(copy.k) +
              "of" + std::to_string(copy.experts) + "x" + std::to_string(copy.columns),
      .target = target,
      .block = {threads, 1, 1},
      .min_blocks_per_sm = holds_loads ? std::max(kThreadsOfLoadsInFlight / threads, 1) : 1};
  using Maybe = std::optional<Tensor>;
  auto body = [this](const Tensor& x, const Tensor& ids, const Maybe& scales, const Tensor& x_perm,
                     const Maybe& scales_perm, const Tensor& counts, const Tensor& offsets,
                     const Tensor& slot, const Maybe& sorted_token_ids, const Maybe& block_expert,
                     const Tensor& total_rows, const Tensor& barrier, const Tensor& table,
                     const Value& per_warp) {
    DispatchKernel(*this,
                   {x, ids, scales, x_perm, scales_perm, counts, offsets, slot, sorted_token_ids,
                    block_expert, total_rows, barrier, table},
                   per_warp)
        .run();
  };
  return tilewright::trace(trace_options, body, args.x, args.ids, args.scales, args.x_perm,
                           args.scales_perm, args.counts, args.offsets, args.slot,
                           args.sorted_token_ids, args.block_expert, args.total_rows, args.barrier,
                           args.table, ScalarArg{s32, {32, 32, std::int64_t{1} << 30}});
}

}  // namespace tilewright
