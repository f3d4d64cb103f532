// SPDX-License-Identifier: Apache-2.0
// Codes and scales as the output of another operator: what it takes, checks and launches for them.
#pragma once

#include "kernels/quantize/quantize.h"

#include <optional>
#include <string>

namespace tilewright {

/// What is quantised of an operator's result.
enum class QuantFrom : std::uint8_t {
  f32,        ///< the unrounded result
  via_x_type  ///< the result in x's type: the bits of the operator followed by quantize
};

template <class T>
struct QuantOutputArguments {
  std::optional<T> q = {};       ///< of y's shape, as quantize's; absent: nothing is quantised
  std::optional<T> scales = {};  ///< as quantize's
  std::optional<T> scale = {};   ///< fp8_tensor: [1] f32, the decode scale
  std::optional<T> encode_scale = {};  ///< nvfp4: [1] f32
  std::optional<T> saturated = {};     ///< nvfp4: [1] u32: clipped groups are added to it
};
using QuantOutputTensors = QuantOutputArguments<View>;

struct QuantOutputOptions {
  QuantizeOptions coding;  ///< any format but fp8_block2d
  QuantFrom from = QuantFrom::f32;
};

/// The specialisation besides the facts of the arguments.
struct QuantOutputConfig {
  QuantCoding coding;
  Division division = Division::exact;
  Type rounded = f32;      ///< to this type before anything else
  std::int64_t h = 0;      ///< elements of a row
  std::int64_t group = 0;  ///< elements under one scale
  std::int64_t groups_of_row() const { return rows::ceil_div(h, group); }
  friend bool operator==(const QuantOutputConfig&, const QuantOutputConfig&) = default;
};

struct QuantOutputPlan {
  QuantOutputConfig config;
  QuantOutputTensors tensors;  ///< folded; scales in the modes of their layout
  QuantOutputArguments<TensorArg> args;
  float floor = 0;

  std::string key() const;
  /// As QuantTraceArgs are; `row_blocks` is where the blocks begin that pad the scales.
  void pack_into(Parameters& parameters, std::int64_t row_blocks) const;
  /// Of `threads`, behind those of rows: each writes a word that pads the scales.
  std::int64_t padding_blocks(int threads) const;
};

/// What a trace takes for codes: all absent without a plan.
struct QuantTraceArgs {
  QuantOutputArguments<TensorArg> tensors;
  std::optional<ScalarArg> floor, row_blocks;
};
QuantTraceArgs trace_args(const std::optional<QuantOutputPlan>& plan);

/// Refuses q, scales and saturated that overlap each other, encode_scale, or (q) scale, and scales
/// whose elements do. Pre: q and scales are there.
void check_code_memory(const QuantOutputTensors& tensors, const rows::Caller& caller);

/// Nothing without q. `rows` has q's shape folded to [T, H], and the operator's type; or, as q then
/// does, [E, T, H]: a batch, whose matrices have scales of their own each (fp8_tensor: one for
/// all). Throws Error(user) for what quantize refuses, and for scales that overlap q.
std::optional<QuantOutputPlan> plan_quant_output(const QuantOutputTensors& tensors,
                                                 const QuantOutputOptions& options,
                                                 const View& rows, const rows::Caller& caller);

/// For launches of no rows: they write one thing, the scale of fp8_tensor.
void write_scale_of_no_rows(const Stream& stream, const std::optional<QuantOutputPlan>& plan);

/// Elements of an access at least, where rows have whole ones: enough that a warp holds a group.
inline constexpr int kLeastQuantAccess = 4;

}  // namespace tilewright
