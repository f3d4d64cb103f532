// SPDX-License-Identifier: Apache-2.0
// How the threads of a block share rows that they reduce.
#pragma once

#include "kernels/rows/rows.h"
#include "tilewright/trace.h"

#include <optional>
#include <string>

namespace tilewright::rows {

/// How the threads of a block share rows. Whether they are looped depends on H and the access width
/// alone; the rest changes no bit of a row's result.
struct RowShape {
  std::int64_t h = 0;
  int vector_elems = 8;  ///< elements of one access
  int threads_per_row = 128;
  int vectors = 1;         ///< accesses of a thread in a row held in registers
  int rows_per_block = 1;  ///< more than one only where a row takes a warp or less
  int turns = 1;           ///< the same: rows that a block's threads take one after the other
  int parts = 1;           ///< blocks that all sum a row, and write a part each: grid.y
  bool looped = false;     ///< rows too long for registers are read again for every pass
  friend bool operator==(const RowShape&, const RowShape&) = default;
  int threads() const { return threads_per_row * rows_per_block; }
  int rows_of_block() const { return rows_per_block * turns; }
};
std::string to_string(const RowShape& shape);

/// `threads` for rows of `h` elements, which are looped where a thread would have more than
/// `max_vectors` accesses.
RowShape make_row_shape(std::int64_t h, int vector_elems, int threads, int max_vectors);

/// Blocks of `per_block` rows, and `others`. Throws beyond the 2147483647 blocks of a grid.
int row_blocks(std::int64_t row_count, int per_block, const Caller& caller,
               std::int64_t others = 0);

std::int64_t power_of_two_from(std::int64_t least);  ///< the smallest that is not less

/// The text of an optional argument in a cache key.
std::string key_text(const std::optional<TensorArg>& arg);

}  // namespace tilewright::rows
