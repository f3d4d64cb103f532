// SPDX-License-Identifier: Apache-2.0
// Quotients by constants (Granlund and Montgomery, Division by invariant integers using
// multiplication).
#include "lang/constant_division.h"

#include "lang/fold.h"
#include "lang/operands.h"
#include "lang/tracer.h"

namespace tilewright::lang {
namespace {

__extension__ using Wide = unsigned __int128;

int log2_up(std::uint64_t n) {
  int log = 0;
  while (log < 63 && (std::uint64_t{1} << log) < n)
    ++log;
  return log;
}

/// Where n is negative, what is below the divisor is added before the shift.
Value divide_by_power(const Value& n, int log, const Facts& facts, SourceLoc at) {
  Tracer& tracer = Tracer::current("operator/", at);
  const Type type = n.type();
  const int width = bits(type);
  const Type plain = width == 64 ? u64 : u32;
  const Value count = ValueAccess::constant(u32, log);
  if (n.facts().divisor % (std::int64_t{1} << log) == 0)
    return tracer.pure(with_type("shr.", type), type, {&n, &count}, at, facts);
  const Value last = ValueAccess::constant(u32, width - 1);
  const Value rest = ValueAccess::constant(u32, width - log);
  Value sign = tracer.pure(with_type("shr.", type), type, {&n, &last}, at);
  Value below = tracer.pure(with_type("shr.", plain), type, {&sign, &rest}, at);
  Value raised = tracer.pure(with_type("add.", type), type, {&n, &below}, at);
  return tracer.pure(with_type("shr.", type), type, {&raised, &count}, at, facts);
}

/// floor(2^(width - 1 + log2_up(d)) / d) + 1, which has `width` bits.
std::int64_t multiplier(std::int64_t divisor, int width) {
  const auto d = static_cast<std::uint64_t>(divisor);
  const Wide power = Wide{1} << (width - 1 + log2_up(d));
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(power / d + 1));
}

}  // namespace

bool is_quotient_by_product(const Value& n) {
  const Facts& facts = n.facts();
  const int width = bits(n.type());
  if (width < 32) return false;
  return is_signed(n.type()) || (facts.lo >= 0 && (width == 64 || facts.hi >> 31 == 0));
}

// For |n| <= 2^(width - 1) the product n m / 2^(width - 1 + log) exceeds n / d by less than 1 / d,
// so that its floor is that of n / d, or one below the quotient where n is negative.
Value divide_by_constant(const Value& n, std::int64_t divisor, const Facts& facts, SourceLoc at) {
  Tracer& tracer = Tracer::current("operator/", at);
  const Type type = n.type();
  const int width = bits(type);
  const Type plain = width == 64 ? u64 : u32;
  const int log = log2_up(static_cast<std::uint64_t>(divisor));
  if (divisor == std::int64_t{1} << log) return divide_by_power(n, log, facts, at);
  const bool never_negative = n.facts().lo >= 0;
  const std::int64_t m = multiplier(divisor, width);
  const Value count = ValueAccess::constant(u32, log - 1);
  if (never_negative) {
    const Value factor = ValueAccess::constant(plain, wrap(plain, m));
    Value high = tracer.pure(with_type("mul.hi.", plain), type, {&n, &factor}, at);
    return tracer.pure(with_type("shr.", plain), type, {&high, &count}, at, facts);
  }
  const Value factor = ValueAccess::constant(type, wrap(type, m));
  Value product = tracer.pure(with_type("mul.hi.", type), type, {&n, &factor}, at);
  Value high = wrap(type, m) < 0  // the multiplier is 2^width more than the factor
                   ? tracer.pure(with_type("add.", type), type, {&product, &n}, at)
                   : product;
  Value floor = tracer.pure(with_type("shr.", type), type, {&high, &count}, at);
  const Value last = ValueAccess::constant(u32, width - 1);
  Value sign = tracer.pure(with_type("shr.", type), type, {&n, &last}, at);
  return tracer.pure(with_type("sub.", type), type, {&floor, &sign}, at, facts);
}

}  // namespace tilewright::lang
