// SPDX-License-Identifier: Apache-2.0
// The measured choice of threads and accesses for a row.
#include "kernels/rows/row_shape.h"

#include <algorithm>

namespace tilewright::rows {

std::string to_string(const RowShape& s) {
  return "h=" + std::to_string(s.h) + " v=" + std::to_string(s.vector_elems) +
         " t=" + std::to_string(s.threads_per_row) + " n=" + std::to_string(s.vectors) +
         " r=" + std::to_string(s.rows_per_block) + (s.looped ? " looped" : "");
}

std::int64_t power_of_two_from(std::int64_t least) {
  std::int64_t power = 1;
  while (power < least)
    power *= 2;
  return power;
}

RowShape choose_row_shape(std::int64_t h, int vector_elems, int max_vectors) {
  // Measured on an H200 over H = 2048, 4096, 7168, 8192 with 1, 64 and 32768 rows: two accesses a
  // thread are best where they come out even, else four.
  RowShape shape{.h = h, .vector_elems = vector_elems};
  std::int64_t vectors = ceil_div(h, vector_elems);
  std::int64_t power = power_of_two_from(vectors);
  std::int64_t threads = vectors == power ? power / 2 : power / 4;
  if (vectors <= 32) threads = power;
  shape.threads_per_row =
      static_cast<int>(std::clamp<std::int64_t>(threads, vectors <= 32 ? 1 : 32, 1024));
  std::int64_t each = ceil_div(vectors, shape.threads_per_row);
  shape.looped = each > max_vectors;
  shape.vectors = shape.looped ? 1 : static_cast<int>(each);
  return shape;
}

void choose_rows_per_block(RowShape& shape, const DeviceProperties& device, std::int64_t rows) {
  constexpr int kThreadsOfManyRows = 128;
  if (shape.threads_per_row > 32 || shape.looped) return;
  bool many = rows * shape.threads_per_row > std::int64_t{device.sm_count} * 32;
  shape.rows_per_block =
      many ? kThreadsOfManyRows / shape.threads_per_row : std::max(1, 32 / shape.threads_per_row);
}

int row_blocks(std::int64_t row_count, int per_block, const Caller& caller) {
  constexpr std::int64_t kMaxBlocks = 2'147'483'647;
  std::int64_t blocks = ceil_div(row_count, per_block);
  if (blocks > kMaxBlocks) {
    caller.refuse(std::to_string(row_count) + " rows; at most " +
                  std::to_string(kMaxBlocks * per_block) + " are possible");
  }
  return static_cast<int>(blocks);
}

std::string key_text(const std::optional<TensorArg>& arg) { return arg ? to_string(*arg) : "-"; }

}  // namespace tilewright::rows
