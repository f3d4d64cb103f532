// SPDX-License-Identifier: Apache-2.0
// Interval and divisor arithmetic on facts.
#include "lang/facts.h"

#include <algorithm>
#include <numeric>

namespace tilewright::lang {
namespace {

__extension__ using Wide = __int128;  // exact sums and products of 64-bit bounds
constexpr std::int64_t kLow = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kHigh = std::numeric_limits<std::int64_t>::max();

Facts checked(std::int64_t divisor, Wide lo, Wide hi, Type type) {
  Facts range = facts_of_type(type);
  if (lo < range.lo || hi > range.hi) {
    // Wrapping by 2^bits keeps powers of two in the divisor only.
    std::int64_t power = divisor & -divisor;
    return {power, range.lo, range.hi};
  }
  return {divisor, static_cast<std::int64_t>(lo), static_cast<std::int64_t>(hi)};
}

}  // namespace

Facts facts_of_type(Type type) {
  int width = bits(type);
  if (type == Type::pred) return {1, 0, 1};
  if (width >= 64) {
    // u64 values over 2^63 have no bound here: the bounds are signed.
    return {1, kLow, kHigh};
  }
  std::int64_t one = 1;
  if (is_signed(type)) return {1, -(one << (width - 1)), (one << (width - 1)) - 1};
  return {1, 0, (one << width) - 1};
}

Facts facts_less(const Facts& sum, std::int64_t addend, Type type) {
  if (addend == 0) return sum;
  Facts facts = facts_of_type(type);
  const Wide lo = Wide{sum.lo} - addend, hi = Wide{sum.hi} - addend;
  if (sum.lo > facts.lo && sum.hi < facts.hi && lo >= facts.lo && hi <= facts.hi) {
    facts.lo = static_cast<std::int64_t>(lo);
    facts.hi = static_cast<std::int64_t>(hi);
  }
  facts.divisor = std::gcd(sum.divisor, addend);
  return facts;
}

bool fits(const Facts& facts, Type type) {
  Facts range = facts_of_type(type);
  return facts.lo >= range.lo && facts.hi <= range.hi;
}

Facts facts_add(const Facts& a, const Facts& b, Type type) {
  return checked(std::gcd(a.divisor, b.divisor), Wide{a.lo} + b.lo, Wide{a.hi} + b.hi, type);
}

Facts facts_sub(const Facts& a, const Facts& b, Type type) {
  return checked(std::gcd(a.divisor, b.divisor), Wide{a.lo} - b.hi, Wide{a.hi} - b.lo, type);
}

Facts facts_mul(const Facts& a, const Facts& b, Type type) {
  Wide corners[] = {Wide{a.lo} * b.lo, Wide{a.lo} * b.hi, Wide{a.hi} * b.lo, Wide{a.hi} * b.hi};
  Wide divisor = Wide{a.divisor} * b.divisor;
  std::int64_t kept = divisor > (Wide{1} << 62) ? a.divisor : static_cast<std::int64_t>(divisor);
  return checked(kept, *std::min_element(corners, corners + 4),
                 *std::max_element(corners, corners + 4), type);
}

namespace {

/// A u64 that may be 2^63 or more is a negative bound here, which quotients do not follow.
bool beyond_signed(const Facts& a, Type type) {
  return bits(type) == 64 && !is_signed(type) && a.lo < 0;
}

}  // namespace

Facts facts_div(const Facts& a, std::int64_t divisor, Type type) {
  Facts range = facts_of_type(type);
  if (divisor <= 0) return range;
  if (beyond_signed(a, type)) {
    std::uint64_t most = ~std::uint64_t{0} / static_cast<std::uint64_t>(divisor);
    if (divisor == 1) return range;
    return {1, 0, static_cast<std::int64_t>(most)};
  }
  std::int64_t kept = a.divisor % divisor == 0 ? a.divisor / divisor : 1;
  return {std::max<std::int64_t>(kept, 1), a.lo / divisor, a.hi / divisor};
}

Facts facts_rem(const Facts& a, std::int64_t divisor, Type type) {
  Facts range = facts_of_type(type);
  if (divisor <= 0) return range;
  if (beyond_signed(a, type)) return {1, 0, divisor - 1};
  std::int64_t kept = std::gcd(a.divisor, divisor);
  if (a.lo >= 0) return {kept, 0, std::min(a.hi, divisor - 1)};
  return {kept, std::max(a.lo, 1 - divisor),
          std::min(std::max<std::int64_t>(a.hi, 0), divisor - 1)};
}

}  // namespace tilewright::lang
