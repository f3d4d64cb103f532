// SPDX-License-Identifier: Apache-2.0
// Pages by a multiplicative hash (Knuth, volume 3, 6.4).
#include "kernels/reshape_and_cache/spread_pages.h"

namespace tilewright {

SpreadPages spread_pages(std::int64_t tokens) {
  SpreadPages spread{.pages = 2, .slots = {}};
  while (spread.pages * SpreadPages::kPageSize < 2 * tokens)
    spread.pages *= 2;
  for (std::int64_t t = 0; t < tokens; ++t) {
    // The factor is odd: no page comes twice.
    const std::int64_t page = (t / SpreadPages::kPageSize * 2654435761) & (spread.pages - 1);
    const std::int64_t slot = page * SpreadPages::kPageSize + t % SpreadPages::kPageSize;
    spread.slots.push_back(static_cast<double>(slot));
  }
  return spread;
}

}  // namespace tilewright
