// SPDX-License-Identifier: Apache-2.0
// Activations of feed-forward layers: y = act(gate) * up, and relu2 with or without a gate.
#pragma once

#include "kernels/quantize/quant_output.h"
#include "kernels/rows/row_shape.h"
#include "kernels/rows/row_tile.h"
#include "tilewright/operator.h"
#include "tilewright/trace.h"

#include <optional>
#include <string>

namespace tilewright {

enum class Activation : std::uint8_t { silu, gelu, gelu_tanh, swigluoai, relu2 };
inline constexpr std::size_t kActivations = 5;

/// Where gate and up lie in a row of x.
enum class GateLayout : std::uint8_t {
  halves,       ///< [gate, up]
  swapped,      ///< [up, gate]
  interleaved,  ///< gate and up alternate
  none          ///< x is the gate and nothing is multiplied
};

constexpr bool in_two_halves(GateLayout layout) {
  return layout == GateLayout::halves || layout == GateLayout::swapped;
}

/// What the limit cuts of the gate; up is cut to [-limit, limit] with both.
enum class ClampGate : std::uint8_t { none, before, after };

/// All of shape [..., N] folded to [T, N]; or of experts, x [E, T, N], y and q [E, T, d], and
/// scales of each expert in the modes that quantize gives to one (fp8_tensor: one scale for all).
struct GatedTensors {
  View x;                               ///< bf16, f16 or f32; N = 2 d, or d without a gate
  std::optional<View> bias = {};        ///< [N] of x's type or f32, added to x in f32
  std::optional<View> row_weight = {};  ///< [T] or [E T] f32: multiplied in before the rounding
  std::optional<View> y = {};           ///< [T, d] of x's type; absent only with quant.q
  QuantOutputTensors quant = {};
  /// Each says that there are experts. Rows from an expert's number on are neither read nor
  /// written.
  std::optional<View> tokens_per_expert = {};  ///< [E] s32; absent: all rows
  std::optional<View> expert_alpha = {};       ///< [E] f32, in place of alpha
  std::optional<View> expert_limit = {};       ///< [E] f32, in place of limit
  bool has_experts() const { return tokens_per_expert || expert_alpha || expert_limit; }
};

struct GatedOptions {
  Activation activation = Activation::silu;
  GateLayout layout = GateLayout::halves;
  float alpha = 1.702f;  ///< of swigluoai
  float limit = 7.0f;    ///< above 0: of swigluoai, and of clamp_gate
  ClampGate clamp_gate = ClampGate::none;
  bool round_act = false;         ///< the activation is rounded to x's type before the product
  QuantOutputOptions quant = {};  ///< with quant.q
};

/// The specialisation besides the facts of the arguments.
struct GatedConfig {
  Activation activation = Activation::silu;
  GateLayout layout = GateLayout::halves;
  ClampGate clamp_gate = ClampGate::none;
  bool round_act = false;
  bool experts = false;  ///< the grid's third dimension counts them
  /// Accesses begin where y is aligned, and read x by shifted words: rows of y begin anywhere.
  bool shifted = false;
  rows::RowTile tile;
  std::optional<rows::RowShape> row = {};  ///< in place of the tile: codes with one scale a row
  int vector_elems() const { return row ? row->vector_elems : tile.vector_elems; }
  int threads() const { return row ? row->threads() : tile.threads; }
  bool has_alpha() const { return activation == Activation::swigluoai; }
  bool has_limit() const { return has_alpha() || clamp_gate != ClampGate::none; }
  friend bool operator==(const GatedConfig&, const GatedConfig&) = default;
};

inline constexpr int kMaxGatedAccesses = 8;  // of a thread in a row, all held in registers

struct GatedPlan {
  GatedConfig config;
  GatedOptions options;
  GatedTensors tensors;  ///< folded, or of experts; x and bias with a mode for gate and up
  TensorArg x_arg;
  std::optional<TensorArg> bias_arg, weight_arg, y_arg, tokens_arg, alpha_arg, limit_arg;
  std::optional<QuantOutputPlan> quant;
  std::int64_t t = 0, d = 0;  ///< of y and q, those of each expert
  std::int64_t experts = 1;
  LaunchConfig launch;
  std::int64_t tile_blocks = 0;  ///< the blocks beyond them pad the scales

  /// Columns of the tiles: d, or what covers it wherever a row begins.
  std::int64_t tile_columns() const;
  /// Numbers that are options; those of experts are tensors.
  bool takes_alpha() const { return config.has_alpha() && !alpha_arg; }
  bool takes_limit() const { return config.has_limit() && !limit_arg; }
  std::string key() const;
  Traced trace(ptx::Target target) const;
  Parameters parameters() const;
};

/// "silu_and_mul", "relu2".
constexpr std::string_view operator_name(Activation activation) {
  switch (activation) {
    case Activation::silu:
      return "silu_and_mul";
    case Activation::gelu:
      return "gelu_and_mul";
    case Activation::gelu_tanh:
      return "gelu_tanh_and_mul";
    case Activation::swigluoai:
      return "swigluoai_and_mul";
    case Activation::relu2:
      return "relu2";
  }
  return "";
}

/// Of a tile's accesses: as wide as they can be, or narrower where that is faster.
enum class AccessWidth : std::uint8_t { exactly, at_most };
/// Tuned: the tile of a matrix of y's, or the threads of a row that is quantised as a whole.
rows::RowTile choose_tile(Activation activation, const DeviceProperties& device, const View& rows,
                          int vector_elems, AccessWidth width);
rows::RowShape choose_row(Activation activation, const DeviceProperties& device, const View& rows,
                          int vector_elems);

/// Checks the arguments and chooses access width and tile.
GatedPlan plan_gated_activation(const DeviceProperties& device, const GatedTensors& tensors,
                                const GatedOptions& options = {}, SourceLoc at = SourceLoc::here());

/// Runs on the stream. Allocates nothing on the device and does not wait.
void gated_activation(const Stream& stream, const GatedTensors& tensors,
                      const GatedOptions& options = {}, SourceLoc at = SourceLoc::here());

const Operator& silu_and_mul_operator();
const Operator& gelu_and_mul_operator();
const Operator& gelu_tanh_and_mul_operator();
const Operator& swigluoai_and_mul_operator();
const Operator& relu2_operator();

}  // namespace tilewright
