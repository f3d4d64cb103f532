// SPDX-License-Identifier: Apache-2.0
// The host side of kda_commit: checks, configuration, grid, parameters.
#include "kernels/kda_commit/kda_commit.h"
#include "kernels/rows/row_shape.h"

namespace tilewright {
namespace {

struct Checks {
  const KdaCommitTensors& t;
  rows::Caller caller;

  [[noreturn]] void fail(const std::string& what) const { caller.refuse(what); }

  void tensor(const View& view, const char* which, std::int64_t last) const {
    if (view.type != f32)
      fail(std::string(which) + " has type " + std::string(name(view.type)) + "; it must be f32");
    const View& k = t.k_records;
    bool fits = view.rank == 4 && view.shape[0] == k.shape[0] && view.shape[1] == k.shape[1] &&
                view.shape[2] == t.state.shape[1] && view.shape[3] == last;
    if (!fits || !is_row_major(view)) {
      fail(std::string(which) + " is " + to_string(view) + "; it must be contiguous [N,T,HV," +
           std::to_string(last) + "] with k_records' N and T");
    }
    rows::check_apart(view, which, t.state, "state", caller);
  }

  void indices(const View& view, const char* which) const {
    if (!rows::is_index_type(view.type) || view.rank != 1 ||
        view.shape[0] != t.k_records.shape[0]) {
      fail(std::string(which) + " is " + to_string(view) + "; it must be s32 or s64 [" +
           std::to_string(t.k_records.shape[0]) + "]");
    }
    rows::check_apart(view, which, t.state, "state", caller);
  }

  void run() const {
    const View& state = t.state;
    bool fits = state.type == f32 && state.rank == 4 && is_row_major(state) &&
                (state.shape[3] == 64 || state.shape[3] == 128) && state.shape[2] >= 32 &&
                state.shape[2] % 32 == 0;
    if (!fits) {
      fail("state is " + to_string(state) +
           "; it must be contiguous f32 [slots,HV,V,K], K 64 or 128 and V a multiple of 32");
    }
    if (t.k_records.rank != 4)
      fail("k_records is " + to_string(t.k_records) + "; it must be [N,T,HV,K]");
    tensor(t.k_records, "k_records", state.shape[3]);
    tensor(t.decay_records, "decay_records", state.shape[3]);
    tensor(t.d_records, "d_records", state.shape[2]);
    indices(t.accepted, "accepted");
    if (t.indices) indices(*t.indices, "indices");
    if (!t.indices && state.shape[0] < t.k_records.shape[0]) {
      fail("state is " + to_string(state) +
           "; it must have at least N = " + std::to_string(t.k_records.shape[0]) + " slots");
    }
  }
};

}  // namespace

KdaCommitPlan plan_kda_commit(const KdaCommitTensors& tensors, SourceLoc at) {
  rows::Caller caller{"kda_commit", at};
  Checks{tensors, caller}.run();
  KdaCommitPlan plan;
  plan.tensors = tensors;
  KdaCommitConfig& config = plan.config;
  config.heads = static_cast<int>(tensors.state.shape[1]);
  config.v = static_cast<int>(tensors.state.shape[2]);
  config.k = static_cast<int>(tensors.state.shape[3]);
  config.warps = config.v % 64 == 0 ? 4 : 2;
  std::int64_t heads = tensors.k_records.shape[0] * config.heads;
  if (heads < 256) config.rows_per_lane = 1;
  constexpr DynamicModes kFirst{.extents = 1, .strides = 1};
  constexpr DynamicModes kFirstTwo{.extents = 3, .strides = 1};
  plan.args = {
      tensor_arg(tensors.state, kFirst),
      tensor_arg(tensors.d_records, kFirstTwo),
      tensor_arg(tensors.k_records, kFirstTwo),
      tensor_arg(tensors.decay_records, kFirstTwo),
      tensor_arg(tensors.accepted, kFirst),
      tensors.indices ? std::optional(tensor_arg(*tensors.indices, kFirst)) : std::nullopt};
  std::int64_t blocks = heads * (config.v / config.block_rows());
  plan.launch.grid.x = tensors.k_records.shape[1] == 0 ? 0 : rows::row_blocks(blocks, 1, caller);
  plan.launch.block.x = config.warps * 32;
  return plan;
}

std::string KdaCommitPlan::key() const {
  std::string text = "kda_commit/1 w=" + std::to_string(config.warps) +
                     " r=" + std::to_string(config.rows_per_lane);
  for (const TensorArg* arg :
       {&args.state, &args.d_records, &args.k_records, &args.decay_records, &args.accepted})
    text += " | " + to_string(*arg);
  return text + " | " + rows::key_text(args.indices);
}

Parameters KdaCommitPlan::parameters() const {
  Parameters parameters;
  pack(parameters, args.state, tensors.state);
  pack(parameters, args.d_records, tensors.d_records);
  pack(parameters, args.k_records, tensors.k_records);
  pack(parameters, args.decay_records, tensors.decay_records);
  pack(parameters, args.accepted, tensors.accepted);
  if (args.indices) pack(parameters, *args.indices, *tensors.indices);
  return parameters;
}

void kda_commit(const Stream& stream, const KdaCommitTensors& tensors, SourceLoc at) {
  KdaCommitPlan plan = plan_kda_commit(tensors, at);
  if (plan.launch.grid.x == 0) return;
  rows::prepare(stream.device(), plan, at).launch(stream, at);
}

}  // namespace tilewright
