// SPDX-License-Identifier: Apache-2.0
// Which leaves of a tensor of rows stay parameters.
#include "kernels/rows/row_arg.h"

namespace tilewright::rows {

TensorArg rows_arg(const View& view) {
  std::int64_t length = 1;
  for (int i = 1; i < view.rank; ++i)
    length *= view.shape[static_cast<std::size_t>(i)];
  return tensor_arg(view, {.extents = 1, .strides = view.stride[0] == length ? 0u : 1u});
}

}  // namespace tilewright::rows
