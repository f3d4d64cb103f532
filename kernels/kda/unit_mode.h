// SPDX-License-Identifier: Apache-2.0
// A mode of extent 1 more: tokens of one sequence, or one token of each request.
#pragma once

#include "tilewright/view.h"

namespace tilewright::kda {

/// The same elements with a mode of extent 1 before mode `position`, 0 or 1.
inline View with_unit_mode(const View& view, int position) {
  View out = view;
  out.rank = view.rank + 1;
  auto one = static_cast<std::size_t>(position);
  for (auto mode = static_cast<std::size_t>(view.rank); mode > one; --mode) {
    out.shape[mode] = view.shape[mode - 1];
    out.stride[mode] = view.stride[mode - 1];
  }
  out.shape[one] = 1;
  out.stride[one] = view.rank > 0 ? view.shape[0] * view.stride[0] : 1;
  return out;
}

}  // namespace tilewright::kda
