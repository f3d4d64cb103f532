// SPDX-License-Identifier: Apache-2.0
// pooling: one vector of each packed sequence, its mean, last or first row, normalised on request.
#pragma once

#include "kernels/rows/row_shape.h"
#include "tilewright/operator.h"
#include "tilewright/trace.h"

#include <optional>
#include <string>

namespace tilewright {

enum class PoolingMode : std::uint8_t { mean, last, cls };

struct PoolingTensors {
  View hidden;  ///< [T, H] bf16, f16 or f32
  /// [B + 1] s32: where sequences begin; ascending, at most T. In its place: lengths.
  std::optional<View> cu_seqlens = {};
  /// [B] s32: rows of the sequences, one behind the other, at most T in all; below 0 is none.
  std::optional<View> lengths = {};
  std::optional<View> mask = {};   ///< [T] u8 or s32, mean alone: rows with 0 are left out
  View out;                        ///< [B, dims] f32 or hidden's type
  std::optional<View> means = {};  ///< [B, dims] f32, scratch: normalised means in another type
};

struct PoolingOptions {
  PoolingMode mode = PoolingMode::mean;
  bool normalize = false;  ///< divides by max(L2 norm, 1e-12)
};

/// What says where sequences are.
enum class SequenceBounds : std::uint8_t { starts, lengths };

/// How blocks share the mean of a sequence: strips of columns, and rows in a cluster.
struct MeanConfig {
  int vector_elems = 8;  ///< of an access
  int splits = 1;        ///< blocks of a cluster, each with a part of the sequence's rows
  int strips = 1;        ///< of a row
  int warps = 8;         ///< of a block, which take turns at rows
  /// hidden has no more rows than this, 1, 2, 4 or 8: a warp loads all of them beside the bounds,
  /// and counts those of its sequence; 0: it has more.
  int few = 0;
  std::int64_t columns = 0;
  SequenceBounds bounds = SequenceBounds::starts;
  static constexpr int kRowsInFlight = 8;
  int strip_columns() const { return 32 * vector_elems; }
  friend bool operator==(const MeanConfig&, const MeanConfig&) = default;
};

/// Means of sequences, rounded once to the type of `out`.
struct PoolMeanPlan {
  MeanConfig config;
  View hidden, bounds, out;
  std::optional<View> mask;
  TensorArg hidden_arg, bounds_arg, out_arg;
  std::optional<TensorArg> mask_arg;
  LaunchConfig launch;

  std::string key() const;
  Traced trace(ptx::Target target) const;
  Parameters parameters() const;
};

/// One row of each sequence (or row b, of means), normalised on request.
struct PoolRowsPlan {
  PoolingOptions options;
  rows::RowShape shape;
  SequenceBounds kind = SequenceBounds::starts;
  View source, bounds, out;
  TensorArg source_arg, bounds_arg, out_arg;
  LaunchConfig launch;

  std::string key() const;
  Traced trace(ptx::Target target) const;
  Parameters parameters() const;
};

struct PoolingPlan {
  std::optional<PoolMeanPlan> mean;
  std::optional<PoolRowsPlan> rows;
};
/// The order of a sum depends on H, the number of sequences and T / B alone.
PoolingPlan plan_pooling(const DeviceProperties& device, const PoolingTensors& tensors,
                         const PoolingOptions& options = {}, SourceLoc at = SourceLoc::here());
void launch_pooling(const Stream& stream, const PoolingPlan& plan,
                    SourceLoc at = SourceLoc::here());

/// Sums are compensated f32: as exact for long texts as for short ones. Sequences without rows give
/// zeros. Allocates nothing on the device and does not wait.
void pooling(const Stream& stream, const PoolingTensors& tensors,
             const PoolingOptions& options = {}, SourceLoc at = SourceLoc::here());

const Operator& pooling_operator();

}  // namespace tilewright
