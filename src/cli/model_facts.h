// SPDX-License-Identifier: Apache-2.0
// What the shapes of a model's kernels come from.
#pragma once

#include "cli/model_config.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tilewright::cli {

/// Grouped-query attention of one rank.
struct Attention {
  std::int64_t heads, key_heads, head_dim;
  std::int64_t rotary;  ///< elements of a head that turn; 0: none
  bool head_norm;       ///< Q and K are normalised head by head
  bool wide_norm;       ///< Q and K are normalised over all heads of a token
  bool interleaved;     ///< neighbours turn together, not halves
};

/// Attention with latent keys and values (MLA): the part that is no matrix product.
struct LatentAttention {
  std::int64_t heads, rotary;
  std::int64_t query_rank;  ///< 0: queries are not compressed
  std::int64_t key_rank;
  bool turns;  ///< false: no rotation (NoPE)
  bool interleaved;
};

enum class Recurrence : std::uint8_t { kda, gated_delta, lightning };
struct LinearAttention {
  Recurrence kind;
  std::int64_t heads, key_dim, value_heads, value_dim;
};

struct Experts {
  std::int64_t count, chosen, width;
  std::int64_t shared_width;  ///< 0: there are none
  std::string logits;         ///< type
  std::string scoring;
  bool bias;  ///< a correction is added for the choice
  bool renormalize;
  std::int64_t groups, kept_groups;
  std::string scale;
};

/// Activations that are quantised before matrix products.
enum class Activations : std::uint8_t { plain, fp8_block, fp8_token, fp8_tensor, nvfp4 };

struct RotaryTable {
  double theta;
  std::string scaling;  ///< the options of rope_table that say how frequencies are lowered
  std::int64_t positions;
};

struct Model {
  std::string type;  ///< of activations: "bf16"
  std::int64_t hidden;
  std::string eps;
  std::string weight_bias;  ///< of norms: "1" where weights count from 1
  std::string embedding_scale;
  std::string activation;                   ///< the operator
  std::string limit;                        ///< of the activation, empty: it has none
  std::optional<std::int64_t> dense_width;  ///< of layers without experts
  std::optional<Attention> attention;
  std::optional<LatentAttention> latent;
  std::optional<LinearAttention> linear;
  std::optional<Experts> experts;
  std::optional<RotaryTable> rotary;
  Activations activations;
};

/// One of `ranks` equal parts of the model (tensor parallelism). Throws Error(user) for fields that
/// are missing, wrong, or not to be divided.
Model read_model(const ModelConfig& config, std::int64_t ranks);

}  // namespace tilewright::cli
