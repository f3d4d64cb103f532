// SPDX-License-Identifier: Apache-2.0
// Rows to places by index: scatter_rows copies them.
#pragma once

#include "kernels/rows/row_tile.h"
#include "tilewright/operator.h"
#include "tilewright/trace.h"

#include <string>

namespace tilewright {

struct RowScatterTensors {
  View src;  ///< [T, H]
  View ids;  ///< [T] s32 or s64: rows of dst
  View dst;  ///< [V, H]
};

struct RowScatterPlan {
  rows::RowTile tile;         ///< of src
  RowScatterTensors tensors;  ///< rows as bits
  TensorArg src_arg, ids_arg, dst_arg;
  LaunchConfig launch;

  std::string key() const;
  Traced trace(ptx::Target target) const;
  Parameters parameters() const;
};

/// Pre: equal types and lengths of rows, last strides 1, no overlap. Throws Error(user) otherwise.
RowScatterPlan plan_row_scatter(const DeviceProperties& device, const RowScatterTensors& tensors,
                                SourceLoc at = SourceLoc::here());

/// dst[ids[t]] = src[t]; an index outside dst is skipped, and rows that no index names stay. Each
/// row is named once at most: of two that name the same, parts of either may be there afterwards.
/// Allocates nothing, does not wait.
void scatter_rows(const Stream& stream, const View& src, const View& ids, const View& dst,
                  SourceLoc at = SourceLoc::here());

const Operator& scatter_rows_operator();

}  // namespace tilewright
