// SPDX-License-Identifier: Apache-2.0
// The host side of moe_dispatch: which launches, their blocks and shared memory.
#include "kernels/moe_dispatch/checks.h"
#include "kernels/moe_dispatch/limits.h"
#include "kernels/moe_dispatch/space.h"
#include "tilewright/stream.h"

#include <algorithm>
#include <array>

namespace tilewright {
namespace {

constexpr std::int64_t kMaxResidentWarps = 16;  // with rows in shared memory
constexpr int kResidentThreads = 1024;          // of a multiprocessor, that copy at least

/// Unsigned integers of the same width: elements are copied as bits.
View as_bits(const View& view) {
  View same = view;
  int width = bits(view.type);
  same.type = width == 8 ? u8 : width == 16 ? u16 : u32;
  return same;
}

class Planner {
 public:
  Planner(const DeviceProperties& device, const MoeDispatchTensors& tensors,
          const MoeDispatchOptions& options, const Workspace& workspace)
      : device_(device),
        t_(tensors),
        options_(options),
        experts_(local_experts(options)),
        tokens_(tensors.x.shape[0]),
        choices_(size(tensors.ids)) {
    set_views(workspace);
    set_args();
    common_.route = {.experts = static_cast<int>(experts_),
                     .first_expert = static_cast<int>(options.first_expert),
                     .k = static_cast<int>(t_.ids.shape[1]),
                     .block = static_cast<int>(options.block),
                     .order = options.order};
    common_.copy = {.k = common_.route.k,
                    .block = common_.route.block,
                    .experts = common_.route.experts,
                    .zero_pad = options.zero_pad,
                    .columns = static_cast<int>(t_.x.shape[1]),
                    .vector_elems = rows::common_vector(
                        common_.views.x.type, std::array{common_.views.x, common_.views.x_perm})};
  }

  MoeDispatchPlan plan() const {
    std::int64_t row_bytes = t_.x.shape[1] * bits(t_.x.type) / 8;
    DispatchSizes sizes{tokens_, t_.ids.shape[1], experts_, row_bytes};
    DispatchChoice choice = choose_dispatch(device_, sizes, options_.variant);
    return {choice.variant, launches(choice)};
  }

 private:
  std::vector<DispatchLaunch> launches(const DispatchChoice& choice) const {
    switch (choice.variant) {
      case DispatchVariant::automatic:
        break;  // has been resolved
      case DispatchVariant::replicated:
        return {one_launch(DispatchStage::replicated, choice.threads)};
      case DispatchVariant::decode:
        return {one_launch(DispatchStage::decode, choice.threads)};
      case DispatchVariant::decode_dependent:
        return {route(1, choice.threads), copy(true)};
      case DispatchVariant::prefill:
        return {route(route_blocks(choice), choice.threads), copy(false)};
      case DispatchVariant::prefill_dependent:
        return {route(route_blocks(choice), choice.threads), copy(true)};
    }
    return {};
  }

  void set_views(const Workspace& workspace) {
    DispatchArguments<View>& v = common_.views;
    v.x = as_bits(t_.x);
    v.ids = t_.ids;
    v.x_perm = as_bits(t_.x_perm);
    if (t_.scales) v.scales = as_bits(*t_.scales);
    if (t_.scales_perm) v.scales_perm = as_bits(*t_.scales_perm);
    v.counts = t_.counts;
    v.offsets = t_.offsets;
    v.slot = t_.slot;
    v.sorted_token_ids = t_.sorted_token_ids;
    v.block_expert = t_.block_expert;
    v.total_rows = t_.total_rows;
    v.barrier = make_view(workspace.address, u32, std::array<std::int64_t, 1>{1});
    v.table = make_view(workspace.address + kBarrierBytes, s32,
                        std::array<std::int64_t, 1>{kMaxRouteBlocks * experts_});
  }

  void set_args() {
    const DispatchArguments<View>& v = common_.views;
    DispatchArguments<TensorArg>& a = common_.args;
    constexpr DynamicModes kRows{.extents = 0b01};
    constexpr DynamicModes kAll{.extents = 0b11, .strides = 0b11};
    auto maybe = [](const std::optional<View>& view, DynamicModes dynamic) {
      return view ? std::optional(tensor_arg(*view, dynamic)) : std::nullopt;
    };
    a.x = tensor_arg(v.x, kRows);
    a.ids = tensor_arg(v.ids, kRows);
    a.scales = maybe(v.scales, kAll);
    a.x_perm = tensor_arg(v.x_perm, kRows);
    a.scales_perm = maybe(v.scales_perm, kAll);
    a.counts = tensor_arg(v.counts);
    a.offsets = tensor_arg(v.offsets);
    a.slot = tensor_arg(v.slot, kRows);
    a.sorted_token_ids = maybe(v.sorted_token_ids, kRows);
    a.block_expert = maybe(v.block_expert, kRows);
    a.total_rows = tensor_arg(v.total_rows);
    a.barrier = tensor_arg(v.barrier);
    a.table = tensor_arg(v.table);
  }

  int element_bytes() const { return bits(t_.x.type) / 8; }

  /// Blocks that have something to copy or to zero.
  std::int64_t busy_blocks(const CopyConfig& config) const {
    std::int64_t padding =
        options_.block > 1 ? experts_ * std::min<std::int64_t>(options_.block - 1, 8) : 0;
    bool zeroes = options_.zero_pad || t_.scales;
    std::int64_t units = tokens_ * config.units_per_token();
    return std::max<std::int64_t>({units, zeroes ? padding : 0, 1});
  }

  std::int64_t choices_per_warp(std::int64_t blocks, int threads) const {
    std::int64_t warps = blocks * (threads / 32);
    return std::max<std::int64_t>(rows::ceil_div(rows::ceil_div(choices_, warps), 32), 1) * 32;
  }

  std::int64_t route_blocks(const DispatchChoice& choice) const {
    std::int64_t most = std::min(choice.blocks, device_.sm_count);
    return std::clamp<std::int64_t>(rows::ceil_div(choices_, choice.threads), 1, most);
  }

  DispatchLaunch one_launch(DispatchStage stage, int threads) const {
    DispatchLaunch l = common_;
    l.stage = stage;
    l.route.threads = threads;
    if (stage == DispatchStage::replicated) l.route.order = DispatchOrder::stable;
    l.copy.threads = threads;
    choose_copy(device_, tokens_, element_bytes(), stage, l.copy);
    l.choices_per_warp = choices_per_warp(1, threads);
    l.launch.grid.x =
        static_cast<int>(std::min<std::int64_t>(busy_blocks(l.copy), device_.sm_count));
    l.launch.block.x = threads;
    l.launch.cooperative = stage == DispatchStage::decode;
    std::int64_t slots = stage == DispatchStage::replicated ? kMaxReplicatedChoices : 0;
    l.launch.dynamic_smem_bytes = route_smem_bytes(l.route) + slots * 4;
    return l;
  }

  DispatchLaunch route(std::int64_t blocks, int threads) const {
    DispatchLaunch l = common_;
    l.stage = DispatchStage::route;
    l.team = blocks > 1;
    l.route.threads = threads;
    l.choices_per_warp = choices_per_warp(blocks, threads);
    l.launch.grid.x = static_cast<int>(blocks);
    l.launch.block.x = threads;
    l.launch.cooperative = l.team;
    l.launch.dynamic_smem_bytes = route_smem_bytes(l.route);
    return l;
  }

  DispatchLaunch copy(bool dependent) const {
    DispatchLaunch l = common_;
    l.stage = DispatchStage::copy;
    choose_copy(device_, tokens_, element_bytes(), l.stage, l.copy);
    std::int64_t blocks = busy_blocks(l.copy);
    if (l.copy.stages > 0) {
      l.launch.dynamic_smem_bytes = l.copy.stages * t_.x.shape[1] * element_bytes();
      std::int64_t resident = std::clamp<std::int64_t>(kMaxStageBytes / l.launch.dynamic_smem_bytes,
                                                       1, kMaxResidentWarps);
      blocks = std::min(blocks, device_.sm_count * resident);
    }
    if (l.copy.ahead > 0) {
      std::int64_t wave = l.copy.stages > 0 ? blocks
                                            : std::int64_t{device_.sm_count} *
                                                  std::max(kResidentThreads / l.copy.threads, 1);
      l.copy.wave = static_cast<int>(wave);
    }
    l.launch.grid.x = static_cast<int>(blocks);
    l.launch.block.x = l.copy.threads;
    l.launch.dependent = dependent;
    return l;
  }

  const DeviceProperties& device_;
  const MoeDispatchTensors& t_;
  const MoeDispatchOptions& options_;
  std::int64_t experts_, tokens_, choices_;
  DispatchLaunch common_;
};

}  // namespace

std::int64_t moe_dispatch_rows(std::int64_t choices, const MoeDispatchOptions& options) {
  return choices + local_experts(options) * (options.block - 1);
}

std::int64_t moe_dispatch_workspace_bytes(const MoeDispatchOptions& options) {
  return kBarrierBytes + kMaxRouteBlocks * local_experts(options) * 4;
}

MoeDispatchPlan plan_moe_dispatch(const DeviceProperties& device, const MoeDispatchTensors& tensors,
                                  const MoeDispatchOptions& options, const Workspace& workspace,
                                  SourceLoc at) {
  check_moe_dispatch(tensors, options, workspace, rows::Caller{"moe_dispatch", at});
  return Planner(device, tensors, options, workspace).plan();
}

Parameters DispatchLaunch::parameters() const {
  Parameters parameters;
  auto add = [&](const std::optional<TensorArg>& arg, const std::optional<View>& view) {
    if (arg) pack(parameters, *arg, *view);
  };
  add(args.x, views.x);
  add(args.ids, views.ids);
  add(args.scales, views.scales);
  add(args.x_perm, views.x_perm);
  add(args.scales_perm, views.scales_perm);
  add(args.counts, views.counts);
  add(args.offsets, views.offsets);
  add(args.slot, views.slot);
  add(args.sorted_token_ids, views.sorted_token_ids);
  add(args.block_expert, views.block_expert);
  add(args.total_rows, views.total_rows);
  add(args.barrier, views.barrier);
  add(args.table, views.table);
  parameters.add(static_cast<std::int32_t>(choices_per_warp));
  return parameters;
}

void launch_moe_dispatch(const Stream& stream, const MoeDispatchPlan& plan, SourceLoc at) {
  for (const DispatchLaunch& launch : plan.launches)
    rows::prepare(stream.device(), launch, at).launch(stream, at);
}

void moe_dispatch(const Stream& stream, const MoeDispatchTensors& tensors,
                  const MoeDispatchOptions& options, const Workspace& workspace, SourceLoc at) {
  const DeviceProperties& device = stream.device().properties();
  launch_moe_dispatch(stream, plan_moe_dispatch(device, tensors, options, workspace, at), at);
}

}  // namespace tilewright
