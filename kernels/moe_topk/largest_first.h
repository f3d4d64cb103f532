// SPDX-License-Identifier: Apache-2.0
// The largest of a thread's keys in falling order, by a network of minima and maxima.
#pragma once

#include "tilewright/value.h"

#include <cstddef>
#include <vector>

namespace tilewright::topk {

/// The `count` largest keys, or all where there are fewer: Batcher's merges of odd and even places
/// (Knuth, The Art of Computer Programming, 5.3.4), less what no result needs.
std::vector<Value> largest_first(const std::vector<Value>& keys, std::size_t count);

}  // namespace tilewright::topk
