// SPDX-License-Identifier: Apache-2.0
// Views of batches and of their tensors, on the host and traced.
#include "kernels/rows/row_batch.h"

#include <array>
#include <string>
#include <vector>

namespace tilewright::rows {

void check_batch(const View& view, std::string_view which, const Caller& caller) {
  const std::string what = std::string(which) + " is " + to_string(view);
  if (view.rank != 3) caller.refuse(what + "; with experts it must have the modes [E, T, N]");
  if (view.shape[2] > 1 && view.stride[2] != 1) caller.refuse(what + "; its last stride must be 1");
}

View first_of(const View& batch) {
  TW_ASSERT(batch.rank > 0, "a batch has an outermost mode");
  View one = batch;
  --one.rank;
  for (std::size_t i = 0; i < static_cast<std::size_t>(one.rank); ++i) {
    one.shape[i] = batch.shape[i + 1];
    one.stride[i] = batch.stride[i + 1];
  }
  one.shape[static_cast<std::size_t>(one.rank)] = 0;
  one.stride[static_cast<std::size_t>(one.rank)] = 0;
  return one;
}

View batch_of(const View& one, const View& batch) {
  View all = one;
  ++all.rank;
  for (std::size_t i = static_cast<std::size_t>(one.rank); i > 0; --i) {
    all.shape[i] = one.shape[i - 1];
    all.stride[i] = one.stride[i - 1];
  }
  all.shape[0] = batch.shape[0];
  all.stride[0] = batch.stride[0];
  return all;
}

View as_matrix(const View& rows) {
  if (rows.rank == 2) return rows;
  return make_view(0, rows.type, std::array{rows.shape[0] * rows.shape[1], rows.shape[2]});
}

DynamicModes modes_of_batch(DynamicModes one) {
  return {.extents = one.extents << 1 | 1, .strides = one.strides << 1 | 1};
}

LaunchConfig launch_of_batch(LaunchConfig one, std::int64_t count, const Caller& caller) {
  constexpr std::int64_t kMaxGridZ = 65'535;  // CUDA Programming Guide, technical specifications
  if (count > kMaxGridZ) {
    caller.refuse("there are " + std::to_string(count) + " experts; a launch has " +
                  std::to_string(kMaxGridZ) + " at most");
  }
  one.grid.z = static_cast<int>(count);
  return one;
}

Tensor one_of(const Tensor& batch, const Value& index) {
  std::vector<IntTuple> at(static_cast<std::size_t>(batch.layout().rank()), IntTuple(_));
  at.front() = to_int(index);
  return batch.slice(IntTuple::tuple(std::move(at)));
}

std::optional<Tensor> one_of(const std::optional<Tensor>& batch, const Value& index) {
  return batch ? std::optional(one_of(*batch, index)) : std::nullopt;
}

}  // namespace tilewright::rows
