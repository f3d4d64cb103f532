// SPDX-License-Identifier: Apache-2.0
// Traced values: `Value` (immutable), `Var` (a register that can be assigned), and their operators.
#pragma once

#include "tilewright/error.h"
#include "tilewright/type.h"

#include <concepts>
#include <cstdint>
#include <limits>
#include <utility>

namespace tilewright {

/// The largest group of threads in which a value is the same for every thread.
enum class Uniformity : std::uint8_t { grid, block, warp, thread };

/// What is known of an integer value when traced: it is a multiple of `divisor` and in [lo, hi].
struct Facts {
  std::int64_t divisor = 1;
  std::int64_t lo = std::numeric_limits<std::int64_t>::min();
  std::int64_t hi = std::numeric_limits<std::int64_t>::max();
};

class Var;
class Arg;

/// What one thread will hold when the kernel runs: a constant, or a register plus a constant.
/// Cannot be assigned: what control flow changes is a `Var`. It has no truth when traced: use
/// if_(), select() or while_().
class Value {
 public:
  Value(const Value& other);
  Value(Value&& other) noexcept;
  /// Takes a snapshot of the register.
  // NOLINTNEXTLINE(google-explicit-constructor): reads as an expression
  Value(const Var& var, SourceLoc at = SourceLoc::here());
  // Compilers show this line where one is assigned, as in a C++ loop that accumulates.
  Value& operator=(const Value&) = delete;  // what changes is a Var: assign to one of those
  ~Value() = default;

  Type type() const { return type_; }
  Uniformity uniformity() const { return uniformity_; }
  const Facts& facts() const { return facts_; }
  /// Whether the value is known when traced.
  bool is_constant() const { return !has_reg_; }
  /// Pre: is_constant(), an integer or pred type. Sign-extended.
  std::int64_t constant() const;

  /// Converts. Float to float rounds to nearest even, to tf32 with ties away from zero; float to
  /// integer truncates towards zero and saturates, NaN to 0, or to the top bit alone where a 64-bit
  /// type takes part (PTX ISA, cvt); integer to float rounds to nearest even. To fp8, fp6 and fp4
  /// it saturates, infinity too; NaN stays NaN in fp8 and becomes the largest value in the others.
  /// To 4-bit integers it saturates. What would round twice is refused; for ue8m0: to_ue8m0().
  Value to(Type type, SourceLoc at = SourceLoc::here()) const;
  /// The same bits as another type of the same width.
  Value bitcast(Type type, SourceLoc at = SourceLoc::here()) const;
  /// The same value with facts that the caller vouches for; an emulated run does not check them.
  Value assume(Facts facts) const;

 private:
  friend struct ValueAccess;
  friend class Arg;
  Value() = default;

  Type type_ = Type::none;
  Uniformity uniformity_ = Uniformity::grid;
  bool has_reg_ = false;
  bool direct_var_ = false;     // refers to a Var's register; lives only inside one operation
  mutable bool fresh_ = false;  // nobody else holds the register that the last instruction wrote
  std::uint32_t reg_ = 0;
  std::uint32_t region_ = 0;
  std::int64_t bits_ = 0;  // the constant, or the addend of an integer register
  Facts facts_;
};

/// A register of a fixed type: reading takes a snapshot, `=` is a move.
class Var {
 public:
  /// Uninitialised: reading it before an assignment is reported by the emulator.
  explicit Var(Type type, SourceLoc at = SourceLoc::here());
  /// `uniformity` is promised for every assignment, and checked.
  explicit Var(const Arg& init, Uniformity uniformity = Uniformity::thread);
  Var(Type type, const Arg& init, Uniformity uniformity = Uniformity::thread);
  Var(const Var&) = delete;
  Var(Var&&) = default;

  Var& operator=(const Arg& value);
  Var& operator=(const Var& other);
  Var& operator+=(const Arg& value);
  Var& operator-=(const Arg& value);
  Var& operator*=(const Arg& value);

  Type type() const { return type_; }
  Uniformity uniformity() const { return uniformity_; }
  /// Of a snapshot: see Value.
  Value to(Type type, SourceLoc at = SourceLoc::here()) const {
    return Value(*this, at).to(type, at);
  }
  Value bitcast(Type type, SourceLoc at = SourceLoc::here()) const {
    return Value(*this, at).bitcast(type, at);
  }

 private:
  friend struct ValueAccess;
  Var(std::uint32_t reg, Type type, Uniformity uniformity);
  Type type_ = Type::none;
  Uniformity uniformity_ = Uniformity::thread;
  std::uint32_t reg_ = 0;
};

/// An operand of a traced operation: a Value, a Var or a literal, with the user's line.
/// A literal takes the other operand's type; a `bool` is a predicate.
class Arg {
 public:
  // NOLINTBEGIN(google-explicit-constructor): expressions convert to it
  Arg(const Value& value, SourceLoc at = SourceLoc::here()) : value_(value), at_(at) {}
  Arg(Value&& value, SourceLoc at = SourceLoc::here()) : value_(std::move(value)), at_(at) {}
  Arg(const Var& var, SourceLoc at = SourceLoc::here());
  template <std::integral T>
  Arg(T literal, SourceLoc at = SourceLoc::here())
      : Arg(Literal::integer, static_cast<std::int64_t>(literal), 0, at) {
    if constexpr (std::same_as<T, bool>) kind_ = Literal::boolean;
  }
  template <std::floating_point T>
  Arg(T literal, SourceLoc at = SourceLoc::here())
      : Arg(Literal::real, 0, static_cast<double>(literal), at) {}
  // NOLINTEND(google-explicit-constructor)

  bool is_literal() const { return kind_ != Literal::none; }
  SourceLoc at() const { return at_; }
  /// The operand as a value of `type`: a literal is converted exactly (else Error), a value must
  /// have that type. `what` names the operation in the error.
  Value as(Type type, const char* what) const;
  /// Pre: !is_literal().
  const Value& value() const { return value_; }
  /// The operand at its own type; a literal's is s32 (s64 if it does not fit), f32 or pred.
  Value natural() const;
  /// As natural(), with a Var read now.
  Value settled() const;

 private:
  enum class Literal : std::uint8_t { none, integer, real, boolean };
  Arg(Literal kind, std::int64_t integer, double real, SourceLoc at);
  Value value_;
  Literal kind_ = Literal::none;
  std::int64_t integer_ = 0;
  double real_ = 0;
  SourceLoc at_;
};

/// A constant of a type: constant(f32, 1.5), constant(s64, 7).
Value constant(Type type, const Arg& literal);

// Arithmetic. Both operands have one type. Floating point rounds each operation to nearest even
// (printed with .rn, so that ptxas contracts nothing); integers wrap. Shifts take a u32 or s32
// count.
Value operator+(const Arg& a, const Arg& b);
Value operator-(const Arg& a, const Arg& b);
Value operator*(const Arg& a, const Arg& b);
Value operator/(const Arg& a, const Arg& b);  ///< f32, f64: correctly rounded; integers truncate
Value operator%(const Arg& a, const Arg& b);
Value operator&(const Arg& a, const Arg& b);
Value operator|(const Arg& a, const Arg& b);
Value operator^(const Arg& a, const Arg& b);
Value operator<<(const Arg& a, const Arg& b);
Value operator>>(const Arg& a, const Arg& b);  ///< arithmetic for signed types
Value operator-(const Arg& a);
Value operator~(const Arg& a);
Value operator!(const Arg& a);
Value operator&&(const Arg& a, const Arg& b);  ///< predicates; both sides are evaluated
Value operator||(const Arg& a, const Arg& b);
// Comparisons give a predicate; with a NaN operand all but != are false.
Value operator==(const Arg& a, const Arg& b);
Value operator!=(const Arg& a, const Arg& b);
Value operator<(const Arg& a, const Arg& b);
Value operator<=(const Arg& a, const Arg& b);
Value operator>(const Arg& a, const Arg& b);
Value operator>=(const Arg& a, const Arg& b);

enum class NanMode : std::uint8_t { drop, propagate };
Value min(const Arg& a, const Arg& b, NanMode nan = NanMode::drop);
Value max(const Arg& a, const Arg& b, NanMode nan = NanMode::drop);
Value abs(const Arg& a);
/// a * b + c with one rounding (floats), or the low half of the product plus c (integers).
Value fma(const Arg& a, const Arg& b, const Arg& c);
/// condition ? a : b, both evaluated.
Value select(const Arg& condition, const Arg& a, const Arg& b);
/// The 64-bit product of two 32-bit integers.
Value mul_wide(const Arg& a, const Arg& b);
/// The high half of the product of two integers.
Value mul_hi(const Arg& a, const Arg& b);
/// 1 / sqrt(x) in f32, at most 2 ulp off (PTX ISA, rsqrt.approx; subnormal inputs kept).
Value rsqrt_approx(const Arg& x);
/// 1 / x in f32, at most 1 ulp off (PTX ISA, rcp.approx).
Value rcp_approx(const Arg& x);
/// 2^x in f32, at most 2 ulp off (PTX ISA, ex2.approx).
Value exp2_approx(const Arg& x);
/// log2(x) in f32 with the error of PTX ISA's lg2.approx: 2^-22 relative or, in [0.5, 2], absolute.
Value log2_approx(const Arg& x);
/// tanh(x) in f32 with relative error at most 2^-11 (PTX ISA, tanh.approx).
Value tanh_approx(const Arg& x);
/// sqrt(x), correctly rounded (f32, f64).
Value sqrt(const Arg& x);

}  // namespace tilewright
