// SPDX-License-Identifier: Apache-2.0
// Accesses of a row, blocks of a grid, and power-of-two sizes.
#include "kernels/rows/row_shape.h"

namespace tilewright::rows {

std::string to_string(const RowShape& s) {
  return "h=" + std::to_string(s.h) + " v=" + std::to_string(s.vector_elems) +
         " t=" + std::to_string(s.threads_per_row) + " n=" + std::to_string(s.vectors) +
         " r=" + std::to_string(s.rows_per_block) + " b=" + std::to_string(s.turns) +
         (s.parts > 1 ? " parts=" + std::to_string(s.parts) : "") + (s.looped ? " looped" : "");
}

std::int64_t power_of_two_from(std::int64_t least) {
  std::int64_t power = 1;
  while (power < least)
    power *= 2;
  return power;
}

RowShape make_row_shape(std::int64_t h, int vector_elems, int threads, int max_vectors) {
  RowShape shape{.h = h, .vector_elems = vector_elems, .threads_per_row = threads};
  std::int64_t each = ceil_div(ceil_div(h, vector_elems), threads);
  shape.looped = each > max_vectors;
  shape.vectors = shape.looped ? 1 : static_cast<int>(each);
  return shape;
}

int row_blocks(std::int64_t row_count, int per_block, const Caller& caller, std::int64_t others) {
  constexpr std::int64_t kMaxBlocks = 2'147'483'647;
  const std::int64_t blocks = ceil_div(row_count, per_block);
  const std::int64_t most = kMaxBlocks - others;
  if (blocks > most) {
    caller.refuse(std::to_string(row_count) + " rows; at most " + std::to_string(most * per_block) +
                  " are possible");
  }
  return static_cast<int>(blocks + others);
}

std::string key_text(const std::optional<TensorArg>& arg) { return arg ? to_string(*arg) : "-"; }

}  // namespace tilewright::rows
