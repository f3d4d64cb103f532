// SPDX-License-Identifier: Apache-2.0
// transpose: dst[..., n, m] = src[..., m, n] for elements of 8 to 64 bits.
#pragma once

#include "kernels/rows/rows.h"
#include "tilewright/operator.h"
#include "tilewright/trace.h"

#include <string>

namespace tilewright {

/// A tile of 64 x 64 elements goes through shared memory: read along src's rows, written along
/// dst's.
struct TransposePlan {
  View src, dst;  ///< as bits, of rank 3: [B, M, N] and [B, N, M]
  TensorArg src_arg, dst_arg;
  LaunchConfig launch;
  std::int64_t tiles_m = 1, tiles_n = 1;

  std::string key() const;
  Traced trace(ptx::Target target) const;
  Parameters parameters() const;
};
/// Pre: rank 2 or 3, equal types, last strides 1, no overlap. Throws Error(user) otherwise.
TransposePlan plan_transpose(const View& src, const View& dst, SourceLoc at = SourceLoc::here());

/// Transposes on the stream. Allocates nothing on the device and does not wait.
void transpose(const Stream& stream, const View& src, const View& dst,
               SourceLoc at = SourceLoc::here());

const Operator& transpose_operator();

}  // namespace tilewright
