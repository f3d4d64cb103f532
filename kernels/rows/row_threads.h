// SPDX-License-Identifier: Apache-2.0
// The threads that share a row, on the device: their accesses and their sums.
#pragma once

#include "kernels/rows/row_shape.h"
#include "tilewright/fragment.h"
#include "tilewright/value.h"

#include <vector>

namespace tilewright::rows {

/// A row's elements in the registers of its threads: one fragment an access.
using Row = std::vector<Fragment>;

class RowThreads {
 public:
  explicit RowThreads(const RowShape& shape);

  /// This thread's row, as a value of type `index`.
  Value row(Type index) const;
  const Value& lane() const { return lane_; }  ///< of the threads that share the row

  /// Where access j of this thread begins in the row.
  Value column(int j) const;
  /// Whether access j is inside the row: constant for all but the last one.
  Value inside(int j) const;

  /// Elements that are not inside, and rows that are not active, are 0.
  Row load_row(const Tensor& tensor, const Value& row, const Value& active) const;
  Row load_vector(const Tensor& tensor) const;
  void store_access(const Tensor& tensor, const Value& row, int j, const Fragment& access) const;

  /// Combines one number of every thread of the row: a butterfly in each warp, then the warps in
  /// order, the same for all threads. Every thread of the block takes part.
  Value sum(const Value& mine) const;

 private:
  int warps() const { return shape_.threads_per_row > 32 ? shape_.threads_per_row / 32 : 1; }
  Value sum_of_warps(const Value& warp_sum) const;

  RowShape shape_;
  Value lane_;
};

/// Neighbours first, in a tree. Pre: at least one.
Value tree_sum(std::vector<Value> sums);

}  // namespace tilewright::rows
