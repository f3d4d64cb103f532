// SPDX-License-Identifier: Apache-2.0
// Arithmetic on static and dynamic integers: folding, simplification, divisors and bounds.
#include "tilewright/int.h"

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>

namespace tilewright {
namespace {

constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
__extension__ using Wide = __int128;  // products of two 64-bit bounds

std::int64_t clamp(Wide value) {
  return static_cast<std::int64_t>(std::clamp<Wide>(value, kMin, kMax));
}

std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  const std::int64_t q = a / b;
  return q - static_cast<std::int64_t>(a % b != 0 && (a < 0) != (b < 0));
}

std::int64_t ceil_of(std::int64_t a, std::int64_t b) {
  const std::int64_t q = a / b;
  return q + static_cast<std::int64_t>(a % b != 0 && (a < 0) == (b < 0));
}

[[noreturn]] void overflow(IntOp op, std::int64_t a, std::int64_t b) {
  throw Error(ErrorKind::user, "integer overflow: " + std::to_string(a) + " " +
                                   std::string(name(op)) + " " + std::to_string(b) +
                                   " does not fit 64 bits; use smaller shapes or strides");
}

std::int64_t fold(IntOp op, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  switch (op) {
    case IntOp::add:
      if (__builtin_add_overflow(a, b, &result)) overflow(op, a, b);
      return result;
    case IntOp::sub:
      if (__builtin_sub_overflow(a, b, &result)) overflow(op, a, b);
      return result;
    case IntOp::mul:
      if (__builtin_mul_overflow(a, b, &result)) overflow(op, a, b);
      return result;
    case IntOp::div:
    case IntOp::rem:
    case IntOp::ceil_div:
      if (b == 0) {
        throw Error(ErrorKind::user, "division by zero: " + std::to_string(a) + " " +
                                         std::string(name(op)) +
                                         " 0; a divisor, shape or stride must not be 0 here");
      }
      if (a == kMin && b == -1) overflow(op, a, b);
      if (op == IntOp::div) return a / b;
      return op == IntOp::rem ? a % b : ceil_of(a, b);
    case IntOp::min:
      return std::min(a, b);
    case IntOp::max:
      return std::max(a, b);
    case IntOp::and_:
      return a & b;
    case IntOp::xor_:
      return a ^ b;
    case IntOp::symbol:
      break;
  }
  TW_ASSERT(false, "a symbol is no operation");
  return 0;
}

bool commutes(IntOp op) {
  return op != IntOp::sub && op != IntOp::div && op != IntOp::rem && op != IntOp::ceil_div;
}

// x and c of x + c.
std::pair<Int, Int> split_constant(const Int& a) {
  if (a.is_static()) return {Int(0), a};
  const IntNode& node = *a.node();
  if (node.op == IntOp::add && node.rhs.is_static()) return {node.lhs, node.rhs};
  return {a, Int(0)};
}

// Rewrites that need no new node. Nothing when there is none.
std::optional<Int> simplify(IntOp op, const Int& a, const Int& b) {
  switch (op) {
    case IntOp::add:
      if (a.is_static(0)) return b;
      if (b.is_static(0)) return a;
      break;
    case IntOp::sub: {
      if (b.is_static(0)) return a;
      const auto [x, c] = split_constant(a);
      const auto [y, d] = split_constant(b);
      if (x == y) return c - d;
      break;
    }
    case IntOp::mul:
      if (a.is_static(0) || b.is_static(0)) return Int(0);
      if (a.is_static(1)) return b;
      if (b.is_static(1)) return a;
      break;
    case IntOp::div:
    case IntOp::ceil_div:
      if (b.is_static(1) || a.is_static(0)) return a;
      if (a == b && (a.min() > 0 || a.max() < 0)) return Int(1);
      if (b.min() > 0 && a.min() >= 0 && a.max() < b.min() && op == IntOp::div) return Int(0);
      break;
    case IntOp::rem:
      if (b.is_static(1) || a.is_static(0)) return Int(0);
      if (b.is_static() && a.divisible_by(b.value())) return Int(0);
      if (a.min() >= 0 && a.max() < b.min()) return a;
      break;
    case IntOp::min:
      if (a == b || a.max() <= b.min()) return a;
      if (b.max() <= a.min()) return b;
      break;
    case IntOp::max:
      if (a == b || a.min() >= b.max()) return a;
      if (b.min() >= a.max()) return b;
      break;
    case IntOp::and_:
      if (a.is_static(0) || b.is_static(0)) return Int(0);
      if (a == b) return a;
      break;
    case IntOp::xor_:
      if (a.is_static(0)) return b;
      if (b.is_static(0)) return a;
      if (a == b) return Int(0);
      break;
    case IntOp::symbol:
      break;
  }
  return std::nullopt;
}

// Rewrites through a node whose right operand is static: (x + c) + d, (x + c) * d, (x * c) * d,
// (x * c) / d, (x / c) / d, and (x / d) * c where d divides x.
std::optional<Int> reassociate(IntOp op, const Int& a, const Int& b) {
  if (a.is_static() || !b.is_static()) return std::nullopt;
  const IntNode& node = *a.node();
  if (!node.rhs.is_static() || node.op == IntOp::symbol) return std::nullopt;
  const bool divides = op == IntOp::div || op == IntOp::ceil_div;
  if (op == IntOp::add && node.op == IntOp::add) return node.lhs + (node.rhs + b);
  if (op == IntOp::mul && node.op == IntOp::add) return node.lhs * b + node.rhs * b;
  if (op == IntOp::mul && node.op == IntOp::mul) return node.lhs * (node.rhs * b);
  if (divides && node.op == IntOp::mul && node.rhs.divisible_by(b.value())) {
    return node.lhs * (node.rhs / b);
  }
  if (divides && node.op == IntOp::div && node.lhs.min() >= 0 && b.value() > 0 &&
      node.rhs.value() > 0 && (op == IntOp::div || node.lhs.divisible_by(node.rhs.value()))) {
    return Int::apply(op, node.lhs, node.rhs * b);
  }
  const bool exact = node.op == IntOp::div || node.op == IntOp::ceil_div;
  if (op == IntOp::mul && exact && node.lhs.divisible_by(node.rhs.value()) &&
      b.divisible_by(node.rhs.value())) {
    return node.lhs * (b / node.rhs);
  }
  return std::nullopt;
}

// The largest power of two that divides.
std::int64_t low_bit(std::int64_t n) { return n == 0 ? 1 : n & -n; }

// The smallest 2^k - 1 that is at least n >= 0.
std::int64_t mask_over(std::int64_t n) {
  std::uint64_t bits = static_cast<std::uint64_t>(n);
  for (unsigned shift = 1; shift < 64; shift *= 2) {
    bits |= bits >> shift;
  }
  return static_cast<std::int64_t>(bits);
}

std::int64_t divisor_of(IntOp op, const Int& a, const Int& b) {
  const std::int64_t da = a.divisor();
  const std::int64_t db = b.divisor();
  switch (op) {
    case IntOp::add:
    case IntOp::sub:
    case IntOp::rem:
    case IntOp::min:
    case IntOp::max:
      return std::gcd(da, db);
    case IntOp::mul: {
      std::int64_t product = 0;
      return __builtin_mul_overflow(da, db, &product) ? std::max(da, db) : product;
    }
    case IntOp::div:
    case IntOp::ceil_div:
      return b.is_static() && a.divisible_by(b.value()) ? std::max<std::int64_t>(da / db, 1) : 1;
    case IntOp::and_:
      return std::max(low_bit(da), low_bit(db));
    case IntOp::xor_:
      return std::min(low_bit(da), low_bit(db));
    case IntOp::symbol:
      break;
  }
  return 1;
}

struct Bounds {
  std::int64_t lo, hi;
};

Bounds quotient_bounds(IntOp op, const Int& a, const Int& b) {
  if (b.min() <= 0) return {kMin, kMax};  // not a divisor that shapes have
  const auto divide = [op](std::int64_t x, std::int64_t y) {
    return op == IntOp::div ? x / y : ceil_of(x, y);
  };
  return {std::min(divide(a.min(), b.min()), divide(a.min(), b.max())),
          std::max(divide(a.max(), b.min()), divide(a.max(), b.max()))};
}

Bounds bounds_of(IntOp op, const Int& a, const Int& b) {
  const Wide alo = a.min();
  const Wide ahi = a.max();
  const Wide blo = b.min();
  const Wide bhi = b.max();
  switch (op) {
    case IntOp::add:
      return {clamp(alo + blo), clamp(ahi + bhi)};
    case IntOp::sub:
      return {clamp(alo - bhi), clamp(ahi - blo)};
    case IntOp::mul: {
      const std::array<Wide, 4> corners{alo * blo, alo * bhi, ahi * blo, ahi * bhi};
      return {clamp(*std::min_element(corners.begin(), corners.end())),
              clamp(*std::max_element(corners.begin(), corners.end()))};
    }
    case IntOp::div:
    case IntOp::ceil_div:
      return quotient_bounds(op, a, b);
    case IntOp::rem: {
      const Wide limit = std::max(bhi < 0 ? -bhi : bhi, blo < 0 ? -blo : blo) - 1;
      return {clamp(alo >= 0 ? Wide{0} : std::max(alo, -limit)),
              clamp(ahi <= 0 ? Wide{0} : std::min(ahi, limit))};
    }
    case IntOp::min:
      return {std::min(a.min(), b.min()), std::min(a.max(), b.max())};
    case IntOp::max:
      return {std::max(a.min(), b.min()), std::max(a.max(), b.max())};
    case IntOp::and_:
      if (a.min() < 0 && b.min() < 0) return {kMin, kMax};
      return {0, std::min(a.min() < 0 ? kMax : a.max(), b.min() < 0 ? kMax : b.max())};
    case IntOp::xor_:
      if (a.min() < 0 || b.min() < 0) return {kMin, kMax};
      return {0, mask_over(std::max(a.max(), b.max()))};
    case IntOp::symbol:
      break;
  }
  return {kMin, kMax};
}

// Bounds moved inwards to multiples of the divisor.
IntFacts tightened(std::int64_t divisor, Bounds bounds) {
  IntFacts facts{divisor, bounds.lo, bounds.hi};
  if (divisor > 1) {
    if (facts.min != kMin) facts.min = clamp(Wide{ceil_of(facts.min, divisor)} * divisor);
    if (facts.max != kMax) facts.max = clamp(Wide{floor_div(facts.max, divisor)} * divisor);
  }
  return facts;
}

}  // namespace

std::string_view name(IntOp op) {
  constexpr std::array<std::string_view, 11> kNames{"symbol",   "+",   "-",   "*", "/", "%",
                                                    "ceil_div", "min", "max", "&", "^"};
  return kNames[static_cast<std::size_t>(op)];
}

Int Int::symbol(std::uint64_t id, IntFacts facts, SourceLoc at) {
  IntFacts known = facts;
  if (facts.divisor >= 1) known = tightened(facts.divisor, {facts.min, facts.max});
  if (facts.divisor < 1 || known.min > known.max) {
    throw Error(ErrorKind::user,
                "dynamic integer: divisor " + std::to_string(facts.divisor) + " and bounds " +
                    std::to_string(facts.min) + ".." + std::to_string(facts.max) +
                    " contradict; give a divisor of at least 1 and min <= max",
                at);
  }
  if (known.min == known.max) return known.min;
  auto node = std::make_unique<IntNode>();
  node->symbol = id;
  node->facts = known;
  return Int(detail::Shared<IntNode>(node.release()));
}

Int Int::dynamic(IntOp op, const Int& a, const Int& b) {
  const Bounds bounds = bounds_of(op, a, b);
  const IntFacts facts = tightened(divisor_of(op, a, b), bounds);
  if (facts.min == facts.max) return facts.min;
  auto node = std::make_unique<IntNode>();
  node->op = op;
  node->lhs = a;
  node->rhs = b;
  node->facts = facts;
  return Int(detail::Shared<IntNode>(node.release()));
}

Int Int::apply(IntOp op, const Int& a, const Int& b) {
  if (a.is_static() && b.is_static()) return fold(op, a.value_, b.value_);
  if (b.is_static(0) && (op == IntOp::div || op == IntOp::rem || op == IntOp::ceil_div)) {
    throw Error(ErrorKind::user, "division by zero: " + to_string(a) + " " + std::string(name(op)) +
                                     " 0; a divisor, shape or stride must not be 0 here");
  }
  if (std::optional<Int> result = simplify(op, a, b)) return *std::move(result);
  if (commutes(op) && a.is_static()) return apply(op, b, a);  // constants stand on the right
  if (op == IntOp::sub && b.is_static() && b.value_ != kMin) return a + Int(-b.value_);
  if (std::optional<Int> result = reassociate(op, a, b)) return *std::move(result);
  return dynamic(op, a, b);
}

namespace detail {

void retain(const IntNode* node) { __atomic_fetch_add(&node->references, 1, __ATOMIC_RELAXED); }

void release(const IntNode* node) {
  if (__atomic_sub_fetch(&node->references, 1, __ATOMIC_ACQ_REL) == 0) delete node;
}

}  // namespace detail

std::int64_t Int::divisor() const {
  if (!is_static()) return node()->facts.divisor;
  return value_ == kMin ? kMax / 2 + 1 : (value_ < 0 ? -value_ : value_);
}

bool Int::divisible_by(std::int64_t n) const {
  if (n == 0) return is_static(0);
  if (n == -1) return true;
  return is_static() ? value_ % n == 0 : node()->facts.divisor % n == 0;
}

std::int64_t Int::min() const { return is_static() ? value_ : node()->facts.min; }
std::int64_t Int::max() const { return is_static() ? value_ : node()->facts.max; }

bool Int::same_expression(const Int& a, const Int& b) {
  if (a.is_static() || b.is_static()) return a.is_static() && b.is_static() && a.value_ == b.value_;
  if (a.node() == b.node()) return true;
  const IntNode& x = *a.node();
  const IntNode& y = *b.node();
  if (x.op != y.op) return false;
  if (x.op == IntOp::symbol) return x.symbol != 0 && x.symbol == y.symbol;
  return (x.lhs == y.lhs && x.rhs == y.rhs) || (commutes(x.op) && x.lhs == y.rhs && x.rhs == y.lhs);
}

void Int::throw_too_large() {
  throw Error(ErrorKind::user, "integer overflow: a value above 2^63-1 does not fit a layout");
}

void Int::throw_dynamic(SourceLoc at) const {
  throw Error(ErrorKind::user,
              "the integer " + to_string(*this) +
                  " is dynamic where a value known while tracing is needed; make that shape or "
                  "stride static",
              at);
}

bool is_multiple(const Int& a, const Int& b) {
  if (b.is_static()) return a.divisible_by(b.value());
  if (a.is_static(0) || a == b) return true;
  return a.node() != nullptr && a.node()->op == IntOp::mul &&
         (is_multiple(a.node()->lhs, b) || is_multiple(a.node()->rhs, b));
}

Int ceil_div(const Int& a, const Int& b) { return Int::apply(IntOp::ceil_div, a, b); }
Int min(const Int& a, const Int& b) { return Int::apply(IntOp::min, a, b); }
Int max(const Int& a, const Int& b) { return Int::apply(IntOp::max, a, b); }

Int abs(const Int& a) {
  if (a.min() >= 0) return a;
  return a.max() <= 0 ? -a : max(a, -a);
}

Int signum(const Int& a) {
  if (a.min() > 0) return 1;
  if (a.max() < 0) return -1;
  if (a.is_static()) return 0;
  return max(Int(-1), min(a, Int(1)));
}

std::int64_t gcd(const Int& a, const Int& b) { return std::gcd(a.divisor(), b.divisor()); }

std::optional<bool> less(const Int& a, const Int& b) {
  if (a.max() < b.min()) return true;
  if (a.min() >= b.max() || a == b) return false;
  return std::nullopt;
}

std::optional<bool> equal(const Int& a, const Int& b) {
  if (a == b) return true;
  if (a.max() < b.min() || b.max() < a.min()) return false;
  if (a.is_static() && b.divisor() > 1 && !a.divisible_by(b.divisor())) return false;
  if (b.is_static() && a.divisor() > 1 && !b.divisible_by(a.divisor())) return false;
  return std::nullopt;
}

std::string to_string(const Int& value) {
  if (value.is_static()) return std::to_string(value.value());
  return value.divisor() > 1 ? "?{div=" + std::to_string(value.divisor()) + "}" : "?";
}

}  // namespace tilewright
