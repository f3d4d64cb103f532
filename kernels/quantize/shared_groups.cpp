// SPDX-License-Identifier: Apache-2.0
// Steps that leave each lane the groups that are its own.
#include "kernels/quantize/shared_groups.h"

#include "kernels/quantize/group_codes.h"
#include "tilewright/sync.h"
#include "tilewright/thread.h"

namespace tilewright {
namespace {

/// Of each two groups, a lane keeps the one that its bit says and gives the other away.
std::vector<Value> exchanged(const std::vector<Value>& largest, int bit, int width) {
  const Value second = (lane_idx() & bit) != 0;
  std::vector<Value> left;
  for (std::size_t i = 0; i < largest.size(); i += 2) {
    const bool pair = i + 1 < largest.size();
    const Value kept = pair ? select(second, largest[i + 1], largest[i]) : largest[i];
    const Value given = pair ? select(second, largest[i], largest[i + 1]) : largest[i];
    left.push_back(larger(kept, shuffle_xor(given, bit, width)));
  }
  return left;
}

}  // namespace

std::vector<Value> largest_by_lanes(std::vector<Value> largest, int width) {
  for (int bit = 1; bit < width; bit *= 2) {
    std::vector<Value> left = exchanged(largest, bit, width);
    largest.swap(left);
  }
  return largest;
}

}  // namespace tilewright
