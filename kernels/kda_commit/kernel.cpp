// SPDX-License-Identifier: Apache-2.0
// The kernel of kda_commit: products of decays from the last accepted token backwards.
#include "kernels/kda/delta_rule.h"
#include "kernels/kda_commit/kda_commit.h"
#include "tilewright/control.h"
#include "tilewright/thread.h"

namespace tilewright {
namespace {

class CommitKernel {
 public:
  CommitKernel(const KdaCommitConfig& config, KdaCommitArguments<Tensor> tensors)
      : c_(config), t_(std::move(tensors)) {}

  void run() const {
    int blocks = c_.v / c_.block_rows();  // of a head
    Value head = block_idx().x / blocks;
    Value n = (head / c_.heads).to(s64), v_head = head % c_.heads;
    auto index = [&](const Tensor& list) { return list(n).load({.read_only = true}).to(s64); };
    Value slot = t_.indices ? index(*t_.indices) : n;
    Value tokens = to_value(t_.k_records.shape()[1].value()).to(s64);
    Value count = min(index(t_.accepted), tokens).to(s32);
    Value first = block_idx().x % blocks * c_.block_rows() +
                  (warp_idx() * kda::kWarpRows + kda::row_of_lane()) * c_.rows_per_lane;
    if_(slot >= 0 && count > 0, [&] { commit({n, slot, v_head, first}, count); });
  }

 private:
  struct Rows {
    Value n, slot, v_head;
    Value first;  ///< of this lane's rows
  };

  /// S = S_0 diag(prod decay) + sum of d (k times the decays after it)^T.
  void commit(const Rows& rows, const Value& count) const {
    kda::StateRows state(c_.rows_per_lane, c_.k), added(c_.rows_per_lane, c_.k);
    Tensor slot = t_.state.slice(coord({rows.slot, rows.v_head, _, _}));
    for (int r = 0; r < c_.rows_per_lane; ++r)
      state.load(r, slot(rows.first + r, _));
    added.clear();
    kda::Pieces later;  // the product of the decays after a token
    for (int at = 0; at < c_.k; at += kda::kPieceStep) {
      later.push_back(Fragment(f32, kda::kPieceElems));
      later.back().fill(1.0f);
    }
    for_(count, [&](const Value& step) {
      Value token = count - 1 - step;
      auto vector = [&](const Tensor& records) {
        return kda::load_pieces(records.slice(coord({rows.n, token, rows.v_head, _})), c_.k);
      };
      kda::Pieces k = vector(t_.k_records), decay = vector(t_.decay_records);
      Fragment d = load(t_.d_records(rows.n, token, rows.v_head, rows.first), c_.rows_per_lane);
      std::vector<Value> corrections;
      for (int r = 0; r < c_.rows_per_lane; ++r)
        corrections.push_back(d[r]);
      for (std::size_t i = 0; i < k.size(); ++i)
        k[i] = k[i] * later[i];
      added.add(k, corrections);
      for (std::size_t i = 0; i < k.size(); ++i)
        later[i].assign(later[i] * decay[i]);
    });
    state.scale_and_add(later, added);
    for (int r = 0; r < c_.rows_per_lane; ++r)
      state.store(r, slot(rows.first + r, _));
  }

  const KdaCommitConfig& c_;
  KdaCommitArguments<Tensor> t_;
};

}  // namespace

Traced KdaCommitPlan::trace(ptx::Target target) const {
  TraceOptions trace_options{
      .name = "kda_commit_" + std::to_string(config.heads) + "x" + std::to_string(config.v),
      .target = target,
      .block = {config.warps * 32, 1, 1}};
  auto body = [this](const Tensor& state, const Tensor& d, const Tensor& k, const Tensor& decay,
                     const Tensor& accepted, const std::optional<Tensor>& indices) {
    CommitKernel(config, {state, d, k, decay, accepted, indices}).run();
  };
  return tilewright::trace(trace_options, body, args.state, args.d_records, args.k_records,
                           args.decay_records, args.accepted, args.indices);
}

}  // namespace tilewright
