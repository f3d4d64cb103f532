// SPDX-License-Identifier: Apache-2.0
// The host side of moe_dispatch: which launches, their blocks and shared memory.
#include "kernels/moe_dispatch/checks.h"
#include "kernels/moe_dispatch/limits.h"
#include "kernels/moe_dispatch/moe_dispatch.h"
#include "tilewright/stream.h"

#include <algorithm>
#include <array>

namespace tilewright {
namespace {

/// Few choices are routed by every block faster than by one for all.
DispatchVariant choose_variant(std::int64_t choices) {
  constexpr std::int64_t kMostForEveryBlock = 1024;
  return choices <= kMostForEveryBlock ? DispatchVariant::replicated
                                       : DispatchVariant::prefill_dependent;
}

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
      : sm_count_(device.sm_count),
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

  std::vector<DispatchLaunch> launches(DispatchVariant variant) const {
    switch (variant) {
      case DispatchVariant::automatic:
        break;  // has been resolved
      case DispatchVariant::replicated:
        return {one_launch(DispatchStage::replicated)};
      case DispatchVariant::decode:
        return {one_launch(DispatchStage::decode)};
      case DispatchVariant::decode_dependent:
        return {route(1), copy(true)};
      case DispatchVariant::prefill:
        return {route(route_blocks()), copy(false)};
      case DispatchVariant::prefill_dependent:
        return {route(route_blocks()), copy(true)};
    }
    return {};
  }
  DispatchVariant resolve(DispatchVariant variant) const {
    return variant == DispatchVariant::automatic ? choose_variant(choices_) : variant;
  }

 private:
  static constexpr int kMaxThreads = 1024;
  static constexpr int kDecodeThreads = 256;
  static constexpr int kCopyThreads = 128;
  static constexpr std::int64_t kMaxCounterBytes = 128 * 1024;

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

  /// Blocks that have something to copy or to zero.
  std::int64_t busy_blocks(const CopyConfig& config) const {
    std::int64_t padding =
        options_.block > 1 ? experts_ * std::min<std::int64_t>(options_.block - 1, 8) : 0;
    bool zeroes = options_.zero_pad || t_.scales;
    std::int64_t units = tokens_ * config.units_per_token();
    return std::max<std::int64_t>({units, zeroes ? padding : 0, 1});
  }

  /// The most threads up to `most` whose counters leave shared memory for more than one block.
  int route_threads(int most) const {
    int threads = most;
    while (threads > 32 && threads / 32 * experts_ * 4 > kMaxCounterBytes)
      threads /= 2;
    return threads;
  }

  std::int64_t choices_per_warp(std::int64_t blocks, int threads) const {
    std::int64_t warps = blocks * (threads / 32);
    return std::max<std::int64_t>(rows::ceil_div(rows::ceil_div(choices_, warps), 32), 1) * 32;
  }

  std::int64_t route_blocks() const {
    std::int64_t most = std::min<std::int64_t>(kMaxRouteBlocks, sm_count_);
    return std::clamp<std::int64_t>(rows::ceil_div(choices_, kMaxThreads), 1, most);
  }

  /// Accesses of `threads` threads that a whole row takes.
  std::int64_t accesses_of_row(const CopyConfig& config, std::int64_t threads) const {
    return rows::ceil_div(config.columns, config.vector_elems * threads);
  }

  /// The fewest accesses a thread with which no multiprocessor has more than one unit, if that many
  /// fit its registers.
  void share_rows_among_all(CopyConfig& config) const {
    constexpr std::int64_t kMaxAccesses = 4;
    std::int64_t most = std::min(kMaxAccesses, accesses_of_row(config, config.threads));
    while (config.accesses < most && tokens_ * config.units_per_token() > sm_count_)
      ++config.accesses;
  }

  DispatchLaunch one_launch(DispatchStage stage) const {
    DispatchLaunch l = common_;
    l.stage = stage;
    l.route.threads = route_threads(choices_ <= 8 * kDecodeThreads ? kDecodeThreads : kMaxThreads);
    if (stage == DispatchStage::replicated) l.route.order = DispatchOrder::stable;
    l.copy.threads = l.route.threads;
    share_rows_among_all(l.copy);
    l.choices_per_warp = choices_per_warp(1, l.route.threads);
    l.launch.grid.x = static_cast<int>(std::min<std::int64_t>(busy_blocks(l.copy), sm_count_));
    l.launch.block.x = l.route.threads;
    l.launch.cooperative = stage == DispatchStage::decode;
    std::int64_t slots = stage == DispatchStage::replicated ? kMaxReplicatedChoices : 0;
    l.launch.dynamic_smem_bytes = route_smem_bytes(l.route) + slots * 4;
    return l;
  }

  DispatchLaunch route(std::int64_t blocks) const {
    DispatchLaunch l = common_;
    l.stage = DispatchStage::route;
    l.team = blocks > 1;
    l.route.threads = route_threads(choices_ <= kDecodeThreads ? kDecodeThreads : kMaxThreads);
    l.choices_per_warp = choices_per_warp(blocks, l.route.threads);
    l.launch.grid.x = static_cast<int>(blocks);
    l.launch.block.x = l.route.threads;
    l.launch.cooperative = l.team;
    l.launch.dynamic_smem_bytes = route_smem_bytes(l.route);
    return l;
  }

  DispatchLaunch copy(bool dependent) const {
    constexpr int kMaxAccesses = 8;
    DispatchLaunch l = common_;
    l.stage = DispatchStage::copy;
    l.copy.threads = kCopyThreads;
    std::int64_t accesses = accesses_of_row(l.copy, kCopyThreads);
    std::int64_t units = rows::ceil_div(accesses, kMaxAccesses);
    l.copy.accesses = static_cast<int>(rows::ceil_div(accesses, units));
    l.launch.grid.x = static_cast<int>(busy_blocks(l.copy));
    l.launch.block.x = kCopyThreads;
    l.launch.dependent = dependent;
    return l;
  }

  int sm_count_;
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
  Planner planner(device, tensors, options, workspace);
  DispatchVariant variant = planner.resolve(options.variant);
  return {variant, planner.launches(variant)};
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
