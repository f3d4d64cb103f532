// SPDX-License-Identifier: Apache-2.0
// One kernel for the norms over rows: rms_norm, fused_add_rms_norm and layer_norm.
#pragma once

#include "kernels/quantize/quant_output.h"
#include "kernels/rows/row_shape.h"
#include "tilewright/device.h"
#include "tilewright/kernel.h"
#include "tilewright/trace.h"
#include "tilewright/view.h"

#include <optional>
#include <string>

namespace tilewright {

enum class Statistics : std::uint8_t {
  mean_square,       ///< z / sqrt(mean(z^2) + eps)
  mean_and_variance  ///< (z - mean(z)) / sqrt(mean((z - mean(z))^2) + eps)
};

enum class WeightOrder : std::uint8_t {
  last,           ///< round once, after the weight
  after_rounding  ///< round x / rms to x's type first, as HF's Llama does
};

enum class SumRounding : std::uint8_t {
  round_first,  ///< the norm reads x + residual as it is stored: equals an add, then a norm
  keep_f32      ///< the norm reads the unrounded sum
};

/// When a row's weights (w, bias, and scales that are inputs) are loaded.
enum class WeightLoads : std::uint8_t {
  free,  ///< before the reduction as written, where the assembler likes as run
  late,  ///< after the reduction, in fewer registers
  early  ///< with the row for certain, so that few rows wait for memory once
};

/// All of shape [..., H] folded to [T, H], but w, bias [H] and rstd [T]. z is x, or
/// x + residual (+ extra) summed left to right in f32.
template <class T>
struct RowNormArguments {
  T x;                                 ///< bf16, f16 or f32
  std::optional<T> w = {};             ///< of x's type or f32; absent: 1
  std::optional<T> y = {};             ///< of x's type or f32; may be x; absent only with q
  std::optional<T> rstd = {};          ///< f32: the factor of each row
  std::optional<T> bias = {};          ///< of x's type or f32; added at the end
  std::optional<T> residual = {};      ///< of x's type or f32
  std::optional<T> extra = {};         ///< of x's type or f32
  std::optional<T> residual_out = {};  ///< z in residual's type; may be residual
  QuantOutputArguments<T> quant = {};
};
using RowNormTensors = RowNormArguments<View>;

struct RowNormOptions {
  float eps = 1e-6f;         ///< finite, at least 0
  float weight_bias = 0.0f;  ///< added to w in f32: 1 for Gemma
  WeightOrder order = WeightOrder::last;
  std::int64_t partial = 0;  ///< the mean is over the first `partial` elements; 0: all
  SumRounding rounding = SumRounding::round_first;
  QuantOutputOptions quant = {};  ///< with q
};

/// The specialisation besides the facts of the arguments.
struct RowNormConfig {
  Statistics statistics = Statistics::mean_square;
  rows::RowShape row;
  std::int64_t partial = 0;  ///< elements under the mean
  bool has_weight_bias = false;
  WeightOrder order = WeightOrder::last;
  SumRounding rounding = SumRounding::round_first;
  bool merged = false;     ///< mean and variance by one reduction of the accesses' own
  bool corrected = false;  ///< the variance by what a rounded mean is off: of sums in f32
  WeightLoads weights = WeightLoads::free;
  int resident = 0;  ///< blocks that a multiprocessor must hold; 0: any
  friend bool operator==(const RowNormConfig&, const RowNormConfig&) = default;
};
std::string to_string(const RowNormConfig& config);

struct RowNormPlan {
  std::string op;
  RowNormConfig config;
  RowNormTensors tensors;  ///< folded to rank 2 (w, bias, rstd: rank 1)
  RowNormArguments<TensorArg> args;
  std::optional<QuantOutputPlan> quant;
  RowNormOptions options;
  std::int64_t row_blocks = 0;  ///< the blocks beyond them pad the scales
  LaunchConfig launch;

  std::string key() const;
  Traced trace(ptx::Target target) const;
  Parameters parameters() const;
};

/// Checks the arguments and chooses the configuration. The order of a row's sum depends on H and
/// the type that is normalised alone, so that a row's result does not depend on the other rows (see
/// row_tree.h), and with a residual equals an add, then a norm. `op`
/// begins messages and names the kernel.
RowNormPlan plan_row_norm(std::string_view op, Statistics statistics,
                          const DeviceProperties& device, const RowNormTensors& tensors,
                          const RowNormOptions& options, SourceLoc at);
/// The plan's kernel with its parameters, for many launches. Pre: at least one row.
PreparedLaunch prepare_row_norm(const Device& device, const RowNormPlan& plan, SourceLoc at);
/// Launches nothing for no rows.
void launch_row_norm(const Stream& stream, const RowNormPlan& plan, SourceLoc at);

}  // namespace tilewright
