// SPDX-License-Identifier: Apache-2.0
// Loads that a kernel traces twice: first to bring what they read near, then to read it.
#pragma once

#include "tilewright/fragment.h"
#include "tilewright/tensor.h"

namespace tilewright::kda {

enum class Access : std::uint8_t {
  load,
  fetch  ///< the lane has its elements brought into the L2 cache, and gets zeros
};

/// `count` elements from `first` on. Where `wanted` is false, none are touched, and all are 0.
Fragment access_if(Access access, const Value& wanted, const Element& first, int count);

}  // namespace tilewright::kda
