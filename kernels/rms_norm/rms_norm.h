// SPDX-License-Identifier: Apache-2.0
// rms_norm: y = x / sqrt(mean(x^2) + eps) * (w + weight_bias), row by row.
#pragma once

#include "tilewright/device.h"
#include "tilewright/kernel.h"
#include "tilewright/operator.h"
#include "tilewright/trace.h"
#include "tilewright/view.h"

#include <optional>

namespace tilewright {

/// All of shape [..., H] folded to [T, H], but w [H] and rstd [T].
struct RmsNormTensors {
  View x;                    ///< bf16, f16 or f32
  std::optional<View> w;     ///< of x's type or f32; absent: 1
  View y;                    ///< of x's type or f32; may be x
  std::optional<View> rstd;  ///< f32: 1 / sqrt(mean(x^2) + eps)
};

enum class WeightOrder : std::uint8_t {
  last,           ///< round once, after the weight
  after_rounding  ///< round x / rms to x's type first, as HF's Llama does
};

struct RmsNormOptions {
  float eps = 1e-6f;         ///< finite, at least 0
  float weight_bias = 0.0f;  ///< added to w in f32: 1 for Gemma
  WeightOrder order = WeightOrder::last;
  std::int64_t partial = 0;  ///< the mean is over the first `partial` elements; 0: all
};

/// The specialisation besides the facts of the arguments.
struct RmsNormConfig {
  std::int64_t h = 0;
  std::int64_t partial = 0;  ///< elements under the mean
  int vector_elems = 8;      ///< elements of one access
  int threads_per_row = 128;
  int vectors = 1;         ///< accesses of a thread in a row held in registers
  int rows_per_block = 1;  ///< more than one only where a row takes a warp or less
  bool looped = false;     ///< rows too long for registers are read twice
  bool has_bias = false;
  WeightOrder order = WeightOrder::last;
  friend bool operator==(const RmsNormConfig&, const RmsNormConfig&) = default;
  int threads() const { return threads_per_row * rows_per_block; }
};
std::string to_string(const RmsNormConfig& config);

struct RmsNormPlan {
  RmsNormConfig config;
  RmsNormTensors tensors;  ///< folded to rank 2 (w, rstd: rank 1)
  TensorArg x_arg, w_arg, y_arg, rstd_arg;
  RmsNormOptions options;
  LaunchConfig launch;

  std::string key() const;
  Traced trace(ptx::Target target) const;
  Parameters parameters() const;
};

/// Checks the arguments and chooses the configuration. The order of a row's sum depends on H and
/// types alone, so that a row's result does not depend on the other rows.
RmsNormPlan plan_rms_norm(const DeviceProperties& device, const RmsNormTensors& tensors,
                          const RmsNormOptions& options = {}, SourceLoc at = SourceLoc::here());
/// The same with a configuration given, for measurements.
RmsNormPlan plan_rms_norm(const RmsNormTensors& tensors, const RmsNormOptions& options,
                          const RmsNormConfig& config, SourceLoc at = SourceLoc::here());

/// Normalises on the stream. Allocates nothing on the device and does not wait.
void rms_norm(const Stream& stream, const RmsNormTensors& tensors,
              const RmsNormOptions& options = {}, SourceLoc at = SourceLoc::here());
/// The same, specialised and checked once for many launches.
PreparedLaunch prepare_rms_norm(const Device& device, const RmsNormPlan& plan,
                                SourceLoc at = SourceLoc::here());

const Operator& rms_norm_operator();

}  // namespace tilewright
