// SPDX-License-Identifier: Apache-2.0
// Which part of a chunk a thread holds while its record is made, and the decays that run over it.
#pragma once

#include "kernels/kda_prefill/chunk_record.h"
#include "tilewright/fragment.h"

#include <vector>

namespace tilewright {

/// A thread's part of a chunk: two neighbouring channels in the 16 rows of a block.
struct ThreadRows {
  Value block;
  Value channel;  ///< the first of two
  Value first_row() const { return block * kBlockRows; }
};
ThreadRows thread_rows(const ChunkShape& shape);

/// q and k as operands, of length 1 with a correction, and decays (f32) of a thread's part: pairs
/// of channels row by row.
struct RowValues {
  Fragment q, k, decay;
};

/// Where a thread's pairs lie in a tile of operands [rows, K] that begins with its chunk's first
/// row: the swizzle gives eight rows their own columns, and repeats.
class PairPlaces {
 public:
  PairPlaces(const ChunkShape& shape, const ThreadRows& rows, int tile_rows);
  /// The pair in row `row` (0 to 15) of the thread's block.
  Element in(const Tensor& tile, int row) const;

 private:
  std::vector<Value> places_;
};

/// A pair of factors for operands like `values`: of f16, too, where one instruction multiplies two;
/// of bf16, which has three digits less, in f32.
Fragment factor_for(const Fragment& values, const Fragment& factor);
/// The pair of row `row` of `values` times such factors.
Fragment scaled_pair(const Fragment& values, int row, const Fragment& factor);

/// Calls use(row, factor) with the product of the decays from row `begin` to `row`, times `first`,
/// for rows [begin, end); products are of f32, factors pairs for scaled_pair().
template <class Use>
void decays_from_start(const RowValues& values, const Fragment& first, int begin, int end,
                       Use&& use) {
  Fragment factor = first;
  for (int row = begin; row < end; ++row) {
    factor = factor * values.decay.part(2 * row, 2);
    use(row, factor_for(values.k, factor));
  }
}

/// The same with the product of the decays after `row` up to row end - 1.
template <class Use>
void decays_to_end(const RowValues& values, const Fragment& first, int begin, int end, Use&& use) {
  Fragment factor = first;
  for (int row = end - 1; row >= begin; --row) {
    use(row, factor_for(values.k, factor));
    if (row > begin) factor = factor * values.decay.part(2 * row, 2);
  }
}
/// A pair of f32.
Fragment pair_of(const Value& first, const Value& second);

}  // namespace tilewright
