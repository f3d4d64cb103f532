// SPDX-License-Identifier: Apache-2.0
// quantize and dequantize: rows as e4m3 with decode scales for the tensor, rows or blocks of 128.
#pragma once

#include "kernels/rows/row_tile.h"
#include "tilewright/operator.h"
#include "tilewright/trace.h"

#include <optional>
#include <string>

namespace tilewright {

enum class QuantFormat : std::uint8_t {
  fp8_tensor,  ///< one scale, given
  fp8_token,   ///< one scale a row
  fp8_block    ///< one scale for 128 elements of a row
};
inline constexpr std::int64_t kQuantBlock = 128;

struct QuantizeTensors {
  View x;                     ///< [..., H] of bf16, f16 or f32
  std::optional<View> scale;  ///< fp8_tensor: [1] f32, given
  View q;                     ///< [..., H] of e4m3
  View scales;  ///< [1] (f32, the given one), [T] or [T, H / 128] of f32 or ue8m0 (powers of two)
};

struct QuantizeOptions {
  QuantFormat format = QuantFormat::fp8_token;
  float floor = 1e-10f;  ///< least largest magnitude, so that zeros have a scale
  bool exact = true;     ///< divides by the scale; else multiplies by its reciprocal
};

/// How elements are divided by their scale. The last two give the first one's quotients.
enum class Division : std::uint8_t {
  exact,      ///< an instruction sequence for any operands
  corrected,  ///< reciprocal, then two corrections: scales of 2^-92 and more
  product     ///< by the reciprocal: powers of two, and `exact=false`
};

/// The specialisation besides the facts of the arguments.
struct QuantizeConfig {
  QuantFormat format = QuantFormat::fp8_token;
  Division division = Division::exact;
  bool power_of_two = false;   ///< scales are ue8m0
  bool wide_index = false;     ///< groups are counted in s64
  std::int64_t h = 0;          ///< elements of a row
  std::int64_t group = 0;      ///< elements under one scale
  int vector_elems = 8;        ///< of one access
  int threads_per_group = 16;  ///< a power of two
  int accesses = 1;            ///< of a thread in a group, held in registers
  int groups_per_block = 8;    ///< more than one only where a group takes a warp or less
  friend bool operator==(const QuantizeConfig&, const QuantizeConfig&) = default;
  int threads() const { return threads_per_group * groups_per_block; }
};

inline constexpr int kMaxQuantizeAccesses = 8;  // of a thread, all held in registers
/// Tuned: threads, accesses and groups of a block. The order of a maximum does not matter.
void choose_threads(QuantizeConfig& config, const DeviceProperties& device, const View& x);

struct QuantizePlan {
  QuantizeConfig config;
  QuantizeOptions options;
  QuantizeTensors tensors;  ///< folded; scales as [T, groups of a row]
  TensorArg x_arg, scale_arg, q_arg, scales_arg;
  LaunchConfig launch;

  std::string key() const;
  Traced trace(ptx::Target target) const;
  Parameters parameters() const;
};
QuantizePlan plan_quantize(const DeviceProperties& device, const QuantizeTensors& tensors,
                           const QuantizeOptions& options = {}, SourceLoc at = SourceLoc::here());
/// Quantises on the stream. Allocates nothing on the device and does not wait.
void quantize(const Stream& stream, const QuantizeTensors& tensors,
              const QuantizeOptions& options = {}, SourceLoc at = SourceLoc::here());

struct DequantizeTensors {
  View q;       ///< [..., H] of e4m3
  View scales;  ///< [1], [T] or [T, H / 128] of f32 or ue8m0
  View y;       ///< [..., H] of bf16, f16 or f32
};

struct DequantizePlan {
  QuantFormat format = QuantFormat::fp8_token;
  bool power_of_two = false;
  rows::RowTile tile;
  DequantizeTensors tensors;  ///< folded; scales as a matrix
  TensorArg q_arg, scales_arg, y_arg;
  LaunchConfig launch;
  std::int64_t tiles_n = 1;

  std::string key() const;
  Traced trace(ptx::Target target) const;
  Parameters parameters() const;
};
DequantizePlan plan_dequantize(const DeviceProperties& device, const DequantizeTensors& tensors,
                               QuantFormat format, SourceLoc at = SourceLoc::here());
/// Tuned.
rows::RowTile choose_dequantize_tile(const DeviceProperties& device, const View& y,
                                     int vector_elems);
/// y = q * scale, rounded once.
void dequantize(const Stream& stream, const DequantizeTensors& tensors, QuantFormat format,
                SourceLoc at = SourceLoc::here());

const Operator& quantize_operator();
const Operator& dequantize_operator();

}  // namespace tilewright
