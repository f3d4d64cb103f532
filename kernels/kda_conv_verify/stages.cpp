// SPDX-License-Identifier: Apache-2.0
// The stages of kda_conv_verify, traced.
#include "kernels/kda_conv_verify/stages.h"

#include "tilewright/control.h"
#include "tilewright/sync.h"
#include "tilewright/thread.h"

namespace tilewright {
namespace {

using kda::Inputs;
using kda::kHistory;
using kda::kLaneChannels;
using kda::kTaps;

constexpr LoadOptions kIndexLoad{.read_only = true};

Value sum_of_squares(const Fragment& x) {
  Var sum(x[0].get() * x[0].get());
  for (int i = 1; i < x.size(); ++i)
    sum = fma(x[i], x[i], sum);
  return sum;
}

Value over_warp(const Value& mine) {
  return warp_reduce(mine, [](const Value& a, const Value& b) { return a + b; });
}

}  // namespace

KdaStages::KdaStages(const KdaConvVerifyConfig& config, const KdaConvVerifyParameters& parameters)
    : c_(config), p_(parameters) {}

KdaPlace KdaStages::place() const {
  int blocks = c_.tiling.cluster * c_.q_heads;  // of a request
  Value block = block_idx().x;
  return {(block / blocks).to(s64), block % blocks / c_.tiling.cluster, block % c_.tiling.cluster};
}

KdaStages::Start KdaStages::start() const {
  KdaPlace at = place();
  auto index_of = [&](const Tensor& indices) { return indices(at.n).load(kIndexLoad).to(s64); };
  KdaRow row{at, index_of(p_.t.conv_state_indices), index_of(p_.t.cache_indices),
             index_of(p_.t.intermediate_state_indices)};
  return {row, row.conv_line >= 0 && row.slot >= 0};
}

KdaRow KdaStages::without_windows_unless(const Start& start) {
  const KdaRow& row = start.row;
  return {row, row.conv_line, row.slot, select(start.active, row.snapshot_line, constant(s64, -1))};
}

KdaTile KdaStages::tile(const KdaPlace& place, const Value& index) const {
  int per_head = c_.v / c_.tiling.tile_rows;
  Value of_group = place.rank * c_.tiles_per_block() + index;
  return {place.head * c_.group() + of_group / per_head, of_group % per_head * c_.tiling.tile_rows};
}

KdaShared KdaStages::shared_memory(int slots) const {
  auto matrix = [&](int columns) { return shared(f32, make_row_major(Shape{slots, columns})); };
  auto tail = [&](int count) {
    const Stride& stride = p_.t.conv_state.layout().stride();
    bool taps = stride[2].value().is_static(1);
    return shared(p_.t.conv_state.type(), taps ? Layout(Shape{count, 3}, Stride{3, 1})
                                               : Layout(Shape{count, 3}, Stride{1, count}));
  };
  Tensor qk = shared(f32, make_row_major(Shape{2 * slots, c_.k}));
  Tensor decay = matrix(c_.k), v = matrix(c_.tiling.tile_rows);
  Tensor beta = shared(f32, make_row_major(Shape{slots}));
  Tensor qk_tail = tail(2 * c_.k), v_tail = tail(c_.tiling.tile_rows);
  return {qk, decay, v, beta, slots, qk_tail, v_tail};
}

KdaChannels KdaStages::channels(const Value& first, const Value& active) const {
  return {first, active,
          kda::load_conv_weights(p_.t.conv_weight, p_.t.conv_bias, first, active, access_)};
}

KdaChannels KdaStages::qk_channels(const KdaRow& row, const Value& is_k,
                                   const Value& active) const {
  Value lane = lane_idx() * kLaneChannels;
  Value head = row.head * c_.k + select(is_k, constant(s32, c_.k_channel()), constant(s32, 0));
  return channels(head.assume({kLaneChannels, 0, c_.v_channel()}) + lane, active && lane < c_.k);
}

KdaChannels KdaStages::v_channels(const KdaTile& tile, const Value& row,
                                  const Value& active) const {
  return channels(tile.v_head * c_.v + tile.first + row + c_.v_channel(), active);
}

Fragment KdaStages::input(const KdaRow& row, const KdaChannels& channels,
                          const Value& token) const {
  Value at = row.n * c_.tokens + token.to(s64);
  Value wanted = channels.active && token >= 0 && token < c_.tokens;
  return access_if(access_, wanted, p_.t.mixed_qkv(at, channels.first), kLaneChannels);
}

Inputs KdaStages::inputs(const KdaRow& row, const KdaChannels& channels, const Value& token) const {
  auto at = [&](int tap) { return input(row, channels, token + (tap - kHistory)); };
  Fragment first = at(0), second = at(1), third = at(2);
  return {first, second, third, at(3)};
}

kda::History KdaStages::history(const KdaRow& row, const KdaChannels& channels,
                                const Value& wanted) const {
  return kda::load_history(p_.t.conv_state, row.conv_line, channels.first,
                           channels.active && wanted, access_);
}

Inputs KdaStages::joined(const Value& token, const Inputs& inputs, const kda::History& history) {
  auto at = [&](int tap) {
    Fragment out = inputs[static_cast<std::size_t>(tap)].to(f32).clone();
    for (int column = tap; column < kHistory; ++column) {  // x[token - 3 + tap] is this column
      Value here = token == column - tap;
      for (int i = 0; i < kLaneChannels; ++i)
        out[i] = select(here, history[static_cast<std::size_t>(column)][i], out[i].get());
    }
    return out;
  };
  Fragment first = at(0), second = at(1), third = at(2);
  return {first, second, third, inputs[3].to(f32)};
}

KdaGateInputs KdaStages::gate_inputs(const KdaRow& row, const KdaTile& tile, const Value& token,
                                     const Value& active) const {
  Value column = lane_idx() * kLaneChannels;
  Value inside = active && column < c_.k;
  Fragment a = access_if(access_, inside, p_.t.a(row.n, token, tile.v_head, column), kLaneChannels);
  Fragment dt_bias = access_if(access_, inside, p_.t.dt_bias(tile.v_head, column), kLaneChannels);
  Fragment a_log = access_if(access_, inside, p_.t.A_log(tile.v_head), 1);
  Fragment b = access_if(access_, inside, p_.t.b(row.n, token, tile.v_head), 1);
  return {a, dt_bias, a_log[0], b[0], column, inside};
}

Value KdaStages::last_token(const Value& token) const { return token == c_.tokens - 1; }

void KdaStages::store_window(const KdaRow& row, const Value& token, const KdaInputs& inputs,
                             const Value& active) const {
  if (!p_.t.intermediate_conv_window) return;
  Tensor line = p_.t.intermediate_conv_window->slice(coord({row.snapshot_line, token, _, _}));
  kda::store_window_if(active && inputs.channels.active && row.snapshot_line >= 0, line,
                       inputs.channels.first, inputs.values);
}

void KdaStages::qk(const KdaRow& row, const KdaShared& shared, const KdaToken& at,
                   const Value& is_k, const KdaInputs& inputs) const {
  Fragment y = convolve(inputs.channels.weights, inputs.values);
  Value lane = lane_idx() * kLaneChannels;
  Value scale = select(is_k, constant(f32, 1.0f), p_.scale);
  Value factor = c_.l2norm ? rsqrt_approx(over_warp(sum_of_squares(y)) + 1e-6f) * scale : scale;
  Fragment unit = y * factor;
  Value active = inputs.channels.active;
  Value row_of_slot = at.slot + select(is_k, constant(s32, shared.slots), constant(s32, 0));
  store_if(active, shared.qk(row_of_slot, lane), unit);
  Value mine = at.token % c_.tiling.cluster == row.rank;
  store_window(row, at.token, inputs, mine);
  for (int i = 0; i < c_.group() && p_.t.k_records; ++i) {
    store_if(active && is_k && mine,
             (*p_.t.k_records)(row.n, at.token, row.head * c_.group() + i, lane), unit);
  }
  if (!c_.roll) return;
  Value tail = (lane + select(is_k, constant(s32, c_.k), constant(s32, 0)))
                   .assume({kLaneChannels, 0, 2 * c_.k - kLaneChannels});
  kda::store_window_if(active && last_token(at.token), shared.qk_tail, tail, inputs.values);
}

void KdaStages::v(const KdaRow& row, const KdaShared& shared, const KdaToken& at,
                  const KdaTile& tile, const KdaInputs& v) const {
  Value in_tile = (v.channels.first - (tile.v_head * c_.v + tile.first + c_.v_channel()))
                      .assume({kLaneChannels, 0, c_.tiling.tile_rows - kLaneChannels});
  store_if(v.channels.active, shared.v(at.slot, in_tile), convolve(v.channels.weights, v.values));
  store_window(row, at.token, v, constant(pred, true));
  if (!c_.roll) return;
  kda::store_window_if(v.channels.active && last_token(at.token), shared.v_tail, in_tile, v.values);
}

void KdaStages::gate(const KdaRow& row, const KdaShared& shared, const KdaToken& at,
                     const KdaTile& tile, const KdaGateInputs& inputs) const {
  Fragment u = inputs.a.to(f32) + inputs.dt_bias.to(f32);
  Fragment decay = decay_factors(u, kda::gate_rate(inputs.a_log), c_.safe_gate, p_.gate);
  store_if(inputs.active, shared.decay(at.slot, inputs.column), decay);
  if_(inputs.active && inputs.column == 0,
      [&] { shared.beta(at.slot) = kda::sigmoid_approx(inputs.b.to(f32)); });
  if (!p_.t.decay_records) return;
  store_if(inputs.active && tile.first == 0,
           (*p_.t.decay_records)(row.n, at.token, tile.v_head, inputs.column), decay);
}

void KdaStages::load_state(const kda::StateRows& state, const KdaRow& row,
                           const KdaTile& part) const {
  for (int r = 0; r < state.rows(); ++r) {
    Value at = part.first + kda::row_of_lane() * state.rows() + r;
    state.load(r, p_.t.ssm_states.slice(coord({row.slot, part.v_head, at, _})));
  }
}

kda::TokenVectors KdaStages::token_vectors(const KdaShared& shared, const Value& slot) const {
  kda::Pieces decay = kda::load_pieces(shared.decay(slot, _), c_.k);
  kda::Pieces k = kda::load_pieces(shared.qk(slot + shared.slots, _), c_.k);
  kda::Pieces q = kda::load_pieces(shared.qk(slot, _), c_.k);
  return {decay, k, q, shared.beta(slot)};
}

std::vector<Value> KdaStages::token_values(const KdaShared& shared, const Value& slot,
                                           const Value& first_row) const {
  int rows = c_.tiling.rows_per_lane;
  Fragment values = load(shared.v(slot, first_row + kda::row_of_lane() * rows), rows);
  std::vector<Value> list;
  list.reserve(static_cast<std::size_t>(rows));
  for (int r = 0; r < rows; ++r)
    list.push_back(values[r]);
  return list;
}

void KdaStages::advance(const kda::StateRows& state, const kda::TokenVectors& vectors,
                        const std::vector<Value>& values, const KdaRow& row, const KdaTile& part,
                        const Value& token) const {
  std::vector<kda::RowResult> results = state.advance(vectors, values);
  Value first = part.first + kda::row_of_lane() * state.rows();
  if (p_.t.intermediate_states_buffer) {
    Value line = c_.by_index ? row.snapshot_line : row.n;
    StoreOptions how{.cache = c_.tiling.streaming ? Cache::streaming : Cache::all};
    auto store_rows = [&] {
      for (int r = 0; r < state.rows(); ++r) {
        state.store(
            r,
            p_.t.intermediate_states_buffer->slice(coord({line, token, part.v_head, first + r, _})),
            how);
      }
    };
    if (c_.by_index) if_(line >= 0, store_rows);
    if (!c_.by_index) store_rows();
  }
  Value lane = kda::row_lane();
  auto of_lane = [&](Value kda::RowResult::*member) {
    Var chosen(results[0].*member);
    for (int r = 1; r < state.rows(); ++r)
      chosen = select(lane == r, results[static_cast<std::size_t>(r)].*member, chosen);
    return Value(chosen);
  };
  auto store_of_lane = [&](Value kda::RowResult::*member, const Tensor& to) {
    Value mine = of_lane(member).to(to.type());
    Int offset = to(row.n, token, part.v_head, first + lane).offset();
    Tensor place = to.at_offset(offset, Layout(Shape{1}));  // its address serves all tokens
    if_(lane < state.rows(), [&] { place(0).store(mine); });
  };
  store_of_lane(&kda::RowResult::out, p_.t.out);
  if (p_.t.d_records) store_of_lane(&kda::RowResult::correction, *p_.t.d_records);
}

void KdaStages::copy_tail(const Tail& tail, const Value& line, const KdaPart& part) const {
  bool taps = tail.inputs.layout().stride()[1].value().is_static(1);
  int run = taps ? tail.count * kHistory : tail.count;  // elements next to each other
  int vectors = run / kLaneChannels;
  for_(part.thread, tail.count * kHistory / kLaneChannels, part.threads, [&](const Value& i) {
    Value tap = i / vectors;
    Value at = i % vectors * kLaneChannels;
    Element from = tail.inputs(0, tap), to = p_.t.conv_state(line, tail.channel, tap);
    auto flat = [&](const Element& first) {
      return first.tensor().at_offset(first.offset(), Layout(Shape{run}))(at);
    };
    store(flat(to), load(flat(from), kLaneChannels));
  });
}

void KdaStages::roll_v(const KdaRow& row, const KdaTile& tile, const KdaShared& shared,
                       const KdaPart& part) const {
  copy_tail({shared.v_tail, tile.v_head * c_.v + tile.first + c_.v_channel(), c_.tiling.tile_rows},
            row.conv_line, part);
}

void KdaStages::roll_qk(const KdaRow& row, const KdaShared& shared, const KdaPart& part) const {
  const Stride& stride = shared.qk_tail.layout().stride();
  auto roll = [&](const Value& is_k) {
    Element begin = shared.qk_tail(is_k * c_.k, 0);
    Tensor inputs = shared.qk_tail.at_offset(begin.offset(), Layout(Shape{c_.k, 3}, stride));
    copy_tail({inputs, row.head * c_.k + is_k * c_.k_channel(), c_.k}, row.conv_line, part);
  };
  if (c_.tiling.cluster > 1) return void(if_(row.rank < 2, [&] { roll(row.rank); }));
  roll(constant(s32, 0));
  roll(constant(s32, 1));
}

}  // namespace tilewright
