// SPDX-License-Identifier: Apache-2.0
// large_batch of kda_conv_verify: a block prepares all tokens, then its warps have rows of the
// state.
#include "kernels/kda_conv_verify/verify_kernel.h"

#include <optional>
#include <utility>
#include <vector>

namespace tilewright {
namespace {

/// Eight warps: all of them convolve, then each has its rows of the state.
class LargeBatch : public KdaConvVerifyKernel {
 public:
  using KdaConvVerifyKernel::KdaConvVerifyKernel;

  void run() {
    if (fetches()) fetch();
    KdaStages::Start start = begin([&](const KdaRow& of) {
      if (!c_.tiling.eager || !one_tile()) return;
      early_.emplace(begin_inputs(stages_, of, stages_.tile(of, constant(s32, 0)), true));
      if (!leaves_late()) return;
      load_histories(stages_, guess_->row, *early_, guess_->active);
      if (!has_early_state()) return;
      early_state_.emplace(c_.tiling.rows_per_lane, c_.k);
      KdaTile tile = stages_.tile(of, constant(s32, 0));
      if_(guess_->active, [&] { load_rows(*early_state_, guess_->row, tile); });
    });
    if (!leaves_late()) leave_unless(start.active);
    KdaRow row = leaves_late() ? KdaStages::without_windows_unless(start) : start.row;
    active_.emplace(start.active);
    KdaShared shared = stages_.shared_memory(chunk_tokens());
    bool qk_once = c_.tiles_per_block() > 1 && chunks() == 1;  // they serve all tiles
    if (qk_once) {
      convolve_qk(row, shared, constant(s32, 0));
      barrier();
      history_read(messenger());
    }
    for_tiles([&](const Value& index) {
      KdaTile tile = stages_.tile(row, index);
      if (chunks() == 1) {
        run_tile(row, shared, tile, !qk_once);
      } else {
        run_chunks(row, shared, tile);
      }
      if (c_.roll && !has_spare_warp()) stages_.roll_v(row, tile, shared, block_part());
    });
    if (chunks() > 1) history_read(messenger());
    if (has_spare_warp()) {
      if_(warp_idx() != last_warp(), [&] { wait_for_history(); });
      return;
    }
    wait_for_history();
    if (c_.roll) stages_.roll_qk(row, shared, half_turned(block_part()));
  }

 private:
  /// A token of the chunk: where it is in shared memory, and in its row.
  struct Slot {
    Value slot, token, active;
  };
  /// The loads of a convolution.
  struct ConvWork {
    Slot at;
    KdaChannels channels;
    kda::Inputs inputs;
    std::optional<kda::History> history = {};
  };
  /// A warp's tokens, which follow one another: they share weights, inputs and history.
  struct QkWork {
    Value is_k;
    std::vector<ConvWork> tokens;
  };
  struct TileWork {
    Slot gate_at;
    KdaGateInputs gate;
    ConvWork v;
  };

  /// What needs no index.
  struct EarlyLoads {
    std::optional<QkWork> qk;
    TileWork tile;
  };
  EarlyLoads begin_inputs(const KdaStages& stages, const KdaRow& row, const KdaTile& tile,
                          bool with_qk) const {
    Value first_token = constant(s32, 0);
    std::optional<QkWork> qk;
    if (with_qk) qk.emplace(begin_qk(stages, row, first_token));
    return {std::move(qk), begin_tile(stages, row, tile, first_token)};
  }

  /// What the lanes will load, with the addresses for it, before anything may be read.
  void fetch() {
    if (runs_ahead()) grid_dependency_launch();
    KdaStages stages = stages_.fetching();
    KdaRow row = stages.row_without_indices();
    KdaTile tile = stages.tile(row, constant(s32, 0));
    stages.fetch_indices(row);
    EarlyLoads loads = begin_inputs(stages, row, tile, true);
    if (c_.tiling.fetch == KdaFetch::inputs) return;
    guess_.emplace(stages.guess(row));
    if_(guess_->active, [&] {
      load_histories(stages, guess_->row, loads, constant(pred, true));
      if_(warp_idx() == last_warp(), [&] { stages.fetch_state(guess_->row, tile); });
    });
  }

  /// The history is loaded by the guessed indices, before the indices are there; what depends on
  /// them waits until both are.
  bool leaves_late() const {
    return guess_ && c_.tiling.eager && !is_tight() && stages_.writes_no_records();
  }
  /// The state, too, is loaded by the guessed indices, with all else: there are registers for it.
  bool has_early_state() const {
    return c_.tiling.guesses_state && leaves_late() && has_room() &&
           c_.tiling.tile_rows == c_.tiling.pass_rows();
  }
  /// Of registers, a thread.
  bool has_room() const {
    return c_.tiling.blocks_per_sm == 1 && c_.tiling.warps <= (c_.tiling.rows_per_lane > 2 ? 8 : 9);
  }
  /// In registers, where two blocks are to fit a multiprocessor: the state comes late.
  bool is_tight() const { return c_.tiling.blocks_per_sm > 1 && warp_tokens() > 1; }

  Slot slot_of(const Value& slot, const Value& first_token) const {
    Value token = first_token + slot;
    return {slot, token, slot < chunk_tokens() && token < c_.tokens};
  }
  /// Of q or k, a warp; even warps have q, odd ones k.
  int warp_tokens() const {
    int pairs = c_.tiling.warps / 2;
    return (chunk_tokens() + pairs - 1) / pairs;
  }
  /// Warps that have some, unless all do.
  int busier_warps() const {
    int with_tokens = 2 * ((chunk_tokens() + warp_tokens() - 1) / warp_tokens());
    return with_tokens % c_.tiling.warps;
  }
  /// Counts warps from the first on that has none, or from `beyond` further on.
  Value shifted_warp(int beyond = 0) const {
    int warps = c_.tiling.warps;
    return (warp_idx() + (2 * warps - busier_warps() - beyond)) % warps;
  }
  /// Where v begins: behind the warps of the gates, if it need not be one of the busier ones then.
  int first_v_warp() const {
    int v_warps = (chunk_tokens() * c_.tiling.tile_rows / kda::kLaneChannels + 31) / 32;
    int others = c_.tiling.warps - busier_warps();
    return std::clamp(others - v_warps, 0, std::min(chunk_tokens(), c_.tiling.warps - 1));
  }
  int warp_rows() const { return c_.tiling.rows_per_lane * kda::kWarpRows; }
  int last_warp() const { return c_.tiling.warps - 1; }
  int row_warps() const { return c_.tiling.pass_rows() / warp_rows(); }
  /// One without rows, or without windows: its fence waits for what it has stored, and its rows
  /// wait for the fence.
  Value messenger() const {
    if (has_spare_warp()) return constant(s32, last_warp());
    int pairs = (chunk_tokens() + warp_tokens() - 1) / warp_tokens();
    Value rank = block_idx().x % c_.tiling.cluster;
    return (rank / warp_tokens() + 1) % pairs * 2 + 1;
  }
  /// The last warp has no rows: it rolls conv_state while the others advance.
  bool has_spare_warp() const {
    return c_.roll && row_warps() < c_.tiling.warps && c_.tiles_per_block() == 1 &&
           c_.tiling.tile_rows == c_.tiling.pass_rows() && chunks() == 1;
  }
  KdaPart block_part() const { return {linear_thread_idx(), c_.tiling.warps * 32}; }
  /// Other warps come first: those that have rolled nothing yet.
  static KdaPart half_turned(const KdaPart& part) {
    return {(part.thread + part.threads / 2) % part.threads, part.threads};
  }
  Value warp_row() const { return warp_idx() * warp_rows(); }
  /// All warps, unless the tile is small.
  template <class Body>
  void with_rows(Body&& body) const {
    if_(row_warps() == c_.tiling.warps ? constant(pred, true) : warp_idx() < row_warps(), body);
  }

  QkWork begin_qk(const KdaStages& stages, const KdaRow& row, const Value& first_token) const {
    Value is_k = warp_idx() % 2 == 1;
    Value first_slot = warp_idx() / 2 * warp_tokens();
    Slot at = slot_of(first_slot, first_token);
    KdaChannels channels = stages.qk_channels(row, is_k, at.active);
    QkWork work{is_k, {{at, channels, stages.inputs(row, channels, at.token)}}};
    for (int i = 1; i < warp_tokens(); ++i) {
      kda::Inputs before = work.tokens.back().inputs;
      Slot next = slot_of(first_slot + i, first_token);
      Fragment newest = stages.input(row, channels, next.token);
      work.tokens.push_back({next, channels, {before[1], before[2], before[3], newest}});
    }
    return work;
  }

  static void load_history(const KdaStages& stages, const KdaRow& row, ConvWork& work,
                           const Value& active) {
    Value wanted = work.at.token < kda::kHistory && active;
    work.history.emplace(stages.history(row, work.channels, wanted));
  }
  static void load_history(const KdaStages& stages, const KdaRow& row, QkWork& work,
                           const Value& active) {
    load_history(stages, row, work.tokens.front(), active);
    for (ConvWork& each : work.tokens)
      each.history = work.tokens.front().history;
  }
  static void load_histories(const KdaStages& stages, const KdaRow& row, EarlyLoads& loads,
                             const Value& active) {
    if (loads.qk) load_history(stages, row, *loads.qk, active);
    load_history(stages, row, loads.tile.v, active);
  }
  /// Where the guess was another line.
  void correct_histories(const KdaRow& row, const EarlyLoads& loads) const {
    auto assign = [](const ConvWork& to, const ConvWork& from) {
      for (std::size_t i = 0; i < kda::kHistory; ++i)
        (*to.history)[i].assign((*from.history)[i]);
    };
    if_(row.conv_line != guess_->row.conv_line || !guess_->active, [&] {
      EarlyLoads right = loads;
      load_histories(stages_, row, right, *active_);
      assign(loads.qk->tokens.front(), right.qk->tokens.front());
      assign(loads.tile.v, right.tile.v);
    });
  }
  static KdaInputs inputs_of(const ConvWork& work) {
    return {work.channels, KdaStages::joined(work.at.token, work.inputs, *work.history)};
  }

  void finish_qk(const KdaRow& row, const KdaShared& shared, const QkWork& work) const {
    for (const ConvWork& conv : work.tokens) {
      if_(conv.at.active, [&] {
        stages_.qk(row, shared, {conv.at.slot, conv.at.token}, work.is_k, inputs_of(conv));
      });
    }
  }

  void convolve_qk(const KdaRow& row, const KdaShared& shared, const Value& first_token) const {
    QkWork work = begin_qk(stages_, row, first_token);
    load_history(stages_, row, work, constant(pred, true));
    finish_qk(row, shared, work);
  }

  TileWork begin_tile(const KdaStages& stages, const KdaRow& row, const KdaTile& tile,
                      const Value& first_token) const {
    Slot gate_at = slot_of(shifted_warp(), first_token);
    KdaGateInputs gate = stages.gate_inputs(row, tile, gate_at.token, gate_at.active);
    int lanes = c_.tiling.tile_rows / kda::kLaneChannels;  // of a token
    Value lane = shifted_warp(first_v_warp()) * 32 + lane_idx();
    Slot v_at = slot_of(lane / lanes, first_token);
    KdaChannels v = stages.v_channels(tile, lane % lanes * kda::kLaneChannels, v_at.active);
    return {gate_at, gate, {v_at, v, stages.inputs(row, v, v_at.token)}};
  }

  void finish_gate(const KdaRow& row, const KdaShared& shared, const KdaTile& tile,
                   const TileWork& work) const {
    if_(work.gate_at.active, [&] {
      stages_.gate(row, shared, {work.gate_at.slot, work.gate_at.token}, tile, work.gate);
    });
  }

  void finish_v(const KdaRow& row, const KdaShared& shared, const KdaTile& tile,
                const TileWork& work) const {
    if_(work.v.at.active, [&] {  // which spares most warps a convolution
      stages_.v(row, shared, {work.v.at.slot, work.v.at.token}, tile, inputs_of(work.v));
    });
  }

  void convolve_tile(const KdaRow& row, const KdaShared& shared, const KdaTile& tile,
                     const Value& first_token) const {
    TileWork work = begin_tile(stages_, row, tile, first_token);
    load_history(stages_, row, work.v, constant(pred, true));
    finish_gate(row, shared, tile, work);
    finish_v(row, shared, tile, work);
  }

  void load_rows(const kda::StateRows& state, const KdaRow& row, const KdaTile& tile) const {
    with_rows([&] { stages_.load_state(state, row, part_of(tile, warp_row())); });
  }

  /// All tokens in shared memory.
  void run_tile(const KdaRow& row, const KdaShared& shared, const KdaTile& tile,
                bool with_qk) const {
    kda::StateRows state =
        early_state_ ? *early_state_ : kda::StateRows(c_.tiling.rows_per_lane, c_.k);
    bool one_pass = c_.tiling.tile_rows == c_.tiling.pass_rows();
    prepare_tile(row, shared, tile, with_qk, one_pass ? &state : nullptr);
    barrier();
    if (leaves_late()) leave_unless(*active_);
    if (with_qk) history_read(messenger());
    if (has_spare_warp()) {
      if_(warp_idx() == last_warp(), [&] { roll(row, shared, tile); });
    }
    if (one_pass) {
      return with_rows([&] { advance_all(state, row, shared, tile, warp_row()); });
    }
    for_(c_.tiling.tile_rows / c_.tiling.pass_rows(), [&](const Value& pass) {
      Value first_row = pass * c_.tiling.pass_rows() + warp_row();
      stages_.load_state(state, row, part_of(tile, first_row));
      advance_all(state, row, shared, tile, first_row);
    });
  }

  void roll(const KdaRow& row, const KdaShared& shared, const KdaTile& tile) const {
    KdaPart part{lane_idx(), 32};
    stages_.roll_v(row, tile, shared, part);
    wait_for_history();
    stages_.roll_qk(row, shared, part);
  }

  /// Where latency counts, all loads of the block are under way before the first result is needed;
  /// where bandwidth does, registers are kept low instead.
  void prepare_tile(const KdaRow& row, const KdaShared& shared, const KdaTile& tile, bool with_qk,
                    const kda::StateRows* state) const {
    Value first_token = constant(s32, 0);
    auto load_state = [&] {
      if (state == nullptr) return;
      auto load = [&] { load_rows(*state, row, tile); };
      if (!leaves_late()) return load();
      if (!early_state_) return void(if_(*active_, load));
      if_(*active_ && (row.slot != guess_->row.slot || !guess_->active), load);
    };
    if (!c_.tiling.eager) {
      if (with_qk) convolve_qk(row, shared, first_token);
      convolve_tile(row, shared, tile, first_token);
      return load_state();
    }
    EarlyLoads loads = early_ ? *early_ : begin_inputs(stages_, row, tile, with_qk);
    const bool late = leaves_late();
    if (!late && !is_tight()) load_state();
    if (!late) load_histories(stages_, row, loads, constant(pred, true));
    finish_gate(row, shared, tile, loads.tile);  // needs no history, which is still on its way
    if (late) {
      correct_histories(row, loads);
      load_state();
    }
    if (with_qk) finish_qk(row, shared, *loads.qk);
    if (is_tight()) load_state();
    finish_v(row, shared, tile, loads.tile);
  }

  /// A token's part of shared memory, in registers.
  struct TokenLoads {
    kda::TokenVectors vectors;
    std::vector<Value> values;
  };

  /// A token's stores stay in front of the next token's computation, since the memory takes them
  /// meanwhile: without the barrier ptxas puts all tokens' stores off to the end.
  void advance_all(const kda::StateRows& state, const KdaRow& row, const KdaShared& shared,
                   const KdaTile& tile, const Value& first_row) const {
    auto load = [&](int token) {
      Value slot = constant(s32, token);
      return TokenLoads{stages_.token_vectors(shared, slot),
                        stages_.token_values(shared, slot, first_row)};
    };
    std::optional<TokenLoads> next;
    for (int token = 0; token < c_.tokens; ++token) {
      TokenLoads loads = next ? *next : load(token);
      const bool last = token + 1 == c_.tokens;
      next.reset();
      if (!last && has_room()) next.emplace(load(token + 1));
      stages_.advance(state, loads.vectors, loads.values, row, part_of(tile, first_row),
                      constant(s32, token));
      if (!last) warp_barrier();
      if (c_.tiling.in_step) barrier();
    }
  }

  /// More tokens than shared memory holds: the state stays in registers. Pre: one pass.
  void run_chunks(const KdaRow& row, const KdaShared& shared, const KdaTile& tile) const {
    kda::StateRows state(c_.tiling.rows_per_lane, c_.k);
    load_rows(state, row, tile);
    for_(chunks(), [&](const Value& chunk) {
      Value first_token = chunk * kKdaChunk;
      convolve_qk(row, shared, first_token);
      convolve_tile(row, shared, tile, first_token);
      barrier();
      with_rows([&] {
        for_(min(c_.tokens - first_token, kKdaChunk), [&](const Value& slot) {
          stages_.advance(state, stages_.token_vectors(shared, slot),
                          stages_.token_values(shared, slot, warp_row()), row,
                          part_of(tile, warp_row()), first_token + slot);
        });
      });
      barrier();
    });
  }

  std::optional<EarlyLoads> early_;
  std::optional<kda::StateRows> early_state_;
  std::optional<KdaStages::Start> guess_;  // of the indices, before the wait
  std::optional<Value> active_;
};

}  // namespace

void trace_large_batch(const KdaConvVerifyConfig& config,
                       const KdaConvVerifyParameters& parameters) {
  LargeBatch(config, parameters).run();
}

}  // namespace tilewright
