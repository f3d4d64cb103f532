// SPDX-License-Identifier: Apache-2.0
// An integer that is known while tracing, or a dynamic expression with a known divisor and bounds.
#pragma once

#include "tilewright/error.h"

#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace tilewright {

struct IntNode;

/// How a dynamic Int is made: a symbol, or an operation on two Ints. `div` and `rem` truncate;
/// `and_` and `xor_` are bitwise.
enum class IntOp : std::uint8_t { symbol, add, sub, mul, div, rem, ceil_div, min, max, and_, xor_ };
std::string_view name(IntOp op);

namespace detail {
void retain(const IntNode* node);
void release(const IntNode* node);

/// Shares an immutable T, which counts its owners in `references`. T's own file defines retain and
/// release.
template <class T>
class Shared {
 public:
  Shared() = default;
  explicit Shared(const T* fresh) : object_(fresh) {}  ///< takes over the first reference
  Shared(const Shared& other) : object_(other.object_) {
    if (object_ != nullptr) retain(object_);
  }
  Shared(Shared&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Shared& operator=(Shared other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Shared() {
    if (object_ != nullptr) release(object_);
  }
  const T* get() const { return object_; }

 private:
  const T* object_ = nullptr;
};
}  // namespace detail

/// What is known of a dynamic integer; whoever creates it promises so.
struct IntFacts {
  std::int64_t divisor = 1;  ///< at least 1
  std::int64_t min = 0;
  std::int64_t max = std::numeric_limits<std::int64_t>::max();
};

/// A 64-bit integer, static (a plain value) or dynamic (an immutable expression over symbols).
/// Arithmetic folds when static, throws Error(user) on overflow, and otherwise builds an
/// expression that carries divisor and bounds.
class Int {
 public:
  Int() = default;
  template <std::integral T>
  Int(T value)  // NOLINT(google-explicit-constructor): `Shape{4, 8}` is the way to write a shape
      : value_(checked(value)) {}

  /// A dynamic integer. Two symbols with the same non-zero `id` are the same integer; without an
  /// id only copies of the result are.
  static Int symbol(std::uint64_t id = 0, IntFacts facts = {}, SourceLoc at = SourceLoc::here());

  bool is_static() const { return node() == nullptr; }
  bool is_static(std::int64_t value) const { return is_static() && value_ == value; }
  /// Pre: is_static(). Throws Error(user) otherwise.
  std::int64_t value(SourceLoc at = SourceLoc::here()) const {
    if (!is_static()) throw_dynamic(at);
    return value_;
  }
  /// The expression; null when static.
  const IntNode* node() const { return node_.get(); }

  /// The largest n known to divide the integer; 0 for a static zero, which everything divides.
  std::int64_t divisor() const;
  bool divisible_by(std::int64_t n) const;
  std::int64_t min() const;
  std::int64_t max() const;

  friend Int operator+(const Int& a, const Int& b) { return apply(IntOp::add, a, b); }
  friend Int operator-(const Int& a, const Int& b) { return apply(IntOp::sub, a, b); }
  friend Int operator*(const Int& a, const Int& b) { return apply(IntOp::mul, a, b); }
  friend Int operator/(const Int& a, const Int& b) { return apply(IntOp::div, a, b); }
  friend Int operator%(const Int& a, const Int& b) { return apply(IntOp::rem, a, b); }
  friend Int operator&(const Int& a, const Int& b) { return apply(IntOp::and_, a, b); }
  friend Int operator^(const Int& a, const Int& b) { return apply(IntOp::xor_, a, b); }
  friend Int operator-(const Int& a) { return apply(IntOp::sub, Int(0), a); }
  Int& operator+=(const Int& b) { return *this = *this + b; }
  Int& operator*=(const Int& b) { return *this = *this * b; }

  /// True if the two are provably the same integer.
  friend bool operator==(const Int& a, const Int& b) {
    return a.is_static() && b.is_static() ? a.value_ == b.value_ : same_expression(a, b);
  }

  /// The integer `a op b`. Pre: op is not `symbol`.
  static Int apply(IntOp op, const Int& a, const Int& b);

 private:
  explicit Int(detail::Shared<IntNode> node) : node_(std::move(node)) {}
  template <std::integral T>
  static constexpr std::int64_t checked(T value) {
    if constexpr (std::unsigned_integral<T> && sizeof(T) == sizeof(std::int64_t)) {
      if (value > static_cast<T>(std::numeric_limits<std::int64_t>::max())) throw_too_large();
    }
    return static_cast<std::int64_t>(value);
  }
  [[noreturn]] static void throw_too_large();
  [[noreturn]] void throw_dynamic(SourceLoc at) const;
  static bool same_expression(const Int& a, const Int& b);
  static Int dynamic(IntOp op, const Int& a, const Int& b);

  std::int64_t value_ = 0;
  detail::Shared<IntNode> node_;
};

/// One node of a dynamic integer's expression. `symbol` binds for IntOp::symbol, else lhs and rhs.
struct IntNode {
  IntOp op = IntOp::symbol;
  Int lhs, rhs;
  std::uint64_t symbol = 0;
  IntFacts facts;
  mutable std::uint32_t references = 1;  ///< counted atomically
};

Int ceil_div(const Int& a, const Int& b);
Int min(const Int& a, const Int& b);
Int max(const Int& a, const Int& b);
/// Pre: the sign of a dynamic integer is known from its bounds.
Int abs(const Int& a);
/// -1, 0 or 1. Pre: as abs.
Int signum(const Int& a);
/// Whether a is known to be a multiple of b.
bool is_multiple(const Int& a, const Int& b);
/// The largest integer known to divide both.
std::int64_t gcd(const Int& a, const Int& b);

/// Whether a < b (a == b), where it is known.
std::optional<bool> less(const Int& a, const Int& b);
std::optional<bool> equal(const Int& a, const Int& b);

/// "12", or "?" and "?{div=16}" for a dynamic integer.
std::string to_string(const Int& value);

}  // namespace tilewright
