// SPDX-License-Identifier: Apache-2.0
// The kernel of lightning_attention: every warp has some rows of a head's state.
#include "kernels/kda/delta_rule.h"
#include "kernels/kda/gate.h"
#include "kernels/lightning_attention/lightning_attention.h"
#include "tilewright/control.h"
#include "tilewright/thread.h"

namespace tilewright {
namespace {

class LightningKernel {
 public:
  LightningKernel(const LightningConfig& config, LightningArguments<Tensor> tensors,
                  const Value& scale)
      : c_(config), t_(std::move(tensors)), scale_(scale), state_(config.rows_per_lane, config.k) {}

  void run() const {
    int blocks = c_.v / c_.block_rows();  // of a head
    Value head = block_idx().x / blocks;
    Value n = (head / c_.v_heads).to(s64), v_head = head % c_.v_heads;
    Value slot = t_.indices ? (*t_.indices)(n).load({.read_only = true}).to(s64) : n;
    Value first = block_idx().x % blocks * c_.block_rows() +
                  (warp_idx() * kda::kWarpRows + kda::row_of_lane()) * c_.rows_per_lane;
    if_(slot >= 0, [&] { run_rows({n, slot, v_head, first}); });
  }

 private:
  struct Rows {
    Value n, slot, v_head;
    Value first;  ///< of this lane's rows
  };

  void run_rows(const Rows& rows) const {
    Value q_head = rows.v_head / (c_.v_heads / c_.q_heads);
    Value decay = kda::fixed_decay(t_.decay(q_head).load());
    if (t_.state) {
      Tensor state = t_.state->slice(coord({rows.slot, rows.v_head, _, _}));
      for (int r = 0; r < c_.rows_per_lane; ++r)
        state_.load(r, state(rows.first + r, _));
    } else {
      state_.clear();
    }
    if (t_.cu_seqlens) {
      auto bound = [&](const Value& of) { return (*t_.cu_seqlens)(of).load({.read_only = true}); };
      Value begin = bound(rows.n), end = bound(rows.n + 1);
      for_(begin, end, 1,
           [&](const Value& t) { run_token(rows, q_head, decay, constant(s64, 0), t); });
    } else if (c_.one_token) {
      run_token(rows, q_head, decay, rows.n, constant(s32, 0));
    } else {
      for_(to_value(t_.q.shape()[1].value()),
           [&](const Value& t) { run_token(rows, q_head, decay, rows.n, t); });
    }
    if (!t_.state || !c_.commit) return;
    Tensor state = t_.state->slice(coord({rows.slot, rows.v_head, _, _}));
    for (int r = 0; r < c_.rows_per_lane; ++r)
      state_.store(r, state(rows.first + r, _));
  }

  kda::Pieces pieces_of(const Tensor& vector) const {
    kda::Pieces pieces = kda::load_pieces(vector, c_.k);
    for (Fragment& piece : pieces)
      piece = piece.to(f32);
    return pieces;
  }

  void run_token(const Rows& rows, const Value& q_head, const Value& decay, const Value& n,
                 const Value& t) const {
    int count = c_.rows_per_lane;
    Fragment v = load(t_.v(n, t, rows.v_head, rows.first), count).to(f32);
    std::vector<Value> values;
    for (int r = 0; r < count; ++r)
      values.push_back(v[r]);
    std::vector<Value> reads =
        state_.accumulate(decay, pieces_of(t_.k.slice(coord({n, t, q_head, _}))),
                          pieces_of(t_.q.slice(coord({n, t, q_head, _}))), values);
    Fragment out(f32, count);
    for (int r = 0; r < count; ++r)
      out[r] = reads[static_cast<std::size_t>(r)] * scale_;
    store_if(kda::row_lane() == 0, t_.out(n, t, rows.v_head, rows.first), out.to(bf16));
  }

  const LightningConfig& c_;
  LightningArguments<Tensor> t_;
  Value scale_;
  kda::StateRows state_;
};

}  // namespace

Traced LightningPlan::trace(ptx::Target target) const {
  TraceOptions trace_options{.name = "lightning_attention_" + std::to_string(config.q_heads) + "x" +
                                     std::to_string(config.v_heads),
                             .target = target,
                             .block = {config.warps * 32, 1, 1}};
  using Maybe = std::optional<Tensor>;
  auto body = [this](const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& decay,
                     const Maybe& cu_seqlens, const Maybe& state, const Maybe& indices,
                     const Tensor& out, const Value& scale) {
    LightningKernel(config, {q, k, v, decay, cu_seqlens, state, indices, out}, scale).run();
  };
  return tilewright::trace(trace_options, body, args.q, args.k, args.v, args.decay, args.cu_seqlens,
                           args.state, args.indices, args.out, ScalarArg{f32, {}});
}

}  // namespace tilewright
