// SPDX-License-Identifier: Apache-2.0
// Random layouts for property tests, reproducible from a printed seed.
#pragma once

#include "tilewright/layout.h"

#include <algorithm>
#include <cstdint>
#include <gtest/gtest.h>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace tilewright {

class RandomLayouts {
 public:
  explicit RandomLayouts(std::uint32_t seed) : engine_(seed) {}

  int pick(int low, int high) {
    return low + static_cast<int>(engine_() % static_cast<std::uint32_t>(high - low + 1));
  }
  std::int64_t pick(std::initializer_list<std::int64_t> values) {
    return values.begin()[pick(0, static_cast<int>(values.size()) - 1)];
  }

  std::vector<IntTuple> extents(int most_modes) {
    std::vector<IntTuple> result;
    const int modes = pick(1, most_modes);
    for (int i = 0; i < modes; ++i) {
      result.emplace_back(pick({1, 2, 2, 3, 4, 4, 5, 6, 8}));
    }
    return result;
  }

  /// A random nesting of these leaves; a single leaf may stay bare.
  IntTuple nested(std::vector<IntTuple> leaves) {
    if (leaves.size() == 1 && pick(0, 1) == 0) return leaves[0];
    std::vector<IntTuple> modes;
    for (std::size_t i = 0; i < leaves.size();) {
      const std::size_t take =
          std::min<std::size_t>(static_cast<std::size_t>(pick(1, 2)), leaves.size() - i);
      const auto first = leaves.begin() + static_cast<std::ptrdiff_t>(i);
      std::vector<IntTuple> part(first, first + static_cast<std::ptrdiff_t>(take));
      modes.push_back(take == 1 ? part[0] : IntTuple::tuple(std::move(part)));
      i += take;
    }
    return IntTuple::tuple(std::move(modes));
  }

  Shape shape(int most_modes) { return nested(extents(most_modes)); }

  /// Any strides: negative, zero, overlapping.
  Layout any(int most_modes = 4) {
    const Shape s = shape(most_modes);
    return {s, strides(s, [this] { return pick({0, 1, 1, 2, 3, 4, 6, 8, 12, -1, -4}); })};
  }

  /// Modes in random order, each a whole multiple beyond the last: injective, with gaps.
  Layout injective(int most_modes = 4) {
    return spread(most_modes, [this](std::int64_t end) { return end * pick(1, 3); });
  }
  /// Modes in random order, each some elements beyond the last: injective, with gaps of any size.
  Layout padded(int most_modes = 4) {
    return spread(most_modes, [this](std::int64_t end) { return end + pick(0, 3); });
  }
  /// Modes in random order without gaps.
  Layout compact(int most_modes = 4) {
    return spread(most_modes, [](std::int64_t end) { return end; });
  }

  /// A shape whose size divides `size`.
  Layout divisor_of(std::int64_t size, int most_modes = 3) {
    std::vector<IntTuple> leaves;
    const int modes = pick(1, most_modes);
    for (int i = 0; i < modes; ++i) {
      const std::int64_t extent = pick({1, 2, 3, 4, 6});
      if (size % extent != 0) continue;
      leaves.emplace_back(extent);
      size /= extent;
    }
    if (leaves.empty()) leaves.emplace_back(1);
    return Layout(nested(std::move(leaves)));
  }

 private:
  template <class F>
  static Stride strides(const Shape& shape, F&& next) {
    if (!shape.is_tuple()) return next();
    std::vector<IntTuple> result;
    for (const IntTuple& e : shape.elems()) {
      result.push_back(strides(e, next));
    }
    return IntTuple::tuple(std::move(result));
  }

  /// `begin(end)`: where a mode begins after those that end before `end`.
  template <class Begin>
  Layout spread(int most_modes, Begin&& begin) {
    const std::vector<IntTuple> leaves = extents(most_modes);
    std::vector<std::size_t> order(leaves.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::shuffle(order.begin(), order.end(), engine_);
    std::vector<std::int64_t> stride(leaves.size());
    std::int64_t next = 1;
    for (std::size_t i : order) {
      next = begin(next);
      stride[i] = next;
      next *= leaves[i].value().value();
    }
    const Shape s = nested(leaves);
    std::size_t at = 0;
    return {s, strides(s, [&] { return stride[at++]; })};
  }

  std::mt19937 engine_;
};

constexpr std::uint32_t kFirstSeed = 20'260'101;
constexpr int kRounds = 400;

/// Runs `body` for many seeds and prints the seed of a failure.
template <class Body>
void for_each_seed(Body&& body) {
  for (int round = 0; round < kRounds; ++round) {
    const std::uint32_t seed = kFirstSeed + static_cast<std::uint32_t>(round);
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomLayouts random(seed);
    body(random);
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace tilewright
