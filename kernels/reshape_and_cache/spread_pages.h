// SPDX-License-Identifier: Apache-2.0
// Slots for problems that are made up: pages all over a cache, as after a while of serving.
#pragma once

#include <cstdint>
#include <vector>

namespace tilewright {

struct SpreadPages {
  static constexpr std::int64_t kPageSize = 16;
  std::int64_t pages = 0;     ///< of the cache: a power of two, at least twice what the tokens take
  std::vector<double> slots;  ///< of each token, none twice
};
SpreadPages spread_pages(std::int64_t tokens);

}  // namespace tilewright
