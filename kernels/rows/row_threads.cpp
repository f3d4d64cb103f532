// SPDX-License-Identifier: Apache-2.0
// Accesses and sums of the threads that share a row.
#include "kernels/rows/row_threads.h"

#include "tilewright/control.h"
#include "tilewright/sync.h"
#include "tilewright/thread.h"
#include "tilewright/warp.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace tilewright::rows {
namespace {

Value larger(const Value& a, const Value& b) { return max(a, b, NanMode::propagate); }

}  // namespace

RowThreads::RowThreads(const RowShape& shape)
    : shape_(shape), lane_(linear_thread_idx() % shape.threads_per_row) {}

Value RowThreads::row(Type index) const {
  return block_idx().x.to(index) * shape_.rows_of_block() +
         (linear_thread_idx() / shape_.threads_per_row).to(index);
}

RowThreads RowThreads::of_part() const {
  if (shape_.parts == 1) return *this;
  RowShape own = shape_;
  own.vectors = shape_.vectors / shape_.parts;
  return {own, lane_ + block_idx().y % shape_.parts * (own.vectors * own.threads_per_row)};
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

Value RowThreads::lane_in_warp() const { return lanes() < 32 ? lane_ : lane_idx(); }

Tensor RowThreads::exchange_area(int places, int numbers) {
  constexpr int kWord = 4;  // floats of an access
  const int pitch = (places + kWord - 1) / kWord * kWord;
  return shared(f32, Layout(Shape{places, numbers}, Stride{1, pitch}));
}

/// Magnitudes as integers are in order, and NaN is above infinity: an instruction of the warp finds
/// the largest.
Value RowThreads::largest(const Value& magnitude) const {
  if (lanes() < 32) return warp_reduce(magnitude, larger, lanes());
  Value of_warp = redux_max(magnitude.bitcast(u32));
  if (warps() == 1) return of_warp.bitcast(f32);
  const Tensor area = exchange_area(warps(), 1);
  if_(lane_idx() == 0, [&] { area(warp_idx(), 0) = of_warp.bitcast(f32); });
  barrier();
  Value other = area(min(lane_idx(), warps() - 1), 0);
  return redux_max(other.bitcast(u32)).bitcast(f32);
}

Value RowThreads::sum(const std::vector<Value>& accesses) const {
  std::vector<Numbers> numbers;
  numbers.reserve(accesses.size());
  for (const Value& access : accesses)
    numbers.push_back({access});
  const Groups groups = groups_of(
      numbers, [](const Numbers& a, const Numbers& b, int) { return Numbers{a[0] + b[0]}; });
  std::vector<Value> mine;
  mine.reserve(groups.mine.size());
  for (const Numbers& group : groups.mine)
    mine.push_back(group[0]);
  return sum_of_groups(groups, std::move(mine));
}

/// Chan, Golub and LeVeque: spreads of two disjoint sets of as many elements, and of any number of
/// such sets.
RowThreads::Spread RowThreads::merge(const std::vector<Spread>& accesses) const {
  std::vector<Numbers> numbers;
  numbers.reserve(accesses.size());
  for (const Spread& access : accesses)
    numbers.push_back({access.mean, access.squares});
  const int elems = shape_.vector_elems;
  const Groups groups = groups_of(numbers, [&](const Numbers& a, const Numbers& b, int sets) {
    Value apart = b[0] - a[0];
    const float weight = static_cast<float>(sets * elems) * 0.5f;
    return Numbers{(a[0] + b[0]) * 0.5f, fma(apart * apart, weight, a[1] + b[1])};
  });
  if (groups.count == 1) return {groups.mine[0][0], groups.mine[0][1]};
  std::vector<Value> means, squares;
  means.reserve(groups.mine.size());
  for (const Numbers& group : groups.mine)
    means.push_back(group[0]);
  Value mean = sum_of_groups(groups, std::move(means)) * (1.0f / static_cast<float>(groups.count));
  for (std::size_t i = 0; i < groups.mine.size(); ++i) {
    Value apart = groups.mine[i][0] - mean;
    const auto elems_of_group = static_cast<float>(kGroup * elems);
    squares.push_back(
        select(groups.exist[i], fma(apart * apart, elems_of_group, groups.mine[i][1]), 0.0f));
  }
  return {mean, sum_of_groups(groups, std::move(squares))};
}

template <class Combine>
RowThreads::Groups RowThreads::groups_of(const std::vector<Numbers>& accesses,
                                         Combine&& combine) const {
  const GroupLanes reduced = reduce_groups(accesses, lane_in_warp(), lanes(), combine);
  const int count = group_count(static_cast<int>(accesses.size()));
  return warps() == 1 ? in_warp(reduced) : of_all_warps(reduced, count);
}

int RowThreads::group_count(int numbers_of_thread) const {
  const std::int64_t of_row = ceil_div(ceil_div(shape_.h, shape_.vector_elems), kGroup);
  return static_cast<int>(
      std::min<std::int64_t>(of_row, std::int64_t{warps()} * numbers_of_thread));
}

RowThreads::Groups RowThreads::in_warp(const GroupLanes& reduced) const {
  const int distance = lanes() / reduced.slots;
  const Value exists = reduced.count == reduced.slots ? constant(pred, true)
                                                      : lane_in_warp() < reduced.count * distance;
  Numbers mine;
  mine.reserve(reduced.mine.size());
  for (const Value& number : reduced.mine)
    mine.push_back(select(exists, number, 0.0f));
  return {{std::move(mine)}, {exists}, reduced.count, reduced.slots, distance};
}

/// After one barrier each thread reads the results of a few groups, or each lane those of some of
/// many: shared memory takes four turns to give all lanes 16 bytes.
RowThreads::Groups RowThreads::of_all_warps(const GroupLanes& reduced, int count) const {
  constexpr int kFew = 8, kLanes = 32;
  const int numbers = static_cast<int>(reduced.mine.size());
  const Tensor area = exchange_area(warps() * reduced.count, numbers);
  const int distance = kLanes / reduced.slots;
  const Value slot = lane_idx() / distance;
  if_(lane_idx() % distance == 0 && slot < reduced.count, [&] {
    for (int i = 0; i < numbers; ++i)
      area(slot * warps() + warp_idx(), i) = reduced.mine[static_cast<std::size_t>(i)];
  });
  barrier();
  const int width = std::gcd(count, 4);  // of an access
  const int accesses = count / width;
  const std::int64_t each =
      count <= kFew ? accesses : power_of_two_from(ceil_div(accesses, kLanes));
  Groups groups;
  groups.count = count;
  groups.lanes = static_cast<int>(power_of_two_from(ceil_div(accesses, each)));
  const Value first = groups.lanes == 1 ? constant(s32, 0) : lane_idx() % groups.lanes * each;
  for (int i = 0; i < each; ++i) {
    const Value access = first + i;
    const Value exists = access < accesses;
    std::vector<Fragment> loaded;
    loaded.reserve(reduced.mine.size());
    for (int n = 0; n < numbers; ++n)
      loaded.push_back(load_if(exists, area(access * width, n), width));
    for (int e = 0; e < width; ++e) {
      groups.exist.push_back(exists);
      groups.mine.emplace_back();
      for (const Fragment& of_number : loaded)
        groups.mine.back().emplace_back(of_number[e].get());
    }
  }
  return groups;
}

Value RowThreads::sum_of_groups(const Groups& groups, std::vector<Value> mine) const {
  std::vector<Value> sums{tree_sum(std::move(mine))};
  for (int lane = 1; lane < groups.lanes; lane *= 2)
    sums.push_back(sums.back() + shuffle_xor(sums.back(), lane * groups.distance, lanes()));
  return sums.back();
}

Value sum_of_squares(const Fragment& access) {
  Var sum(f32, 0.0f);
  for (int i = 0; i < access.size(); ++i)
    sum = fma(access[i].get(), access[i].get(), sum);
  return sum;
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
