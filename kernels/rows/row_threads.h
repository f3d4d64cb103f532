// SPDX-License-Identifier: Apache-2.0
// The threads that share a row, on the device: their accesses and their sums.
#pragma once

#include "kernels/rows/row_shape.h"
#include "tilewright/fragment.h"
#include "tilewright/value.h"

#include <initializer_list>
#include <optional>
#include <vector>

namespace tilewright::rows {

/// A row's elements in the registers of its threads: one fragment an access.
using Row = std::vector<Fragment>;

class RowThreads {
 public:
  explicit RowThreads(const RowShape& shape);

  /// The row of this thread's first turn, as a value of type `index`; the next is rows_per_block
  /// on.
  Value row(Type index) const;
  /// The same threads in a turn of their block: what they share is apart from the turn before.
  RowThreads in_turn(const Value& turn) const;
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
  /// The largest of magnitudes; NaN if there is one.
  Value largest(const Value& magnitude) const;

  /// Mean of some elements, and the sum of their square distances from it.
  struct Spread {
    Value mean, squares;
  };
  /// Of all threads of the row, from each one's own over `count` elements, in the order of sum().
  Spread merge(const Spread& mine, int count) const;

 private:
  int warps() const { return shape_.threads_per_row > 32 ? shape_.threads_per_row / 32 : 1; }
  Value combined(const Value& mine, Value (*combine)(const Value&, const Value&)) const;
  /// Numbers of each warp in shared memory, by warp and number, after one barrier.
  Tensor exchanged(std::initializer_list<Value> mine) const;
  /// The same in registers: a fragment each.
  std::vector<Fragment> of_all_warps(std::initializer_list<Value> mine) const;

  RowShape shape_;
  Value lane_;
  std::optional<Value> turn_ = {};  ///< absent: there is one
};

/// Neighbours first, in a tree. Pre: at least one.
Value tree_sum(std::vector<Value> sums);

/// A sum to which a loop adds, and what its rounding has added too much: with that, its error does
/// not grow with the turns.
class LongSum {
 public:
  LongSum() : sum_(f32, 0.0f), surplus_(f32, 0.0f) {}
  void add(const Value& more);
  Value total() const;

 private:
  Var sum_, surplus_;
};

}  // namespace tilewright::rows
