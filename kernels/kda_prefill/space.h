// SPDX-License-Identifier: Apache-2.0
// What a launch over whole sequences may choose.
#pragma once

#include "tilewright/device.h"

#include <cstdint>

namespace tilewright {

struct PrefillSizes {
  std::int64_t tokens = 0;  ///< of a sequence, on average if ragged
  std::int64_t sequences = 0;
  std::int64_t v_heads = 0, k = 0, v = 0, chunk = 0;
};
struct PrefillChoice {
  bool chunked = true;
  int scan_warps = 4, stages = 2, cluster = 1, helpers = 0;
};
PrefillChoice choose_prefill(const DeviceProperties& device, const PrefillSizes& sizes);

}  // namespace tilewright
