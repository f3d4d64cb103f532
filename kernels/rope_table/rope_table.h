// SPDX-License-Identifier: Apache-2.0
// Tables of cosines and sines for rotary embeddings, with the usual extensions of the context.
#pragma once

#include "kernels/rows/rows.h"
#include "tilewright/operator.h"
#include "tilewright/trace.h"

#include <optional>
#include <string>

namespace tilewright {

/// How frequencies are lowered for texts longer than those of the training.
enum class RopeScaling : std::uint8_t { none, linear, dynamic_ntk, llama3, yarn };

/// How position times frequency is rounded before the cosine.
enum class RopeAngle : std::uint8_t {
  f32,  ///< product of two f32 numbers, as checkpoints were trained
  f64   ///< not at all
};

struct RopeTableOptions {
  double theta = 10000;
  RopeScaling scaling = RopeScaling::none;
  RopeAngle angle = RopeAngle::f32;
  double factor = 1;                 ///< context over the trained one, at least 1
  double original_positions = 8192;  ///< of the trained context; read by the last three scalings
  double low_freq_factor = 1;        ///< llama3
  double high_freq_factor = 4;       ///< llama3
  double beta_fast = 32;             ///< yarn: turns within the trained context
  double beta_slow = 1;              ///< yarn
  bool truncate = true;              ///< yarn: the ramp begins and ends at whole frequencies
  std::optional<double> attention =
      {};  ///< yarn: factor of all elements; absent: 0.1 ln(factor) + 1
};

/// Which frequencies are divided by the factor, as weights between 0 and 1.
enum class RopeRamp : std::uint8_t { none, all, of_index, of_frequency };

/// The specialisation besides the facts of the table.
struct RopeTableConfig {
  RopeRamp ramp = RopeRamp::none;
  RopeAngle angle = RopeAngle::f32;
  bool has_magnitude = false;
  bool far = false;         ///< angles may be 2^20 and more
  bool wide_index = false;  ///< threads are counted in s64
  int threads = 128;
  int positions = 16;  ///< of a thread, for one frequency
  friend bool operator==(const RopeTableConfig&, const RopeTableConfig&) = default;
};

/// Numbers of a launch: frequency i is e^(i rate), with what a rounded rate lacks in `rate_rest`;
/// the weight of x, an index or a frequency, is (x - begin) / width.
struct RopeNumbers {
  double rate = -1, rate_rest = 0, factor = 1, begin = 0, width = 1, magnitude = 1;
};

struct RopeTablePlan {
  RopeTableConfig config;
  RopeNumbers numbers;
  View table;
  TensorArg table_arg;
  LaunchConfig launch;

  std::string key() const;
  Traced trace(ptx::Target target) const;
  Parameters parameters() const;
};
RopeTablePlan plan_rope_table(const DeviceProperties& device, const View& cos_sin,
                              const RopeTableOptions& options = {},
                              SourceLoc at = SourceLoc::here());

void launch_rope_table(const Stream& stream, const RopeTablePlan& plan,
                       SourceLoc at = SourceLoc::here());

/// cos_sin [P, R] of f32, bf16 or f16: R / 2 cosines of position times theta^(-2 i / R), then R / 2
/// sines, computed in f64 and rounded to f32, then to the type. Allocates nothing and does not
/// wait.
void rope_table(const Stream& stream, const View& cos_sin, const RopeTableOptions& options = {},
                SourceLoc at = SourceLoc::here());

const Operator& rope_table_operator();

}  // namespace tilewright
