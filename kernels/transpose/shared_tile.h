// SPDX-License-Identifier: Apache-2.0
// A transpose through shared memory, in words of src and accesses of dst wherever rows begin.
#pragma once

#include "kernels/transpose/transpose.h"
#include "tilewright/tensor.h"
#include "tilewright/value.h"

#include <vector>

namespace tilewright {

/// The tile's first row and column of src, and its batch.
struct TransposeCorner {
  Value batch, m, n;  ///< s64
};

/// One block's tile. Rows of src are read in words from their word boundaries on, and stored in
/// shared memory as they come; accesses to dst begin where its sectors do, so that a row of dst
/// begins some elements before the tile. What no word or access covers goes by elements.
/// Pre: traced with TransposeConfig::smem_bytes() of dynamic shared memory.
class SharedTile {
 public:
  SharedTile(const TransposeConfig& config, const Tensor& src, const Tensor& dst,
             TransposeCorner corner);
  /// src to shared memory, a barrier, shared memory to dst.
  void transpose() const;

 private:
  Value skipped(const Value& row) const;
  Value is_row(const Value& row) const;
  void read() const;
  void read_edges() const;
  void read_word_by_elements(const Value& row, const Value& word, const Value& skip) const;
  void write() const;
  void write_columns(const Value& first, int turn) const;
  std::vector<Tensor> elements_of(const Value& top, const Value& access, const Value& first) const;

  TransposeConfig c_;
  Tensor src_, dst_;
  Tensor words_;     ///< (row, word)
  Tensor elements_;  ///< the same memory
  TransposeCorner corner_;
  Value first_row_;      ///< of src in shared memory: s64, may be negative
  Value phase_, pitch_;  ///< of the first row's address and of rows, in bytes: u32
  Value begin_, end_;    ///< rows there that src has: s32
  Value left_;           ///< columns from the tile's first on, up to a word more than it has: s32
};

}  // namespace tilewright
