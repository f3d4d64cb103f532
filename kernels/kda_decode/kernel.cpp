// SPDX-License-Identifier: Apache-2.0
// The delta rule token by token: every warp has some rows of a head's state, and needs no other
// warp.
#include "kernels/kda/delta_rule.h"
#include "kernels/kda_decode/kda_decode.h"
#include "tilewright/control.h"
#include "tilewright/sync.h"
#include "tilewright/thread.h"

namespace tilewright {
namespace {

using kda::Pieces;

struct DecodeParameters {
  KdaDecodeArguments<Tensor> t;
  Value scale;
  kda::GateParameters gate;
};

class DecodeKernel {
 public:
  DecodeKernel(const KdaDecodeConfig& config, const DecodeParameters& parameters)
      : c_(config), p_(parameters), state_(config.rows_per_lane, config.k) {}

  void run() const {
    int blocks = c_.v / c_.block_rows();  // of a head
    Value head = block_idx().x / blocks;
    Value n = (head / c_.v_heads).to(s64), v_head = head % c_.v_heads;
    Value slot = p_.t.indices ? (*p_.t.indices)(n).load({.read_only = true}).to(s64) : n;
    Value first = block_idx().x % blocks * c_.block_rows() +
                  (warp_idx() * kda::kWarpRows + kda::row_of_lane()) * c_.rows_per_lane;
    if_(slot >= 0, [&] { run_rows({n, v_head, slot, first}); });
  }

 private:
  struct Rows {
    Value n, v_head, slot;
    Value first;  ///< of this lane's rows
  };
  /// Where a token is in the tensors.
  struct Token {
    Value n, t;
  };

  void run_rows(const Rows& rows) const {
    load_state(rows);
    if (p_.t.cu_seqlens) {
      auto bound = [&](const Value& of) {
        return (*p_.t.cu_seqlens)(of).load({.read_only = true});
      };
      Value begin = bound(rows.n), end = bound(rows.n + 1);
      for_(begin, end, 1, [&](const Value& t) { run_token(rows, {constant(s64, 0), t}); });
    } else if (c_.one_token) {
      run_token(rows, {rows.n, constant(s32, 0)});
    } else {
      for_(to_value(p_.t.q.shape()[1].value()), [&](const Value& t) {
        run_token(rows, {rows.n, t});
      });
    }
    if (p_.t.final_state) store_state(rows);
  }

  void load_state(const Rows& rows) const {
    if (!p_.t.state) return state_.clear();
    Tensor state = p_.t.state->slice(coord({rows.slot, rows.v_head, _, _}));
    if (c_.layout == StateLayout::kv) return state_.load_columns(state, rows.first);
    for (int r = 0; r < c_.rows_per_lane; ++r)
      state_.load(r, state(rows.first + r, _));
  }

  void store_state(const Rows& rows) const {
    Tensor state = p_.t.final_state->slice(coord({rows.slot, rows.v_head, _, _}));
    if (c_.layout == StateLayout::kv) return state_.store_columns(state, rows.first);
    for (int r = 0; r < c_.rows_per_lane; ++r)
      state_.store(r, state(rows.first + r, _));
  }

  /// The lane's pieces of a vector, in f32.
  Pieces pieces_of(const Tensor& vector) const {
    Pieces pieces = kda::load_pieces(vector, c_.k);
    for (Fragment& piece : pieces)
      piece = piece.to(f32);
    return pieces;
  }
  static Pieces scaled(const Pieces& pieces, const Value& factor) {
    Pieces out;
    for (const Fragment& piece : pieces)
      out.push_back(piece * factor);
    return out;
  }
  static Value inverse_length(const Pieces& x) { return rsqrt_approx(kda::product(x, x) + 1e-6f); }

  Pieces decay_of(const Rows& rows, const Token& token) const {
    if (c_.gate == DecayGate::factor) {
      Fragment same(f32, kda::kPieceElems);
      same.fill(p_.t.a(token.n, token.t, rows.v_head).load());
      return Pieces(static_cast<std::size_t>(c_.k / kda::kPieceStep), same);
    }
    Pieces u = pieces_of(p_.t.a.slice(coord({token.n, token.t, rows.v_head, _})));
    if (c_.gate == DecayGate::given) {
      for (Fragment& piece : u)
        piece = kda::decay_factors(piece);
      return u;
    }
    kda::GateRate rate =
        p_.t.A_log ? kda::gate_rate((*p_.t.A_log)(rows.v_head)) : kda::rate_of_one();
    Pieces bias;
    if (p_.t.dt_bias) bias = pieces_of((*p_.t.dt_bias)(rows.v_head, _));
    for (std::size_t i = 0; i < u.size(); ++i) {
      if (p_.t.dt_bias) u[i] = u[i] + bias[i];
      u[i] = decay_factors(u[i], rate, c_.gate == DecayGate::safe, p_.gate);
    }
    return u;
  }

  Value beta_of(const Rows& rows, const Token& token) const {
    Value b = p_.t.b(token.n, token.t, rows.v_head).load();
    if (c_.gate == DecayGate::factor) return b;
    Value strength = kda::sigmoid_approx(b.to(f32));
    return c_.neg_eigval ? strength * 2.0f : strength;
  }

  kda::TokenVectors vectors_of(const Rows& rows, const Token& token) const {
    Value head = rows.v_head / (c_.v_heads / c_.q_heads);
    Pieces q = pieces_of(p_.t.q.slice(coord({token.n, token.t, head, _})));
    Pieces k = pieces_of(p_.t.k.slice(coord({token.n, token.t, head, _})));
    Pieces decay = decay_of(rows, token);
    Value beta = beta_of(rows, token);
    Value q_factor = inverse_length(q) * p_.scale, k_factor = inverse_length(k);
    return {decay, scaled(k, k_factor), scaled(q, q_factor), beta};
  }

  void run_token(const Rows& rows, const Token& token) const {
    int count = c_.rows_per_lane;
    Fragment v = load(p_.t.v(token.n, token.t, rows.v_head, rows.first), count).to(f32);
    std::vector<Value> values;
    for (int r = 0; r < count; ++r)
      values.push_back(v[r]);
    std::vector<kda::RowResult> results = state_.advance(vectors_of(rows, token), values);
    if (p_.t.snapshots) {
      for (int r = 0; r < count; ++r) {
        state_.store(
            r, p_.t.snapshots->slice(coord({token.n, token.t, rows.v_head, rows.first + r, _})));
      }
    }
    Fragment out(f32, count);
    for (int r = 0; r < count; ++r)
      out[r] = results[static_cast<std::size_t>(r)].out;
    store_if(kda::row_lane() == 0, p_.t.out(token.n, token.t, rows.v_head, rows.first),
             out.to(bf16));
  }

  const KdaDecodeConfig& c_;
  const DecodeParameters& p_;
  kda::StateRows state_;
};

}  // namespace

Traced KdaDecodePlan::trace(ptx::Target target) const {
  TraceOptions trace_options{
      .name = op + "_" + std::to_string(config.q_heads) + "x" + std::to_string(config.v_heads),
      .target = target,
      .block = {config.warps * 32, 1, 1}};
  using Maybe = std::optional<Tensor>;
  auto body = [this](const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& a,
                     const Tensor& b, const Maybe& a_log, const Maybe& dt_bias,
                     const Maybe& cu_seqlens, const Maybe& state, const Maybe& indices,
                     const Tensor& out, const Maybe& final_state, const Maybe& snapshots,
                     const Value& scale, const Value& lower_bound, const Value& softplus_beta,
                     const Value& softplus_threshold) {
    DecodeParameters parameters{
        {q, k, v, a, b, a_log, dt_bias, cu_seqlens, state, indices, out, final_state, snapshots},
        scale,
        {lower_bound, softplus_beta, softplus_threshold}};
    DecodeKernel(config, parameters).run();
  };
  ScalarArg real{f32, {}};
  return tilewright::trace(trace_options, body, args.q, args.k, args.v, args.a, args.b, args.A_log,
                           args.dt_bias, args.cu_seqlens, args.state, args.indices, args.out,
                           args.final_state, args.snapshots, real, real, real, real);
}

}  // namespace tilewright
