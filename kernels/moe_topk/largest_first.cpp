// SPDX-License-Identifier: Apache-2.0
// A sorting network, recorded for the results that are wanted.
#include "kernels/moe_topk/largest_first.h"

#include <algorithm>
#include <cstdint>

namespace tilewright::topk {
namespace {

using Keys = std::vector<Value>;

Keys first_of(const Keys& keys, std::size_t count) {
  const auto size = static_cast<std::ptrdiff_t>(std::min(keys.size(), count));
  return {keys.begin(), keys.begin() + size};
}

/// Every second key, from number `first` on.
Keys every_second(const Keys& keys, std::size_t first) {
  Keys some;
  for (std::size_t i = first; i < keys.size(); i += 2)
    some.push_back(keys[i]);
  return some;
}

/// The `count` largest of two falling sequences.
Keys merge(const Keys& all_a, const Keys& all_b, std::size_t count) {
  const Keys a = first_of(all_a, count), b = first_of(all_b, count);
  if (a.empty() || b.empty()) return a.empty() ? b : a;
  if (a.size() == 1 && b.size() == 1) {
    Keys both{max(a[0], b[0])};
    if (count > 1) both.push_back(min(a[0], b[0]));
    return both;
  }
  // Of the merged halves, x[i + 1] and y[i] have the places 2 i + 1 and 2 i + 2.
  const Keys x = merge(every_second(a, 0), every_second(b, 0), count / 2 + 1);
  const Keys y = merge(every_second(a, 1), every_second(b, 1), count / 2);
  const std::size_t size = std::min(count, a.size() + b.size());
  Keys merged{x[0]};
  for (std::size_t i = 0; merged.size() < size; ++i) {
    if (i + 1 < x.size() && i < y.size()) {
      merged.push_back(max(x[i + 1], y[i]));
      if (merged.size() < size) merged.push_back(min(x[i + 1], y[i]));
    } else {
      merged.push_back(i < y.size() ? y[i] : x[i + 1]);
    }
  }
  return merged;
}

}  // namespace

Keys largest_first(const Keys& keys, std::size_t count) {
  if (keys.size() < 2) return first_of(keys, count);
  const auto middle = keys.begin() + static_cast<std::ptrdiff_t>(keys.size() / 2);
  return merge(largest_first({keys.begin(), middle}, count),
               largest_first({middle, keys.end()}, count), count);
}

}  // namespace tilewright::topk
