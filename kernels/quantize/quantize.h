// SPDX-License-Identifier: Apache-2.0
// quantize and dequantize: rows as fp8 or fp4 codes with scales for the tensor, rows or groups.
#pragma once

#include "kernels/quantize/group_codes.h"
#include "kernels/rows/row_tile.h"
#include "tilewright/operator.h"
#include "tilewright/trace.h"

#include <optional>
#include <string>

namespace tilewright {

/// Rows [..., H]; or with tokens_per_expert those of experts, x and q [E, T, H], and scales of each
/// expert in the modes that one has alone (fp8_tensor: one scale for all).
struct QuantizeTensors {
  View x;                            ///< [..., H] of bf16, f16 or f32
  std::optional<View> scale;         ///< fp8_tensor: [1] f32; absent: found in two passes
  std::optional<View> encode_scale;  ///< nvfp4: [1] f32, 2688 / the tensor's largest magnitude
  View q;                            ///< [..., H] of e4m3, e5m2 (mxfp8) or e2m1 (fp4)
  /// [1] (f32), [T], [T, G] or the modes of a ScaleLayout; of f32 or ue8m0 (fp8),
  /// ue8m0 (mx) or e4m3 (nvfp4).
  View scales;
  std::optional<View> saturated = {};  ///< nvfp4: [1] u32: clipped groups are added to it
  /// [E] s32: rows from an expert's number on are neither read nor written, nor are their scales.
  std::optional<View> tokens_per_expert = {};
};

struct QuantizeOptions {
  QuantFormat format = QuantFormat::fp8_token;
  float floor = 1e-10f;              ///< fp8: least largest magnitude, so that zeros have a scale
  bool exact = true;                 ///< divides by the scale; else multiplies by its reciprocal
  ScaleRule rule = ScaleRule::ceil;  ///< of mxfp8 and mxfp4
  ScaleLayout layout = ScaleLayout::row;
  std::int64_t group = 128;  ///< fp8_block: elements under one scale: 16, 32, 64, 128 or 256
  Tail tail = Tail::whole;   ///< of rows in groups
  bool pow2_scale = false;   ///< fp8: f32 scales become the power of two at or above
  float scale_ub = QuantCoding::kNoBound;  ///< fp8_token: bounds a row's largest magnitude
};
QuantCoding coding_of(const QuantizeOptions& options, Type element, Type scale_type);

/// The specialisation besides the facts of the arguments.
struct QuantizeConfig {
  QuantCoding coding;
  Division division = Division::exact;
  bool wide_index = false;     ///< groups are counted in s64
  std::int64_t h = 0;          ///< elements of a row
  std::int64_t group = 0;      ///< elements under one scale; fp8_tensor: that threads share
  int vector_elems = 8;        ///< of one access
  int threads_per_group = 16;  ///< a power of two
  int accesses = 1;            ///< of a thread in a group, held in registers
  bool looped = false;         ///< rows too long for registers are read twice, `accesses` at once
  int groups_per_block = 8;    ///< more than one only where a group takes a warp or less
  int turns = 1;     ///< groups that a thread takes, all loaded before the first; likewise
  int resident = 0;  ///< blocks that a multiprocessor must hold (fp8_block2d); 0: any
  friend bool operator==(const QuantizeConfig&, const QuantizeConfig&) = default;
  int threads() const { return threads_per_group * groups_per_block; }
  int groups_of_block() const { return groups_per_block * turns; }
  std::int64_t groups_of_row() const { return rows::ceil_div(h, group); }
  /// Whether blocks behind those of groups pad the scales.
  bool pads_apart() const {
    return coding.layout != ScaleLayout::row && coding.format != QuantFormat::fp8_block2d;
  }
};

inline constexpr int kMaxQuantizeAccesses = 8;  // of a thread, all held in registers
/// Tuned: threads, accesses, groups and turns of a block. The order of a maximum does not matter.
void choose_threads(QuantizeConfig& config, const DeviceProperties& device, const View& x);

/// Tuned: threads of a block, a power of two from 256 on, and how many are resident.
void choose_block2d_threads(QuantizeConfig& config, const DeviceProperties& device, const View& x);

struct QuantizePlan {
  QuantizeConfig config;
  QuantizeOptions options;
  QuantizeTensors tensors;  ///< folded, or of experts; scales in the modes of their layout
  TensorArg x_arg, q_arg, scales_arg;
  std::optional<TensorArg> given_arg, saturated_arg, tokens_arg;
  bool scale_is_found = false;    ///< in `scales`, by a launch before this one
  std::int64_t group_blocks = 0;  ///< the blocks beyond them write the rows that pad the scales
  LaunchConfig launch;

  /// Whether the grid's third dimension counts experts.
  bool experts() const { return tokens_arg.has_value(); }
  /// The tensor of one number that is given, if one is.
  const std::optional<View>& given() const {
    return tensors.encode_scale ? tensors.encode_scale : tensors.scale;
  }

  std::string key() const;
  Traced trace(ptx::Target target) const;
  Parameters parameters() const;
};
QuantizePlan plan_quantize(const DeviceProperties& device, const QuantizeTensors& tensors,
                           const QuantizeOptions& options = {}, SourceLoc at = SourceLoc::here());
/// Of quantize(): 0 but for fp8_tensor without a scale.
std::int64_t quantize_workspace_bytes(QuantFormat format, bool has_scale);
/// Quantises on the stream. Allocates nothing on the device and does not wait.
void quantize(const Stream& stream, const QuantizeTensors& tensors,
              const QuantizeOptions& options = {}, const Workspace& workspace = {},
              SourceLoc at = SourceLoc::here());

struct DequantizeTensors {
  View q;                                      ///< [..., H], as quantize's
  View scales;                                 ///< as quantize's
  std::optional<View> decode_scale;            ///< nvfp4: [1] f32, 1 / encode_scale
  View y;                                      ///< [..., H] of bf16, f16 or f32
  std::optional<View> tokens_per_expert = {};  ///< as quantize's
};

struct DequantizeOptions {
  QuantFormat format = QuantFormat::fp8_token;
  ScaleLayout layout = ScaleLayout::row;
  std::int64_t group = 128;
  Tail tail = Tail::whole;
};

struct DequantizePlan {
  QuantCoding coding;
  rows::RowTile tile;
  DequantizeTensors tensors;  ///< folded, or of experts; scales in the modes of their layout
  TensorArg q_arg, scales_arg, y_arg;
  std::optional<TensorArg> decode_arg, tokens_arg;
  LaunchConfig launch;
  bool flat = false;  ///< rows of one access: nothing of the tensors lies between their elements

  std::string key() const;
  Traced trace(ptx::Target target) const;
  Parameters parameters() const;

 private:
  Traced trace_flat(const TraceOptions& options) const;
  Traced trace_rows(const TraceOptions& options) const;
};
DequantizePlan plan_dequantize(const DeviceProperties& device, const DequantizeTensors& tensors,
                               const DequantizeOptions& options = {},
                               SourceLoc at = SourceLoc::here());
/// Tuned.
rows::RowTile choose_dequantize_tile(const DeviceProperties& device, const View& y, Type code,
                                     int vector_elems);
/// y = q * scale (* decode_scale).
void dequantize(const Stream& stream, const DequantizeTensors& tensors,
                const DequantizeOptions& options = {}, SourceLoc at = SourceLoc::here());

const Operator& quantize_operator();
const Operator& dequantize_operator();

}  // namespace tilewright
