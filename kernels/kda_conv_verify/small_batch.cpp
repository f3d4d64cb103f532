// SPDX-License-Identifier: Apache-2.0
// small_batch of kda_conv_verify: one warp prepares a token while another applies the one before.
#include "kernels/kda_conv_verify/verify_kernel.h"

#include <array>
#include <vector>

namespace tilewright {
namespace {

/// Two warps: one prepares a token in a buffer of shared memory while the other applies the token
/// before, from the other buffer. They meet once a token, when its buffer is full: the one that
/// prepares has then been told, too, that the other buffer has been read.
class SmallBatch : public KdaConvVerifyKernel {
 public:
  SmallBatch(const KdaConvVerifyConfig& config, const KdaConvVerifyParameters& parameters)
      : KdaConvVerifyKernel(config, parameters), full_{named_barrier(64), named_barrier(64)} {}

  void run() const {
    KdaStages::Start start = begin([](const KdaRow&) {});
    leave_unless(start.active);
    KdaRow row = start.row;
    KdaShared shared = stages_.shared_memory(kBuffers);
    KdaPart part{lane_idx(), 32};
    for_tiles([&](const Value& index) {
      KdaTile tile = stages_.tile(row, index);
      if_(warp_idx() == 0, [&] {
        produce(row, shared, tile);
        if (!c_.roll) return;
        warp_barrier();
        stages_.roll_v(row, tile, shared, part);
      }).else_([&] { consume(row, shared, tile); });
    });
    history_read(constant(s32, 0));
    wait_for_history();
    if (c_.roll) if_(warp_idx() == 0, [&] { stages_.roll_qk(row, shared, part); });
  }

 private:
  static constexpr int kBuffers = 2;

  /// A lane's channels with their inputs from three tokens before the chunk on.
  struct Line {
    KdaChannels channels;
    std::vector<Fragment> inputs;

    KdaInputs at(int token) const {
      auto i = static_cast<std::size_t>(token);
      return {channels, {inputs[i], inputs[i + 1], inputs[i + 2], inputs[i + 3]}};
    }
  };

  /// Pre: the inputs before the first token come with the history.
  Line line_of(const KdaRow& row, const KdaChannels& channels) const {
    kda::History old = stages_.history(row, channels, constant(pred, true));
    Line line{channels, {old[0], old[1], old[2]}};
    for (int i = 0; i < chunk_tokens(); ++i)
      line.inputs.push_back(Fragment(f32, kda::kLaneChannels));
    return line;
  }
  void load_line(const KdaRow& row, const Line& line, const Value& first_token) const {
    for (int i = 0; i < chunk_tokens(); ++i) {
      line.inputs[static_cast<std::size_t>(i) + kda::kHistory].assign(
          stages_.input(row, line.channels, first_token + i).to(f32));
    }
  }
  void keep_history(const Line& line) const {
    for (int i = 0; i < kda::kHistory; ++i) {
      auto at = static_cast<std::size_t>(i);
      line.inputs[at].assign(line.inputs[at + static_cast<std::size_t>(chunk_tokens())]);
    }
  }

  /// `body(Value first_token)` for each chunk; `inside(i)` in it guards token i of the last one.
  template <class Body>
  void for_chunks(Body&& body) const {
    if (chunks() == 1) return body(constant(s32, 0));
    for_(chunks(), [&](const Value& chunk) { body(chunk * kKdaChunk); });
  }
  template <class Body>
  void for_tokens(const Value& first_token, Body&& body) const {
    for (int i = 0; i < chunk_tokens(); ++i)
      if_(first_token + i < c_.tokens, [&] { body(i, first_token + i); });
  }

  void produce(const KdaRow& row, const KdaShared& shared, const KdaTile& tile) const {
    Value all = constant(pred, true);
    Value v_row = lane_idx() * kda::kLaneChannels;
    Value q_only = constant(pred, false), k_only = constant(pred, true);
    Line q = line_of(row, stages_.qk_channels(row, q_only, all));
    Line k = line_of(row, stages_.qk_channels(row, k_only, all));
    Line v = line_of(row, stages_.v_channels(tile, v_row, v_row < c_.tiling.tile_rows));
    for_chunks([&](const Value& first_token) {
      load_line(row, q, first_token);
      load_line(row, k, first_token);
      load_line(row, v, first_token);
      std::vector<KdaGateInputs> gates;
      gates.reserve(static_cast<std::size_t>(chunk_tokens()));
      for (int i = 0; i < chunk_tokens(); ++i) {
        Value token = first_token + i;
        gates.push_back(stages_.gate_inputs(row, tile, token, token < c_.tokens));
      }
      for_tokens(first_token, [&](int i, const Value& token) {
        auto buffer = static_cast<std::size_t>(i % kBuffers);
        Value slot = constant(s32, i % kBuffers);
        stages_.qk(row, shared, {slot, token}, q_only, q.at(i));
        stages_.qk(row, shared, {slot, token}, k_only, k.at(i));
        stages_.v(row, shared, {slot, token}, tile, v.at(i));
        stages_.gate(row, shared, {slot, token}, tile, gates[static_cast<std::size_t>(i)]);
        barrier(full_[buffer]);
      });
      if (chunks() == 1) return;
      keep_history(q);
      keep_history(k);
      keep_history(v);
    });
  }

  void consume(const KdaRow& row, const KdaShared& shared, const KdaTile& tile) const {
    Value first_row = constant(s32, 0);
    kda::StateRows state(c_.tiling.rows_per_lane, c_.k);
    stages_.load_state(state, row, part_of(tile, first_row));
    for_chunks([&](const Value& first_token) {
      for_tokens(first_token, [&](int i, const Value& token) {
        auto buffer = static_cast<std::size_t>(i % kBuffers);
        Value slot = constant(s32, i % kBuffers);
        barrier(full_[buffer]);
        kda::TokenVectors vectors = stages_.token_vectors(shared, slot);
        std::vector<Value> values = stages_.token_values(shared, slot, first_row);
        stages_.advance(state, vectors, values, row, part_of(tile, first_row), token);
      });
    });
  }

  std::array<Group, kBuffers> full_;
};

}  // namespace

void trace_small_batch(const KdaConvVerifyConfig& config,
                       const KdaConvVerifyParameters& parameters) {
  SmallBatch(config, parameters).run();
}

}  // namespace tilewright
