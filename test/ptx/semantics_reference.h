// SPDX-License-Identifier: Apache-2.0
// Narrow float formats by definition: every value in a table, rounding by looking at the
// neighbours.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace tilewright::ptx::semantics {

enum class Direction { nearest_even, nearest_away, zero, down, up };

/// A format of sign, exponent and mantissa bits. `finite_codes` counts the codes without a sign
/// that are numbers; the next one is what overflow becomes.
class SlowFormat {
 public:
  SlowFormat(int exponent_bits, int mantissa_bits, int bias, std::uint32_t finite_codes,
             std::uint32_t nan)
      : sign_(1u << (exponent_bits + mantissa_bits)), nan_(nan) {
    // One code more: where the largest value's rounding interval ends.
    for (std::uint32_t code = 0; code <= finite_codes; ++code) {
      const int exponent = static_cast<int>(code >> mantissa_bits);
      const std::uint32_t fraction = code & ((1u << mantissa_bits) - 1);
      const double significand =
          static_cast<double>(fraction) + (exponent == 0 ? 0 : std::ldexp(1, mantissa_bits));
      values_.push_back(
          std::ldexp(significand, (exponent == 0 ? 1 : exponent) - bias - mantissa_bits));
    }
  }

  std::uint32_t sign() const { return sign_; }
  std::uint32_t largest() const { return static_cast<std::uint32_t>(values_.size()) - 2; }
  double value(std::uint32_t code) const {
    const double magnitude = values_[code & (sign_ - 1)];
    return (code & sign_) != 0 ? -magnitude : magnitude;
  }

  /// The code of x + rest, where rest is below half a unit of x's last place; `saturates`: overflow
  /// and infinity become the largest.
  std::uint32_t encode(double x, Direction direction, bool saturates, double rest = 0) const {
    if (std::isnan(x)) return nan_;
    const bool negative = std::signbit(x);
    const std::uint32_t sign = negative ? sign_ : 0;
    const double magnitude = std::fabs(x);
    const double tail = negative ? -rest : rest;
    if (std::isinf(x)) return sign | (saturates ? largest() : largest() + 1);
    const auto above = std::partition_point(
        values_.begin(), values_.end(), [&](double v) { return compare(magnitude, tail, v) >= 0; });
    const auto low = static_cast<std::uint32_t>(above - values_.begin() - 1);
    const std::uint32_t code = round(magnitude, tail, low, direction, negative);
    return sign | (code > largest() && saturates ? largest() : code);
  }

 private:
  static int compare(double x, double tail, double y) {
    const double difference = x - y;
    if (difference != 0) return difference > 0 ? 1 : -1;
    return tail > 0 ? 1 : tail < 0 ? -1 : 0;
  }
  std::uint32_t round(double x, double tail, std::uint32_t low, Direction direction,
                      bool negative) const {
    const bool towards_zero = direction == Direction::zero ||
                              (direction == Direction::down && !negative) ||
                              (direction == Direction::up && negative);
    const bool nearest =
        direction == Direction::nearest_even || direction == Direction::nearest_away;
    if (low > largest()) return nearest || !towards_zero ? low : largest();
    if (compare(x, tail, values_[low]) == 0 || towards_zero) return low;
    if (!nearest) return low + 1;
    const int side = compare(x, tail, (values_[low] + values_[low + 1]) / 2);
    if (side != 0) return side > 0 ? low + 1 : low;
    return direction == Direction::nearest_away || (low & 1) != 0 ? low + 1 : low;
  }

  std::vector<double> values_;
  std::uint32_t sign_, nan_;
};

inline const SlowFormat& slow_f16() {
  static const SlowFormat format(5, 10, 15, 0x7c00, 0x7fff);
  return format;
}
inline const SlowFormat& slow_bf16() {
  static const SlowFormat format(8, 7, 127, 0x7f80, 0x7fff);
  return format;
}

}  // namespace tilewright::ptx::semantics
