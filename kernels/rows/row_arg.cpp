// SPDX-License-Identifier: Apache-2.0
// Which leaves of a tensor of rows stay parameters.
#include "kernels/rows/row_arg.h"

namespace tilewright::rows {

namespace {

TensorArg arg_of(const View& view, std::uint32_t extents) {
  std::int64_t length = 1;
  for (int i = 1; i < view.rank; ++i)
    length *= view.shape[static_cast<std::size_t>(i)];
  return tensor_arg(view, {.extents = extents, .strides = view.stride[0] == length ? 0u : 1u});
}

}  // namespace

TensorArg rows_arg(const View& view) { return arg_of(view, 1); }

TensorArg uncounted_rows_arg(const View& view) {
  const View rows = uncounted(view);
  return arg_of(rows, rows == view ? 1 : 0);
}

View uncounted(const View& view) {
  constexpr std::int64_t kAny = std::int64_t{1} << 30;  // as far as an extent is short
  View rows = view;
  if (view.rank < 3 && view.shape[0] < kAny) rows.shape[0] = kAny;
  return rows;
}

}  // namespace tilewright::rows
