// SPDX-License-Identifier: Apache-2.0
// The threads that share a row, on the device: their accesses and their sums.
#pragma once

#include "kernels/rows/row_shape.h"
#include "kernels/rows/row_tree.h"
#include "tilewright/fragment.h"
#include "tilewright/value.h"

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
  const Value& lane() const { return lane_; }  ///< of the threads that share the row
  /// With the accesses of this block's part of the row alone, where it has parts: lanes go on
  /// behind those of the parts before it. Not for sums.
  RowThreads of_part() const;

  /// Where access j of this thread begins in the row.
  Value column(int j) const;
  /// Whether access j is inside the row: constant for all but the last one.
  Value inside(int j) const;

  /// Elements that are not inside, and rows that are not active, are 0.
  Row load_row(const Tensor& tensor, const Value& row, const Value& active) const;
  Row load_vector(const Tensor& tensor) const;
  void store_access(const Tensor& tensor, const Value& row, int j, const Fragment& access) const;

  /// Of one number for each access of the thread, 0 beyond the row, in the order of row_tree.h: the
  /// same bits in all threads, and for any number of them. Of one number for all of a thread's
  /// accesses the bits depend on the number of threads. Every thread of the block takes part.
  Value sum(const std::vector<Value>& accesses) const;
  /// The largest of magnitudes, one of each thread; NaN if there is one.
  Value largest(const Value& magnitude) const;

  /// Mean of some elements, and the sum of their square distances from it.
  struct Spread {
    Value mean, squares;
  };
  /// Of the whole row, from each access's own, in the order of sum(). Pre: merges_accesses(shape).
  Spread merge(const std::vector<Spread>& accesses) const;

 private:
  RowThreads(const RowShape& shape, const Value& lane) : shape_(shape), lane_(lane) {}

  /// What this lane has of the results of all groups of the row.
  struct Groups {
    std::vector<Numbers> mine;  ///< one after another; 0 where there is none
    std::vector<Value> exist;   ///< a predicate for each
    int count = 1;              ///< of all lanes
    int lanes = 1;              ///< that have different ones
    int distance = 1;           ///< from one of those lanes to the next
  };
  template <class Combine>
  Groups groups_of(const std::vector<Numbers>& accesses, Combine&& combine) const;
  /// Of the row, from so many numbers a thread.
  int group_count(int numbers_of_thread) const;
  Groups in_warp(const GroupLanes& reduced) const;
  Groups of_all_warps(const GroupLanes& reduced, int count) const;
  Value sum_of_groups(const Groups& groups, std::vector<Value> mine) const;

  int lanes() const { return shape_.threads_per_row < 32 ? shape_.threads_per_row : 32; }
  int warps() const { return shape_.threads_per_row > 32 ? shape_.threads_per_row / 32 : 1; }
  Value lane_in_warp() const;
  /// Where warps leave numbers for one another: (place, number). Apart from the one of the call
  /// before, so that no barrier keeps it from that.
  static Tensor exchange_area(int places, int numbers);

  RowShape shape_;
  Value lane_;
};

/// Of an access in f32, one element after the other.
Value sum_of_squares(const Fragment& access);
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
