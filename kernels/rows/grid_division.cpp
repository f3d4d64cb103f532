// SPDX-License-Identifier: Apache-2.0
// Granlund and Montgomery, Division by invariant integers using multiplication.
#include "kernels/rows/grid_division.h"

#include "tilewright/bit.h"

namespace tilewright::rows {

// With 2^(log - 1) < d <= 2^log and m = floor(2^(31 + log) / d) + 1, n m / 2^(31 + log) exceeds n /
// d by less than 1 / d for all n < 2^31. m has 32 bits, and log is the bits of d - 1.
std::uint64_t divisor_parameter(std::int64_t divisor) {
  const auto d = static_cast<std::uint64_t>(divisor);
  int log = 0;
  while (std::uint64_t{1} << log < d)
    ++log;
  return d << 32 | ((std::uint64_t{1} << (31 + log)) / d + 1);
}

ScalarArg divisor_arg() { return {u64, {}}; }

Divided divided(const Value& n, const Value& divisor) {
  Value d = (divisor >> 32).to(u32);
  Value shift = constant(u32, 63) - clz(d - 1);
  Value product = n.to(u32).to(u64) * divisor.to(u32).to(u64);
  Value quotient = (product >> shift).to(u32).to(s32);
  return {quotient, n - quotient * d.to(s32)};
}

}  // namespace tilewright::rows
