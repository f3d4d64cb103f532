// SPDX-License-Identifier: Apache-2.0
// Bits, shifts, comparisons, predicates and selection on values.
#include "lang/facts.h"
#include "lang/fold.h"
#include "lang/operands.h"
#include "lang/tracer.h"
#include "tilewright/value.h"

#include <algorithm>
#include <numeric>

namespace tilewright {
namespace {

using lang::BinaryOp;
using lang::bits_type;
using lang::CompareOp;
using lang::is_arithmetic;
using lang::is_real;
using lang::Pair;
using lang::refuse_type;
using lang::settled;
using lang::Tracer;
using lang::unify;
using lang::with_type;

Value bitwise(BinaryOp op, const char* stem, const Arg& a, const Arg& b, const char* what) {
  Pair p = unify(a, b, what);
  if (!is_integer(p.type) && !is_bits(p.type) && p.type != pred) {
    refuse_type(what, p.type, "integers, bit types and predicates", p.at);
  }
  const Value& x = p.a.is_constant() ? p.b : p.a;
  const Value& y = p.a.is_constant() ? p.a : p.b;
  if (y.is_constant()) {
    std::int64_t c = y.constant();
    if (x.is_constant()) return ValueAccess::constant(p.type, *fold(op, p.type, x.constant(), c));
    bool zero = c == 0;
    bool ones = p.type == pred ? c == 1 : lang::wrap(p.type, c) == lang::wrap(p.type, -1);
    if (op == BinaryOp::and_ && zero) return y;
    if (op == BinaryOp::and_ && ones) return settled(x, p.at);
    if (op == BinaryOp::or_ && zero) return settled(x, p.at);
    if (op == BinaryOp::or_ && ones) return y;
    if (op == BinaryOp::xor_ && zero) return settled(x, p.at);
    if (op == BinaryOp::xor_ && ones && p.type == pred) return !Arg(x, p.at);
  }
  return Tracer::current(what, p.at)
      .pure(with_type(stem, bits_type(p.type)), p.type, {&x, &y}, p.at,
            lang::facts_of_type(p.type));
}

Value shift(BinaryOp op, const Arg& a, const Arg& b, const char* what) {
  Value value = a.natural();
  bool shiftable = is_integer(value.type()) || is_bits(value.type());
  if (!shiftable || bits(value.type()) < 16 || bits(value.type()) > 64) {
    refuse_type(what, value.type(), "integers and bit types of 16 to 64 bits", a.at());
  }
  Value given = b.is_literal() ? b.as(u32, what) : b.value();
  Value count = given.type() == s32 ? given.bitcast(u32, b.at()) : given;
  if (count.type() != u32) refuse_type(what, count.type(), "a count of type u32 or s32", b.at());
  std::int64_t literal = b.is_literal() ? b.natural().constant() : 0;
  if (literal < 0 || literal >= bits(value.type())) {
    throw Error(ErrorKind::user,
                std::string(what) + ": a shift of " + std::string(name(value.type())) + " by " +
                    std::to_string(literal) + "; it takes 0 to " +
                    std::to_string(bits(value.type()) - 1),
                b.at());
  }
  bool left = op == BinaryOp::shl;
  if (value.is_constant() && count.is_constant()) {
    return ValueAccess::constant(value.type(),
                                 *fold(op, value.type(), value.constant(), count.constant()));
  }
  Facts facts = lang::facts_of_type(value.type());
  if (count.is_constant() && count.constant() >= 0 && count.constant() < 62) {
    std::int64_t power = std::int64_t{1} << count.constant();
    Facts factor{power, power, power};
    if (left) facts = lang::facts_mul(value.facts(), factor, value.type());
    if (!left && value.facts().lo >= 0) facts = lang::facts_div(value.facts(), power, value.type());
  }
  Type typed = left ? bits_type(value.type()) : value.type();
  return Tracer::current(what, a.at())
      .pure(with_type(left ? "shl." : "shr.", typed), value.type(), {&value, &count}, a.at(),
            facts);
}

/// A negative number against an unsigned type: its bits would make it the largest.
void refuse_negative(const Arg& literal, Type type, const char* what) {
  if (!literal.is_literal() || !is_integer(type) || is_signed(type)) return;
  Value number = literal.natural();
  if (!is_integer(number.type()) || number.constant() >= 0) return;
  throw Error(ErrorKind::user,
              std::string(what) + ": the literal " + std::to_string(number.constant()) +
                  " is below every " + std::string(name(type)) +
                  "; compare in a signed type, by .to()",
              literal.at());
}

Value compare(CompareOp op, const Arg& a, const Arg& b, const char* what) {
  static constexpr const char* kStems[] = {"setp.eq.", "setp.ne.", "setp.lt.",
                                           "setp.le.", "setp.gt.", "setp.ge."};
  Pair p = unify(a, b, what);
  if (p.type == pred) {
    if (op == CompareOp::ne) return bitwise(BinaryOp::xor_, "xor.", a, b, what);
    if (op == CompareOp::eq) return !Arg(bitwise(BinaryOp::xor_, "xor.", a, b, what), p.at);
    refuse_type(what, p.type, "integers and floating-point types", p.at);
  }
  bool equality = op == CompareOp::eq || op == CompareOp::ne;
  bool ordered = is_arithmetic(p.type) && !is_packed(p.type);
  if (!ordered && !(equality && is_bits(p.type) && bits(p.type) >= 16)) {
    refuse_type(what, p.type, "integers and floating-point types", p.at);
  }
  if (!equality) {
    refuse_negative(a, p.type, what);
    refuse_negative(b, p.type, what);
  }
  if (p.a.is_constant() && p.b.is_constant()) {
    if (auto folded = fold(op, p.type, p.a.constant(), p.b.constant())) {
      return ValueAccess::constant(pred, *folded ? 1 : 0);
    }
  }
  if (is_integer(p.type) && (bits(p.type) < 64 || is_signed(p.type))) {  // decided by bounds
    const Facts& x = p.a.facts();
    const Facts& y = p.b.facts();
    bool less = x.hi < y.lo;
    bool not_greater = x.hi <= y.lo;
    bool greater = x.lo > y.hi;
    bool not_less = x.lo >= y.hi;
    if (op == CompareOp::lt && (less || not_less)) return ValueAccess::constant(pred, less ? 1 : 0);
    if (op == CompareOp::ge && (less || not_less)) return ValueAccess::constant(pred, less ? 0 : 1);
    if (op == CompareOp::gt && (greater || not_greater)) {
      return ValueAccess::constant(pred, greater ? 1 : 0);
    }
    if (op == CompareOp::le && (greater || not_greater)) {
      return ValueAccess::constant(pred, greater ? 0 : 1);
    }
  }
  const char* stem =
      op == CompareOp::ne && is_real(p.type) ? "setp.neu." : kStems[static_cast<int>(op)];
  return Tracer::current(what, p.at).pure(with_type(stem, p.type), pred, {&p.a, &p.b}, p.at);
}

}  // namespace

Value operator&(const Arg& a, const Arg& b) {
  return bitwise(BinaryOp::and_, "and.", a, b, "operator&");
}
Value operator|(const Arg& a, const Arg& b) {
  return bitwise(BinaryOp::or_, "or.", a, b, "operator|");
}
Value operator^(const Arg& a, const Arg& b) {
  return bitwise(BinaryOp::xor_, "xor.", a, b, "operator^");
}
Value operator<<(const Arg& a, const Arg& b) { return shift(BinaryOp::shl, a, b, "operator<<"); }
Value operator>>(const Arg& a, const Arg& b) { return shift(BinaryOp::shr, a, b, "operator>>"); }

Value operator~(const Arg& a) {
  Value x = a.natural();
  if (!is_integer(x.type()) && !is_bits(x.type())) {
    refuse_type("operator~", x.type(), "integers and bit types", a.at());
  }
  if (x.is_constant()) return ValueAccess::constant(x.type(), lang::wrap(x.type(), ~x.constant()));
  return Tracer::current("operator~", a.at())
      .pure(with_type("not.", bits_type(x.type())), x.type(), {&x}, a.at(),
            lang::facts_of_type(x.type()));
}

Value operator!(const Arg& a) {
  Value x = a.natural();
  if (x.type() != pred)
    refuse_type("operator!", x.type(), "a predicate; compare with 0 first", a.at());
  if (x.is_constant()) return ValueAccess::constant(pred, x.constant() == 0 ? 1 : 0);
  return Tracer::current("operator!", a.at()).pure("not.pred", pred, {&x}, a.at());
}

Value operator&&(const Arg& a, const Arg& b) {
  Value x = a.natural();
  if (x.type() != pred)
    refuse_type("operator&&", x.type(), "predicates; compare with 0 first", a.at());
  return bitwise(BinaryOp::and_, "and.", Arg(x, a.at()), b, "operator&&");
}

Value operator||(const Arg& a, const Arg& b) {
  Value x = a.natural();
  if (x.type() != pred)
    refuse_type("operator||", x.type(), "predicates; compare with 0 first", a.at());
  return bitwise(BinaryOp::or_, "or.", Arg(x, a.at()), b, "operator||");
}

Value operator==(const Arg& a, const Arg& b) { return compare(CompareOp::eq, a, b, "operator=="); }
Value operator!=(const Arg& a, const Arg& b) { return compare(CompareOp::ne, a, b, "operator!="); }
Value operator<(const Arg& a, const Arg& b) { return compare(CompareOp::lt, a, b, "operator<"); }
Value operator<=(const Arg& a, const Arg& b) { return compare(CompareOp::le, a, b, "operator<="); }
Value operator>(const Arg& a, const Arg& b) { return compare(CompareOp::gt, a, b, "operator>"); }
Value operator>=(const Arg& a, const Arg& b) { return compare(CompareOp::ge, a, b, "operator>="); }

Value select(const Arg& condition, const Arg& a, const Arg& b) {
  Value c = condition.natural();
  if (c.type() != pred)
    refuse_type("select", c.type(), "a predicate as its condition", condition.at());
  Pair p = a.is_literal() && b.is_literal()
               ? Pair{a.natural(), b.as(a.natural().type(), "select"), a.natural().type(), a.at()}
               : unify(a, b, "select");
  if (c.is_constant()) return settled(c.constant() != 0 ? p.a : p.b, p.at);
  if (p.type == pred) return (Arg(c) && Arg(p.a)) || (Arg(!c) && Arg(p.b));
  Facts facts{std::gcd(p.a.facts().divisor, p.b.facts().divisor),
              std::min(p.a.facts().lo, p.b.facts().lo), std::max(p.a.facts().hi, p.b.facts().hi)};
  return Tracer::current("select", condition.at())
      .pure(with_type("selp.", bits_type(p.type)), p.type, {&p.a, &p.b, &c}, condition.at(), facts);
}

}  // namespace tilewright
