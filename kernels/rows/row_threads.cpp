// SPDX-License-Identifier: Apache-2.0
// Accesses and sums of the threads that share a row.
#include "kernels/rows/row_threads.h"

#include "tilewright/control.h"
#include "tilewright/sync.h"
#include "tilewright/thread.h"
#include "tilewright/warp.h"

#include <algorithm>
#include <limits>

namespace tilewright::rows {
namespace {

Value add(const Value& a, const Value& b) { return a + b; }
Value larger(const Value& a, const Value& b) { return max(a, b, NanMode::propagate); }

}  // namespace

RowThreads::RowThreads(const RowShape& shape)
    : shape_(shape), lane_(linear_thread_idx() % shape.threads_per_row) {}

Value RowThreads::row(Type index) const {
  return block_idx().x.to(index) * shape_.rows_of_block() +
         (linear_thread_idx() / shape_.threads_per_row).to(index);
}

Value RowThreads::column(int j) const {
  return (lane_ + j * shape_.threads_per_row) * shape_.vector_elems;
}

Value RowThreads::inside(int j) const {
  return lane_ + j * shape_.threads_per_row < static_cast<int>(shape_.h / shape_.vector_elems);
}

Row RowThreads::load_row(const Tensor& tensor, const Value& row, const Value& active) const {
  Row loaded;
  for (int j = 0; j < shape_.vectors; ++j)
    loaded.push_back(load_if(active && inside(j), tensor(row, column(j)), shape_.vector_elems));
  return loaded;
}

Row RowThreads::load_vector(const Tensor& tensor) const {
  Row loaded;
  for (int j = 0; j < shape_.vectors; ++j)
    loaded.push_back(load_if(inside(j), tensor(column(j)), shape_.vector_elems));
  return loaded;
}

void RowThreads::store_access(const Tensor& tensor, const Value& row, int j,
                              const Fragment& access) const {
  store_if(inside(j), tensor(row, column(j)), access);
}

Value RowThreads::sum(const Value& mine) const { return combined(mine, add); }

/// Magnitudes as integers are in order, and NaN is above infinity: an instruction of the warp finds
/// the largest.
Value RowThreads::largest(const Value& magnitude) const {
  if (shape_.threads_per_row < 32) return combined(magnitude, larger);
  Value of_warp = redux_max(magnitude.bitcast(u32));
  if (warps() == 1) return of_warp.bitcast(f32);
  const Tensor partials = exchanged({of_warp.bitcast(f32)});
  Value other = partials(min(lane_idx(), warps() - 1), 0);
  return redux_max(other.bitcast(u32)).bitcast(f32);
}

Value RowThreads::combined(const Value& mine, Value (*combine)(const Value&, const Value&)) const {
  const int width = std::min(shape_.threads_per_row, 32);
  Value of_warp = warp_reduce(mine, combine, width);
  return warps() == 1 ? of_warp : reduce(of_all_warps({of_warp}).front(), combine);
}

/// Each call has shared memory of its own, so that no barrier keeps it from the one before; turns
/// take two in turn, for the barrier between them parts the first turn's reads from the third.
Tensor RowThreads::exchanged(std::initializer_list<Value> mine) const {
  constexpr int kWord = 4;  // floats of an access
  const int pitch = (warps() + kWord - 1) / kWord * kWord;
  const int count = static_cast<int>(mine.size());
  Tensor partials = shared(f32, Layout(Shape{warps(), count, 2}, Stride{1, pitch, pitch * count}));
  const Value half = turn_ ? *turn_ & 1 : constant(s32, 0);
  if_(lane_idx() == 0, [&] {
    int i = 0;
    for (const Value& number : mine)
      partials(warp_idx(), i++, half) = number;
  });
  barrier();
  return partials(_, _, half);
}

std::vector<Fragment> RowThreads::of_all_warps(std::initializer_list<Value> mine) const {
  const Tensor partials = exchanged(mine);
  std::vector<Fragment> numbers;
  numbers.reserve(mine.size());
  for (int i = 0; i < static_cast<int>(mine.size()); ++i)
    numbers.push_back(load(partials(0, i), warps()));
  return numbers;
}

RowThreads RowThreads::in_turn(const Value& turn) const {
  RowThreads threads = *this;
  threads.turn_.emplace(turn);
  return threads;
}

namespace {

using Spread = RowThreads::Spread;

/// Chan, Golub and LeVeque: the spread of two disjoint sets of `count` elements each.
Spread merged(const Spread& a, const Spread& b, int count) {
  Value apart = b.mean - a.mean;
  return {(a.mean + b.mean) * 0.5f,
          fma(apart * apart, static_cast<float>(count) * 0.5f, a.squares + b.squares)};
}

/// Of any number of sets of `count` elements, by few steps one after the other.
Spread merged_of_equals(const Fragment& means, const Fragment& squares, int count) {
  std::vector<Value> numbers, spreads;
  for (int i = 0; i < means.size(); ++i)
    numbers.emplace_back(means[i].get());
  Value mean = tree_sum(numbers) * (1.0f / static_cast<float>(means.size()));
  for (int i = 0; i < means.size(); ++i) {
    Value apart = means[i].get() - mean;
    spreads.push_back(fma(apart * apart, static_cast<float>(count), squares[i].get()));
  }
  return {mean, tree_sum(spreads)};
}

}  // namespace

RowThreads::Spread RowThreads::merge(const Spread& mine, int count) const {
  const int width = std::min(shape_.threads_per_row, 32);
  std::vector<Spread> all{mine};
  for (int mask = width / 2; mask > 0; mask /= 2) {
    const Spread& one = all.back();
    const Spread other{shuffle_xor(one.mean, mask, width), shuffle_xor(one.squares, mask, width)};
    all.push_back(merged(one, other, count));
    count *= 2;
  }
  if (warps() == 1) return all.back();
  const std::vector<Fragment> of_warps = of_all_warps({all.back().mean, all.back().squares});
  return merged_of_equals(of_warps[0], of_warps[1], count);
}

Value tree_sum(std::vector<Value> sums) {
  while (sums.size() > 1) {
    std::vector<Value> next;
    for (std::size_t i = 0; i + 1 < sums.size(); i += 2)
      next.push_back(sums[i] + sums[i + 1]);
    if (sums.size() % 2 == 1) next.push_back(sums.back());
    sums.swap(next);
  }
  return sums.front();
}

/// Kahan, CACM 8.1, 1965. Beside an infinite sum the surplus would be NaN; it is a number instead,
/// below any that a finite one has.
void LongSum::add(const Value& more) {
  constexpr float kBelowAll = -0x1p104f;
  const Value rest = more - surplus_;
  const Value before = sum_;
  const Value after = before + rest;
  surplus_ = max((after - before) - rest, kBelowAll);
  sum_ = after;
}

Value LongSum::total() const {
  const Value sum = sum_;
  return select(abs(sum) < std::numeric_limits<float>::infinity(), sum - surplus_, sum);
}

}  // namespace tilewright::rows
