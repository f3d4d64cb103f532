// SPDX-License-Identifier: Apache-2.0
// One step of the gated delta rule, traced.
#include "kernels/kda/delta_rule.h"

#include "tilewright/sync.h"
#include "tilewright/thread.h"

namespace tilewright::kda {
namespace {

/// A lane's part of product().
Value dot(const Pieces& a, const Pieces& b) {
  std::vector<Value> sums;
  for (std::size_t i = 0; i < a.size(); ++i) {
    Var sum(a[i][0].get() * b[i][0].get());
    for (int e = 1; e < kPieceElems; ++e)
      sum = fma(a[i][e], b[i][e], sum);
    sums.emplace_back(sum);
  }
  while (sums.size() > 1) {
    std::vector<Value> next;
    for (std::size_t i = 0; i + 1 < sums.size(); i += 2)
      next.push_back(sums[i] + sums[i + 1]);
    if (sums.size() % 2 == 1) next.push_back(sums.back());
    sums.swap(next);
  }
  return sums.front();
}

Value over_row(const Value& mine) {
  return warp_reduce(
      mine, [](const Value& a, const Value& b) { return a + b; }, kRowLanes);
}

}  // namespace

Value product(const Pieces& a, const Pieces& b) { return over_row(dot(a, b)); }

Value row_lane() { return lane_idx() % kRowLanes; }
Value row_of_lane() { return lane_idx() / kRowLanes; }

Pieces load_pieces(const Tensor& vector, int k) {
  Value first = row_lane() * kPieceElems;
  Pieces pieces;
  for (int at = 0; at < k; at += kPieceStep)
    pieces.push_back(tilewright::load(vector(first + at), kPieceElems));
  return pieces;
}

StateRows::StateRows(int rows, int k) {
  for (int r = 0; r < rows; ++r) {
    Pieces pieces;
    for (int at = 0; at < k; at += kPieceStep)
      pieces.push_back(Fragment::undefined(f32, kPieceElems));
    rows_.push_back(std::move(pieces));
  }
}

void StateRows::load(int r, const Tensor& row, LoadOptions options) const {
  Value first = row_lane() * kPieceElems;
  const Pieces& pieces = rows_[static_cast<std::size_t>(r)];
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    Value at = first + static_cast<int>(i) * kPieceStep;
    pieces[i].assign(tilewright::load(row(at), kPieceElems, options).to(f32));
  }
}

void StateRows::store(int r, const Tensor& row, StoreOptions options) const {
  Value first = row_lane() * kPieceElems;
  const Pieces& pieces = rows_[static_cast<std::size_t>(r)];
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    Value at = first + static_cast<int>(i) * kPieceStep;
    tilewright::store(row(at), pieces[i], options);
  }
}

void StateRows::clear() const {
  for (const Pieces& row : rows_) {
    for (const Fragment& piece : row)
      piece.fill(0.0f);
  }
}

void StateRows::load_columns(const Tensor& columns, const Value& first) const {
  Value k = row_lane() * kPieceElems;
  for (std::size_t i = 0; i < rows_[0].size(); ++i) {
    for (int e = 0; e < kPieceElems; ++e) {
      Value at = k + (static_cast<int>(i) * kPieceStep + e);
      Fragment column = tilewright::load(columns(at, first), rows());
      for (std::size_t r = 0; r < rows_.size(); ++r)
        rows_[r][i][e] = column[r];
    }
  }
}

void StateRows::store_columns(const Tensor& columns, const Value& first) const {
  Value k = row_lane() * kPieceElems;
  for (std::size_t i = 0; i < rows_[0].size(); ++i) {
    for (int e = 0; e < kPieceElems; ++e) {
      Value at = k + (static_cast<int>(i) * kPieceStep + e);
      Fragment column = Fragment::undefined(f32, rows());
      for (std::size_t r = 0; r < rows_.size(); ++r)
        column[r] = rows_[r][i][e];
      tilewright::store(columns(at, first), column);
    }
  }
}

std::vector<RowResult> StateRows::advance(const TokenVectors& token,
                                          const std::vector<Value>& v) const {
  std::vector<Value> predictions, reads;
  for (const Pieces& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      for (int e = 0; e < kPieceElems; ++e)
        row[i][e] = row[i][e].get() * token.decay[i][e].get();
    }
    predictions.push_back(dot(row, token.k));
    reads.push_back(dot(row, token.q));
  }
  Value kq = product(token.k, token.q);
  std::vector<RowResult> results;
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    Value correction = token.beta * (v[r] - over_row(predictions[r]));
    results.push_back({fma(correction, kq, over_row(reads[r])), correction});
  }
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    for (std::size_t i = 0; i < rows_[r].size(); ++i) {
      for (int e = 0; e < kPieceElems; ++e)
        rows_[r][i][e] = fma(results[r].correction, token.k[i][e], rows_[r][i][e]);
    }
  }
  return results;
}

std::vector<Value> StateRows::accumulate(const Value& decay, const Pieces& k, const Pieces& q,
                                         const std::vector<Value>& v) const {
  std::vector<Value> reads;
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    for (std::size_t i = 0; i < rows_[r].size(); ++i) {
      for (int e = 0; e < kPieceElems; ++e)
        rows_[r][i][e] = fma(v[r], k[i][e], rows_[r][i][e].get() * decay);
    }
    reads.push_back(dot(rows_[r], q));
  }
  std::vector<Value> results;
  for (const Value& read : reads)
    results.push_back(over_row(read));
  return results;
}

void StateRows::add(const Pieces& k, const std::vector<Value>& v) const {
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    for (std::size_t i = 0; i < k.size(); ++i) {
      for (int e = 0; e < kPieceElems; ++e)
        rows_[r][i][e] = fma(v[r], k[i][e], rows_[r][i][e]);
    }
  }
}

void StateRows::scale_and_add(const Pieces& decay, const StateRows& added) const {
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    for (std::size_t i = 0; i < decay.size(); ++i) {
      for (int e = 0; e < kPieceElems; ++e)
        rows_[r][i][e] = fma(rows_[r][i][e], decay[i][e], added.rows_[r][i][e]);
    }
  }
}

}  // namespace tilewright::kda
