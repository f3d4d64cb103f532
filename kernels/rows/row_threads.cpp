// SPDX-License-Identifier: Apache-2.0
// Accesses and sums of the threads that share a row.
#include "kernels/rows/row_threads.h"

#include "tilewright/control.h"
#include "tilewright/sync.h"
#include "tilewright/thread.h"

namespace tilewright::rows {
namespace {

Value add(const Value& a, const Value& b) { return a + b; }

}  // namespace

RowThreads::RowThreads(const RowShape& shape)
    : shape_(shape), lane_(linear_thread_idx() % shape.threads_per_row) {}

Value RowThreads::row(Type index) const {
  return block_idx().x.to(index) * shape_.rows_per_block +
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

Value RowThreads::sum(const Value& mine) const {
  int width = shape_.threads_per_row < 32 ? shape_.threads_per_row : 32;
  Value warp_sum = warp_reduce(mine, add, width);
  return warps() == 1 ? warp_sum : sum_of_warps(warp_sum);
}

/// Each sum has shared memory of its own, so that no barrier keeps it from the one before.
Value RowThreads::sum_of_warps(const Value& warp_sum) const {
  Tensor partials = shared(f32, Layout(Shape{warps()}));
  if_(lane_idx() == 0, [&] { partials(warp_idx()) = warp_sum; });
  barrier();
  return reduce(load(partials(0), warps()), add);
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

}  // namespace tilewright::rows
