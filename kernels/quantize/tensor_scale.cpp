// SPDX-License-Identifier: Apache-2.0
// The largest magnitude of a tensor by a reduction over the grid: the last block writes the scale.
#include "kernels/quantize/tensor_scale.h"

#include "kernels/quantize/group_codes.h"
#include "kernels/rows/row_arg.h"
#include "kernels/rows/row_batch.h"
#include "tilewright/atomic.h"
#include "tilewright/control.h"
#include "tilewright/sync.h"
#include "tilewright/thread.h"

#include <algorithm>
#include <array>
#include <vector>

namespace tilewright {
namespace {

constexpr int kBlockThreads = 256;
constexpr int kAccesses = 4;     // of a thread, in flight at once
constexpr int kBlocksPerSm = 4;  // enough bytes in flight, and few atomics

bool wide_index(const View& x) { return size(x) > (std::int64_t{1} << 30); }

class TensorScaleKernel {
 public:
  explicit TensorScaleKernel(const TensorScalePlan& plan) : plan_(plan) {}

  void operator()(const Tensor& batch, const Tensor& scales, const Tensor& workspace,
                  const Value& floor, const std::optional<Tensor>& tokens) const {
    const Tensor x = tokens ? rows::one_of(batch, block_idx().z) : batch;
    Value largest = largest_of_block(largest_of_thread(x, rows_of(x, tokens)));
    if_(linear_thread_idx() == 0, [&] {
      red_max(workspace(0), largest.bitcast(u32));  // in the order of magnitudes, NaN the largest
      Value blocks = tokens ? grid_dim().x * grid_dim().z : grid_dim().x;
      Value last = blocks.to(u32) - 1;
      Value before = atomic_inc(workspace(1), last, {.order = Order::acq_rel});  // ends at 0
      if_(before == last, [&] {
        Value all = atomic_exch(workspace(0), constant(u32, 0)).bitcast(f32);
        scales(0) = larger(all, floor) / 448.0f;
      });
    });
  }

 private:
  static Value rows_of(const Tensor& x, const std::optional<Tensor>& tokens) {
    const Value all = to_value(x.shape()[0].value());
    if (!tokens) return all;
    const Value count = (*tokens)(block_idx().z).load({.read_only = true});
    return min(count.to(all.type()), all);
  }

  Value largest_of_thread(const Tensor& x, const Value& row_count) const {
    const Type index = wide_index(plan_.x) ? s64 : s32;
    const std::int64_t per_row = rows::row_elems(plan_.x) / plan_.vector_elems;
    Value total = row_count.to(index) * constant(index, per_row);
    Value first =
        block_idx().x.to(index) * (kBlockThreads * kAccesses) + linear_thread_idx().to(index);
    Var largest(f32, 0.0f);
    for_(first, total, grid_dim().x.to(index) * (kBlockThreads * kAccesses), [&](const Value& at) {
      std::vector<Fragment> loaded;
      for (int j = 0; j < kAccesses; ++j) {
        Value access = at + j * kBlockThreads;
        Value column = (access % constant(index, per_row)) * plan_.vector_elems;
        loaded.push_back(load_if(access < total, x(access / constant(index, per_row), column),
                                 plan_.vector_elems));
      }
      for (const Fragment& access : loaded)
        largest = larger(largest, largest_magnitude(access));
    });
    return largest;
  }

  static Value largest_of_block(const Value& mine) {
    constexpr int kWarps = kBlockThreads / 32;
    Tensor partials = shared(f32, Layout(Shape{kWarps}));
    Value of_warp = warp_reduce(mine, larger);
    if_(linear_thread_idx() % 32 == 0, [&] { partials(warp_idx()) = of_warp; });
    barrier();
    return reduce(load(partials(0), kWarps), larger);
  }

  const TensorScalePlan& plan_;
};

}  // namespace

TensorScalePlan plan_tensor_scale(const DeviceProperties& device, const View& x, const View& scales,
                                  float floor, const Workspace& workspace,
                                  const rows::Caller& caller,
                                  const std::optional<View>& tokens_per_expert) {
  if (workspace.size_bytes < kTensorScaleBytes || workspace.address % 8 != 0) {
    caller.refuse("workspace has " + std::to_string(workspace.size_bytes) +
                  " bytes; fp8_tensor without scale needs " + std::to_string(kTensorScaleBytes) +
                  ", aligned to 8");
  }
  TensorScalePlan plan;
  plan.vector_elems = rows::common_vector(x.type, std::array{x});
  plan.x = size(x) == 0 ? rows::as_matrix(x) : x;
  if (size(x) > 0) plan.tokens_per_expert = tokens_per_expert;
  const bool experts = plan.tokens_per_expert.has_value();
  const bool flat = !experts && is_row_major(x);
  if (flat) {  // rows of an access: their place needs no division
    plan.x = make_view(x.address, x.type,
                       std::array{size(x) / plan.vector_elems, std::int64_t{plan.vector_elems}});
  }
  plan.scales = scales;
  plan.floor = floor;
  plan.workspace = make_view(workspace.address, u32, std::array<std::int64_t, 1>{2});
  constexpr DynamicModes kRows{.extents = 1, .strides = 1};
  constexpr DynamicModes kFlat{.extents = 1, .strides = 0};
  plan.x_arg = tensor_arg(plan.x, experts ? rows::modes_of_batch(kRows) : flat ? kFlat : kRows);
  if (experts) plan.tokens_arg = rows::rows_arg(*tokens_per_expert);
  plan.scales_arg = tensor_arg(scales);
  plan.workspace_arg = tensor_arg(plan.workspace);
  const std::int64_t count = experts ? x.shape[0] : 1;
  const std::int64_t tiles =
      rows::ceil_div(size(x) / count / plan.vector_elems, std::int64_t{kBlockThreads} * kAccesses);
  const std::int64_t most =
      std::max<std::int64_t>(1, kBlocksPerSm * std::max(1, device.sm_count) / count);
  plan.launch.grid.x = static_cast<int>(std::clamp<std::int64_t>(tiles, 1, most));
  plan.launch.block.x = kBlockThreads;
  if (experts) plan.launch = rows::launch_of_batch(plan.launch, count, caller);
  return plan;
}

std::string TensorScalePlan::key() const {
  return "tensor_scale/2 v=" + std::to_string(vector_elems) + (wide_index(x) ? " wide" : "") +
         " | " + to_string(x_arg) + " | " + to_string(scales_arg) +
         (tokens_arg ? " | experts " + to_string(*tokens_arg) : "");
}

Traced TensorScalePlan::trace(ptx::Target target) const {
  TraceOptions trace_options{.name = "tensor_scale_" + std::string(name(x.type)),
                             .target = target,
                             .block = {kBlockThreads, 1, 1}};
  return tilewright::trace(trace_options, TensorScaleKernel(*this), x_arg, scales_arg,
                           workspace_arg, ScalarArg{f32, {}}, tokens_arg);
}

Parameters TensorScalePlan::parameters() const {
  Parameters parameters;
  pack(parameters, x_arg, x);
  pack(parameters, scales_arg, scales);
  pack(parameters, workspace_arg, workspace);
  parameters.add(floor);
  if (tokens_arg) pack(parameters, *tokens_arg, *tokens_per_expert);
  return parameters;
}

}  // namespace tilewright
