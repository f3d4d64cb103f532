// SPDX-License-Identifier: Apache-2.0
// transpose: dst[..., n, m] = src[..., m, n] for elements of 8 to 64 bits.
#pragma once

#include "kernels/rows/rows.h"
#include "tilewright/operator.h"
#include "tilewright/trace.h"

#include <string>

namespace tilewright {

enum class TransposeMethod : std::uint8_t {
  shared,  ///< tiles go through shared memory, a word or an element an access
  direct   ///< a thread turns a square of elements in its registers, a row of it an access
};

/// The specialisation besides the facts of the arguments.
struct TransposeConfig {
  TransposeMethod method = TransposeMethod::shared;
  int access = 1;  ///< elements: the side of a thread's square
  int threads = 256;
  int across = 64;                      ///< threads side by side along src's rows
  int read_elems = 1, write_elems = 1;  ///< of an access through shared memory
  int shared_rows = 64;                 ///< of a tile there
  friend bool operator==(const TransposeConfig&, const TransposeConfig&) = default;
  int tile_m() const {
    return method == TransposeMethod::shared ? shared_rows : threads / across * access;
  }
  int tile_n() const { return across * access; }
};
std::string to_string(const TransposeConfig& config);
/// Tuned. `src` has rank 3; accesses of `access` elements divide all offsets of src and dst.
TransposeConfig choose_transpose(const DeviceProperties& device, const View& src, int access);

struct TransposePlan {
  View src, dst;  ///< as bits, of rank 3: [B, M, N] and [B, N, M]
  TensorArg src_arg, dst_arg;
  TransposeConfig config;
  LaunchConfig launch;
  std::int64_t tiles_m = 1, tiles_n = 1;

  std::string key() const;
  Traced trace(ptx::Target target) const;
  Parameters parameters() const;
};
/// Pre: rank 2 or 3, equal types, last strides 1, no overlap. Throws Error(user) otherwise.
TransposePlan plan_transpose(const DeviceProperties& device, const View& src, const View& dst,
                             SourceLoc at = SourceLoc::here());

/// Transposes on the stream. Allocates nothing on the device and does not wait.
void transpose(const Stream& stream, const View& src, const View& dst,
               SourceLoc at = SourceLoc::here());

const Operator& transpose_operator();

}  // namespace tilewright
