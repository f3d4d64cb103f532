// SPDX-License-Identifier: Apache-2.0
// What a sweep of a function finds.
#pragma once

#include <algorithm>
#include <cstdint>

namespace bench {

/// Which inputs: those of index first, first + stride, ...
struct Inputs {
  std::uint64_t first = 0, stride = 1, count = 0;
};

/// The worst result so far.
struct Worst {
  double ulp = -1;
  std::int64_t steps = 0;  // the most
  std::uint64_t inputs = 0, beyond_bound = 0;
  std::uint64_t compared = 0, unlike_host = 0;  // whose bits were compared with the host's
  float x = 0, y = 0, got = 0;

  void merge(const Worst& other) {
    if (other.ulp > ulp) {
      ulp = other.ulp, x = other.x, y = other.y, got = other.got;
    }
    steps = std::max(steps, other.steps);
    inputs += other.inputs;
    beyond_bound += other.beyond_bound;
    compared += other.compared;
    unlike_host += other.unlike_host;
  }
};

}  // namespace bench
