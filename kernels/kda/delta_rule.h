// SPDX-License-Identifier: Apache-2.0
// The gated delta rule on rows of the state that a warp holds in registers.
#pragma once

#include "tilewright/fragment.h"
#include "tilewright/tensor.h"

#include <vector>

namespace tilewright::kda {

// Eight lanes share a row: lane j has elements 32 i + 4 j to 32 i + 4 j + 3 for every i, so that an
// access of a warp covers whole lines of 128 bytes, and a sum over a row takes three shuffles.
inline constexpr int kRowLanes = 8;
inline constexpr int kPieceElems = 4;
inline constexpr int kPieceStep = kRowLanes * kPieceElems;  ///< elements from one piece to the next
inline constexpr int kWarpRows = 32 / kRowLanes;            ///< rows of a warp's access

/// A lane's part of a vector of K elements: piece i has elements 32 i + 4 j and three more.
using Pieces = std::vector<Fragment>;
/// Pre: `first` is the vector's first element, in f32; K is a multiple of 32.
Pieces load_pieces(const Tensor& vector, int k);

/// The sum of products of two vectors: a chain in each piece, pieces in a tree, lanes in a
/// butterfly. All lanes take part.
Value product(const Pieces& a, const Pieces& b);

/// What a token does to the state, besides the rows' own values.
struct TokenVectors {
  Pieces decay, k, q;
  Value beta;
};

/// What a token yields for one row, the same in the row's eight lanes.
struct RowResult {
  Value out;         ///< o, after the update
  Value correction;  ///< d
};

/// Rows of the state of this lane, as pieces.
class StateRows {
 public:
  StateRows(int rows, int k);
  int rows() const { return static_cast<int>(rows_.size()); }

  void clear() const;
  /// Row r from or to a tensor of K elements.
  void load(int r, const Tensor& row, LoadOptions options = {}) const;
  void store(int r, const Tensor& row, StoreOptions options = {}) const;
  /// All rows from or to the columns of a tensor [K, V], from column `first` on.
  void load_columns(const Tensor& columns, const Value& first) const;
  void store_columns(const Tensor& columns, const Value& first) const;

  /// S <- S diag(decay); d = beta (v - S k); S <- S + d k; o = S q. The sum for o is taken before
  /// the update, (S q) + d (k q), so that both sums are under way at once. All lanes take part.
  std::vector<RowResult> advance(const TokenVectors& token, const std::vector<Value>& v) const;

  /// S <- decay S + v k^T; returns S q.
  std::vector<Value> accumulate(const Value& decay, const Pieces& k, const Pieces& q,
                                const std::vector<Value>& v) const;
  /// S <- S diag(decay) + the other rows.
  void scale_and_add(const Pieces& decay, const StateRows& added) const;
  /// S += v k^T.
  void add(const Pieces& k, const std::vector<Value>& v) const;

 private:
  std::vector<Pieces> rows_;
};

/// This lane's place among the lanes of its row, and its row among the warp's four.
Value row_lane();
Value row_of_lane();

}  // namespace tilewright::kda
