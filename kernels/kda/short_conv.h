// SPDX-License-Identifier: Apache-2.0
// The causal convolution of four taps with SiLU, on the device: four neighbouring channels a lane.
#pragma once

#include "kernels/kda/access.h"

#include <array>
#include <optional>

namespace tilewright::kda {

inline constexpr int kTaps = 4;
inline constexpr int kHistory = kTaps - 1;  ///< earlier inputs of a channel that are kept
inline constexpr int kLaneChannels = 4;     ///< neighbouring channels of a lane

/// Of a lane's channels: inputs at t - 3, t - 2, t - 1 and t, in f32.
using Inputs = std::array<Fragment, kTaps>;
/// Of a lane's channels: the three inputs before the first token, oldest first, in f32.
using History = std::array<Fragment, kHistory>;

/// Weights and bias of a lane's channels, as loaded.
struct ConvWeights {
  Fragment taps;  ///< 4 of the first channel, then of the next
  std::optional<Fragment> bias = {};
};
/// `weight` is [D, 4]; nothing is read where `active` is false.
ConvWeights load_conv_weights(const Tensor& weight, const std::optional<Tensor>& bias,
                              const Value& channel, const Value& active,
                              Access access = Access::load);

/// silu(bias + sum of taps times inputs), rounded to bf16, in f32. The rounding is that of the
/// exact number: where the approximation is too near to a tie, f64 decides.
Fragment convolve(const ConvWeights& weights, const Inputs& inputs);

/// `state` is [lines, D, 3] with taps or channels next to each other in memory.
History load_history(const Tensor& state, const Value& line, const Value& channel,
                     const Value& active, Access access = Access::load);

/// The last three of `inputs` to a line of a pool [lines, D, 3] in either layout.
void store_window_if(const Value& active, const Tensor& line, const Value& channel,
                     const Inputs& inputs);

}  // namespace tilewright::kda
