// SPDX-License-Identifier: Apache-2.0
// What both variants of kda_conv_verify do to a token before the recurrence, on the device.
#pragma once

#include "kernels/kda/delta_rule.h"
#include "kernels/kda/short_conv.h"
#include "kernels/kda_conv_verify/kda_conv_verify.h"

namespace tilewright {

/// The kernel's parameters.
struct KdaConvVerifyParameters {
  KdaConvVerifyArguments<Tensor> t;
  Value scale;
  kda::GateParameters gate;
};

/// The request and query head of a cluster.
struct KdaPlace {
  Value n, head;  ///< s64, s32
  Value rank;     ///< of the block among those that share the head
};
/// The same with the indices of its row.
struct KdaRow : KdaPlace {
  Value conv_line, slot, snapshot_line;  ///< s64
};

/// A part of a value head's state: `rows` from `first` on.
struct KdaTile {
  Value v_head;  ///< s32
  Value first;   ///< s32
};

/// The tile's rows from `row` on.
inline KdaTile part_of(const KdaTile& tile, const Value& row) {
  return {tile.v_head, tile.first + row};
}

/// Shared memory of a block: what tokens do to the state, each in a slot, and the channels' last
/// inputs.
struct KdaShared {
  Tensor qk;     ///< (2 slots, K): q of all slots, then k
  Tensor decay;  ///< (slots, K)
  Tensor v;      ///< (slots, tile rows)
  Tensor beta;   ///< (slots)
  int slots;
  Tensor qk_tail;  ///< (2 K, 3): the head's q, then k; in conv_state's layout
  Tensor v_tail;   ///< (tile rows, 3)
};

/// Neighbouring channels of a lane, with their weights.
struct KdaChannels {
  Value first;   ///< channel of the packed row
  Value active;  ///< the lane has channels
  kda::ConvWeights weights;
};

/// Channels with their inputs at a token and the three before it.
struct KdaInputs {
  KdaChannels channels;
  kda::Inputs values;
};

/// A token's place in shared memory, and in its row.
struct KdaToken {
  Value slot, token;
};

/// Threads that share a copy: `thread` of so many.
struct KdaPart {
  Value thread;
  int threads;
};

/// What one token's gates need, as loaded: four key channels a lane.
struct KdaGateInputs {
  Fragment a, dt_bias;
  Value a_log, b;
  Value column, active;
};

class KdaStages {
 public:
  KdaStages(const KdaConvVerifyConfig& config, const KdaConvVerifyParameters& parameters);

  /// The block's row. `active`: neither slot nor line is negative.
  struct Start {
    KdaRow row;
    Value active;
  };
  Start start() const;
  /// Without a line of snapshots where it is inactive: nothing is written in front of the
  /// recurrence, unless there are records.
  static KdaRow without_windows_unless(const Start& start);
  bool writes_no_records() const { return !p_.t.k_records; }
  KdaTile tile(const KdaPlace& place, const Value& index) const;
  KdaShared shared_memory(int slots) const;

  // ---- While the launch before this one may still be writing what this one reads ----

  /// The same stages, whose loads bring into the L2 cache what they would read: zeros.
  KdaStages fetching() const;
  /// The block's row without what indices say.
  KdaRow row_without_indices() const;
  /// The row with the indices as they are now: they may still become others. `active`: they name a
  /// line of conv_state, and a slot.
  Start guess(const KdaRow& row) const;
  void fetch_indices(const KdaRow& row) const;
  /// By the first lane of a warp. Pre: ssm_states is aligned to 16 bytes.
  void fetch_state(const KdaRow& row, const KdaTile& tile) const;

  // ---- Loads, which the caller orders ----

  KdaChannels channels(const Value& first, const Value& active) const;
  /// A whole warp's channels of the head's q, or k.
  KdaChannels qk_channels(const KdaRow& row, const Value& is_k, const Value& active) const;
  /// Channels of rows `row` to `row` + 3 of the tile.
  KdaChannels v_channels(const KdaTile& tile, const Value& row, const Value& active) const;
  /// The channels' inputs at a token, as stored; 0 before the first token.
  Fragment input(const KdaRow& row, const KdaChannels& channels, const Value& token) const;
  /// The inputs at `token` and the three tokens before it; those from conv_state are 0.
  kda::Inputs inputs(const KdaRow& row, const KdaChannels& channels, const Value& token) const;
  /// Nothing is read where it is not wanted.
  kda::History history(const KdaRow& row, const KdaChannels& channels, const Value& wanted) const;
  /// The inputs in f32, with those from conv_state.
  static kda::Inputs joined(const Value& token, const kda::Inputs& inputs,
                            const kda::History& history);
  KdaGateInputs gate_inputs(const KdaRow& row, const KdaTile& tile, const Value& token,
                            const Value& active) const;

  // ---- Computations, into a slot of shared memory, with the windows that belong to them ----

  /// By a whole warp. Windows are written by one block of the cluster for each token.
  void qk(const KdaRow& row, const KdaShared& shared, const KdaToken& at, const Value& is_k,
          const KdaInputs& inputs) const;
  void v(const KdaRow& row, const KdaShared& shared, const KdaToken& at, const KdaTile& tile,
         const KdaInputs& v) const;
  void gate(const KdaRow& row, const KdaShared& shared, const KdaToken& at, const KdaTile& tile,
            const KdaGateInputs& inputs) const;

  // ---- The recurrence ----

  /// `part` are the rows of the warp: see part_of().
  void load_state(const kda::StateRows& state, const KdaRow& row, const KdaTile& part) const;
  kda::TokenVectors token_vectors(const KdaShared& shared, const Value& slot) const;
  std::vector<Value> token_values(const KdaShared& shared, const Value& slot,
                                  const Value& first_row) const;
  /// One token: outputs and snapshot.
  void advance(const kda::StateRows& state, const kda::TokenVectors& vectors,
               const std::vector<Value>& values, const KdaRow& row, const KdaTile& part,
               const Value& token) const;

  // ---- The roll ----

  /// Writes the tile's last inputs to conv_state. Pre: a barrier since its last token's v().
  void roll_v(const KdaRow& row, const KdaTile& tile, const KdaShared& shared,
              const KdaPart& part) const;
  /// The same of q and k, by the cluster's first two blocks. Pre: the whole cluster has read its
  /// history.
  void roll_qk(const KdaRow& row, const KdaShared& shared, const KdaPart& part) const;

 private:
  void store_window(const KdaRow& row, const Value& token, const KdaInputs& inputs,
                    const Value& active) const;
  KdaPlace place() const;
  /// The channels' last inputs, from `channel` of the line on.
  struct Tail {
    Tensor inputs;
    Value channel;
    int count;
  };
  void copy_tail(const Tail& tail, const Value& line, const KdaPart& part) const;
  Value last_token(const Value& token) const;

  const KdaConvVerifyConfig& c_;
  const KdaConvVerifyParameters& p_;
  kda::Access access_ = kda::Access::load;
};

}  // namespace tilewright
