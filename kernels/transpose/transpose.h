// SPDX-License-Identifier: Apache-2.0
// transpose: dst[..., n, m] = src[..., m, n] for elements of 8 to 64 bits.
#pragma once

#include "kernels/rows/rows.h"
#include "tilewright/operator.h"
#include "tilewright/trace.h"

#include <algorithm>
#include <string>

namespace tilewright {

enum class TransposeMethod : std::uint8_t {
  shared,  ///< tiles go through shared memory: words of src, accesses of 16 bytes to dst
  direct   ///< a thread turns a square of elements in its registers, a row of it an access
};

/// The specialisation besides the facts of the arguments.
struct TransposeConfig {
  static constexpr int kAccessBytes = 16;  // to dst, of the shared method
  static constexpr int kSectorBytes = 32;  // what memory is written in
  TransposeMethod method = TransposeMethod::shared;
  int elem_bytes = 2;
  int access = 1;  ///< direct: elements, the side of a thread's square
  int threads = 256;
  int across = 32;           ///< threads side by side along src's rows; shared: a word each
  int down = 32;             ///< shared: threads side by side along dst's rows
  int group = 1;             ///< tiles below one another that precede the next ones; 0: all of them
  bool whole_words = false;  ///< shared: words divide all offsets of src, and its rows
  bool whole_accesses = false;  ///< shared: accesses divide all offsets of dst, and its rows
  friend bool operator==(const TransposeConfig&, const TransposeConfig&) = default;

  int word_bytes() const { return std::max(4, elem_bytes); }
  int word_elems() const { return word_bytes() / elem_bytes; }
  int access_elems() const { return kAccessBytes / elem_bytes; }
  /// Rows of src above the tile that accesses to dst may begin with.
  int rows_before() const { return whole_accesses ? 0 : kSectorBytes / elem_bytes - 1; }
  int tile_m() const;
  int tile_n() const;
  int smem_rows() const;
  int row_words() const { return across + 1; }  ///< of shared memory: one keeps rows apart
  int smem_bytes() const;
};
std::string to_string(const TransposeConfig& config);
/// Tuned. Views of rank 3.
TransposeConfig choose_transpose(const DeviceProperties& device, const View& src, const View& dst);

struct TransposePlan {
  View src, dst;  ///< as bits, of rank 3: [B, M, N] and [B, N, M]
  TensorArg src_arg, dst_arg;
  TransposeConfig config;
  LaunchConfig launch;
  std::int64_t tiles_m = 1, tiles_n = 1;
  /// Tiles that precede the next group's; where there is one group, the next column's.
  std::int64_t order() const { return config.group == 0 ? tiles_m : tiles_n * config.group; }

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
