// SPDX-License-Identifier: Apache-2.0
// Arithmetic on values: folding, the index algebra of constants, and emission.
#include "lang/constant_division.h"
#include "lang/facts.h"
#include "lang/fold.h"
#include "lang/operands.h"
#include "lang/packed.h"
#include "lang/tracer.h"
#include "tilewright/value.h"

#include <algorithm>
#include <string>

namespace tilewright {
namespace {

using lang::BinaryOp;
using lang::bits_type;
using lang::is_arithmetic;
using lang::is_real;
using lang::Pair;
using lang::refuse_type;
using lang::settled;
using lang::Tracer;
using lang::unify;
using lang::with_type;

/// An integer register plus a constant that is not yet added; never a Var's own register.
bool is_affine(const Value& value) {
  return is_integer(value.type()) && bits(value.type()) >= 32 && ValueAccess::has_reg(value) &&
         !ValueAccess::direct_var(value);
}

Value base_of(const Value& value) {
  return ValueAccess::with_addend(value, 0, lang::facts_of_type(value.type()));
}

Value add_or_sub(BinaryOp op, const Arg& a, const Arg& b, const char* what) {
  Pair p = unify(a, b, what);
  if (lang::is_number_pair(p.type)) {
    bool sum = op == BinaryOp::add;  // integers have no sub of pairs
    const char* stem = p.type == f32x2 ? sum ? "add.rn." : "sub.rn." : sum ? "add." : "";
    auto* half = sum ? static_cast<lang::Binary>(operator+) : static_cast<lang::Binary>(operator-);
    return lang::binary_on_pairs(stem, half, p.a, p.b, p.at);
  }
  if (!is_arithmetic(p.type)) refuse_type(what, p.type, "integers and floating-point types", p.at);
  if (p.a.is_constant() && p.b.is_constant()) {
    if (auto folded = fold(op, p.type, p.a.constant(), p.b.constant())) {
      return ValueAccess::constant(p.type, *folded);
    }
  }
  bool adding = op == BinaryOp::add;
  if (!is_integer(p.type)) {
    return Tracer::current(what, p.at)
        .pure(with_type(adding ? "add.rn." : "sub.rn.", p.type), p.type, {&p.a, &p.b}, p.at);
  }
  Facts facts = adding ? lang::facts_add(p.a.facts(), p.b.facts(), p.type)
                       : lang::facts_sub(p.a.facts(), p.b.facts(), p.type);
  auto shifted = [&](const Value& value, std::int64_t by) {
    std::int64_t sum = static_cast<std::int64_t>(
        static_cast<std::uint64_t>(ValueAccess::bits(value)) + static_cast<std::uint64_t>(by));
    return ValueAccess::with_addend(value, lang::wrap(p.type, sum), facts);
  };
  if (p.b.is_constant() && is_affine(p.a)) {
    auto addend = static_cast<std::uint64_t>(p.b.constant());
    return shifted(p.a, static_cast<std::int64_t>(adding ? addend : 0 - addend));
  }
  if (adding && p.a.is_constant() && is_affine(p.b)) return shifted(p.b, p.a.constant());
  Tracer& tracer = Tracer::current(what, p.at);
  if (is_affine(p.a) && is_affine(p.b)) {  // (x + c) + (y + d) = (x + y) + (c + d)
    auto c = static_cast<std::uint64_t>(ValueAccess::bits(p.a));
    auto d = static_cast<std::uint64_t>(ValueAccess::bits(p.b));
    auto addend = lang::wrap(p.type, static_cast<std::int64_t>(adding ? c + d : c - d));
    Value x = base_of(p.a);
    Value y = base_of(p.b);
    Value sum = tracer.pure(with_type(adding ? "add." : "sub.", p.type), p.type, {&x, &y}, p.at,
                            addend == 0 ? facts : lang::facts_of_type(p.type));
    return addend == 0 ? sum : ValueAccess::with_addend(sum, addend, facts);
  }
  return tracer.pure(with_type(adding ? "add." : "sub.", p.type), p.type, {&p.a, &p.b}, p.at,
                     facts);
}

Value multiply(const Arg& a, const Arg& b) {
  Pair p = unify(a, b, "operator*");
  if (lang::is_number_pair(p.type)) {
    const char* stem = p.type == f32x2 ? "mul.rn." : "";
    return lang::binary_on_pairs(stem, operator*, p.a, p.b, p.at);
  }
  if (!is_arithmetic(p.type)) {
    refuse_type("operator*", p.type, "integers and floating-point types", p.at);
  }
  if (p.a.is_constant() && p.b.is_constant()) {
    if (auto folded = fold(BinaryOp::mul, p.type, p.a.constant(), p.b.constant())) {
      return ValueAccess::constant(p.type, *folded);
    }
  }
  Tracer& tracer = Tracer::current("operator*", p.at);
  if (!is_integer(p.type)) {
    return tracer.pure(with_type("mul.rn.", p.type), p.type, {&p.a, &p.b}, p.at);
  }
  const Value& a_first = p.a.is_constant() ? p.b : p.a;
  const Value& b_last = p.a.is_constant() ? p.a : p.b;
  Facts facts = lang::facts_mul(p.a.facts(), p.b.facts(), p.type);
  std::string op = with_type("mul.lo.", p.type);
  if (b_last.is_constant()) {
    std::int64_t factor = b_last.constant();
    if (factor == 0) return ValueAccess::constant(p.type, 0);
    if (factor == 1) return settled(a_first, p.at);
    if (is_affine(a_first) && ValueAccess::bits(a_first) != 0) {  // (x + c) * k = x * k + c * k
      Value x = base_of(a_first);
      Value product = tracer.pure(op, p.type, {&x, &b_last}, p.at);
      std::int64_t addend =
          static_cast<std::int64_t>(static_cast<std::uint64_t>(ValueAccess::bits(a_first)) *
                                    static_cast<std::uint64_t>(factor));
      return ValueAccess::with_addend(product, lang::wrap(p.type, addend), facts);
    }
  }
  return tracer.pure(op, p.type, {&a_first, &b_last}, p.at, facts);
}

bool is_power_of_two(std::int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

int log2_of(std::int64_t n) {
  int log = 0;
  while ((std::int64_t{1} << log) < n)
    ++log;
  return log;
}

Value divide_integers(BinaryOp op, const Pair& p, const char* what) {
  bool remainder = op == BinaryOp::rem;
  Tracer& tracer = Tracer::current(what, p.at);
  if (!p.b.is_constant()) {
    return tracer.pure(with_type(remainder ? "rem." : "div.", p.type), p.type, {&p.a, &p.b}, p.at,
                       lang::facts_of_type(p.type));
  }
  std::int64_t d = p.b.constant();
  if (d == 0) {
    throw Error(ErrorKind::user, std::string(what) + ": the divisor is the constant 0", p.at);
  }
  Facts facts =
      remainder ? lang::facts_rem(p.a.facts(), d, p.type) : lang::facts_div(p.a.facts(), d, p.type);
  bool never_negative = !is_signed(p.type) || p.a.facts().lo >= 0;
  if (d == 1) return remainder ? ValueAccess::constant(p.type, 0) : settled(p.a, p.at);
  if (never_negative && p.a.facts().hi < d && bits(p.type) <= 32 && d > 0) {
    return remainder ? settled(p.a, p.at) : ValueAccess::constant(p.type, 0);
  }
  if (never_negative && is_power_of_two(d)) {
    if (remainder) {
      Value mask = ValueAccess::constant(p.type, d - 1);
      return tracer.pure(with_type("and.", bits_type(p.type)), p.type, {&p.a, &mask}, p.at, facts);
    }
    Value count = ValueAccess::constant(u32, log2_of(d));
    Type unsigned_type = bits(p.type) == 64 ? u64 : bits(p.type) == 32 ? u32 : u16;
    return tracer.pure(with_type("shr.", unsigned_type), p.type, {&p.a, &count}, p.at, facts);
  }
  if (d > 1 && lang::is_quotient_by_product(p.a)) {
    const Value n = settled(p.a, p.at);
    Value quotient = lang::divide_by_constant(
        n, d, remainder ? lang::facts_div(n.facts(), d, p.type) : facts, p.at);
    if (!remainder) return quotient;
    Value product = tracer.pure(with_type("mul.lo.", p.type), p.type, {&quotient, &p.b}, p.at);
    return tracer.pure(with_type("sub.", p.type), p.type, {&n, &product}, p.at, facts);
  }
  return tracer.pure(with_type(remainder ? "rem." : "div.", p.type), p.type, {&p.a, &p.b}, p.at,
                     facts);
}

Value min_or_max_of_pairs(const Pair& p, bool smaller, NanMode nan) {
  lang::Binary half = nullptr;
  if (nan == NanMode::propagate) {
    half = smaller ? [](const Arg& a, const Arg& b) { return min(a, b, NanMode::propagate); }
                   : [](const Arg& a, const Arg& b) { return max(a, b, NanMode::propagate); };
  } else {
    half = smaller ? [](const Arg& a, const Arg& b) { return min(a, b, NanMode::drop); }
                   : [](const Arg& a, const Arg& b) { return max(a, b, NanMode::drop); };
  }
  const char* stem = p.type == f32x2 ? "" : smaller ? "min." : "max.";
  return lang::binary_on_pairs(stem, half, p.a, p.b, p.at);
}

Value min_or_max(BinaryOp op, const Arg& a, const Arg& b, NanMode nan, const char* what) {
  Pair p = unify(a, b, what);
  bool smaller = op == BinaryOp::min;
  if (lang::is_number_pair(p.type)) return min_or_max_of_pairs(p, smaller, nan);
  if (!is_arithmetic(p.type)) refuse_type(what, p.type, "integers and floating-point types", p.at);
  if (p.a.is_constant() && p.b.is_constant() && is_integer(p.type)) {
    return ValueAccess::constant(p.type, *fold(op, p.type, p.a.constant(), p.b.constant()));
  }
  bool has_constant = p.a.is_constant() || p.b.is_constant();
  if ((p.type == f16 || p.type == bf16) && has_constant) {
    // ptxas 13.0 leaves a 16-bit constant of min and max in both halves of the register, and gives
    // +0 for -0 (seen in SASS and on an H200). Going through f32 is exact.
    Value wide = min_or_max(op, Arg(settled(p.a, p.at).to(f32, p.at), p.at),
                            Arg(settled(p.b, p.at).to(f32, p.at), p.at), nan, what);
    return wide.to(p.type, p.at);
  }
  std::string stem = smaller ? "min." : "max.";
  if (nan == NanMode::propagate && is_real(p.type)) {
    if (p.type == f64) refuse_type(what, p.type, "f16, bf16 and f32 where NaN is propagated", p.at);
    stem += "NaN.";
  }
  Facts facts;
  if (is_integer(p.type)) {
    const Facts& x = p.a.facts();
    const Facts& y = p.b.facts();
    bool beyond_signed = p.type == u64 && (x.lo < 0 || y.lo < 0);
    if (beyond_signed) facts = lang::facts_of_type(p.type);
    if (smaller && !beyond_signed) facts = {1, std::min(x.lo, y.lo), std::min(x.hi, y.hi)};
    if (!smaller && !beyond_signed) facts = {1, std::max(x.lo, y.lo), std::max(x.hi, y.hi)};
  }
  return Tracer::current(what, p.at)
      .pure(with_type(stem.c_str(), p.type), p.type, {&p.a, &p.b}, p.at, facts);
}

Value one_operand(const Arg& a, const char* op, Type required, const char* what) {
  Value x = a.natural();
  if (x.type() != required)
    refuse_type(what, x.type(), std::string(name(required)).c_str(), a.at());
  return Tracer::current(what, a.at()).pure(op, x.type(), {&x}, a.at());
}

}  // namespace

Value operator+(const Arg& a, const Arg& b) { return add_or_sub(BinaryOp::add, a, b, "operator+"); }
Value operator-(const Arg& a, const Arg& b) { return add_or_sub(BinaryOp::sub, a, b, "operator-"); }
Value operator*(const Arg& a, const Arg& b) { return multiply(a, b); }

Value operator/(const Arg& a, const Arg& b) {
  Pair p = unify(a, b, "operator/");
  if (is_integer(p.type) && bits(p.type) >= 16) {
    if (p.a.is_constant() && p.b.is_constant() && p.b.constant() != 0) {
      return ValueAccess::constant(p.type,
                                   *fold(BinaryOp::div, p.type, p.a.constant(), p.b.constant()));
    }
    return divide_integers(BinaryOp::div, p, "operator/");
  }
  if (p.type != f32 && p.type != f64)
    refuse_type("operator/", p.type, "integers, f32 and f64", p.at);
  if (p.a.is_constant() && p.b.is_constant()) {
    if (auto folded = fold(BinaryOp::div, p.type, p.a.constant(), p.b.constant())) {
      return ValueAccess::constant(p.type, *folded);
    }
  }
  return Tracer::current("operator/", p.at)
      .pure(with_type("div.rn.", p.type), p.type, {&p.a, &p.b}, p.at);
}

Value operator%(const Arg& a, const Arg& b) {
  Pair p = unify(a, b, "operator%");
  if (!is_integer(p.type) || bits(p.type) < 16) refuse_type("operator%", p.type, "integers", p.at);
  if (p.a.is_constant() && p.b.is_constant() && p.b.constant() != 0) {
    return ValueAccess::constant(p.type,
                                 *fold(BinaryOp::rem, p.type, p.a.constant(), p.b.constant()));
  }
  return divide_integers(BinaryOp::rem, p, "operator%");
}

Value operator-(const Arg& a) {
  Value x = a.natural();
  if (!is_arithmetic(x.type())) {
    refuse_type("operator-", x.type(), "integers and floating-point types", a.at());
  }
  if (is_integer(x.type())) {
    Type signed_type = bits(x.type()) == 64 ? s64 : bits(x.type()) == 32 ? s32 : s16;
    if (x.is_constant())
      return ValueAccess::constant(x.type(), *fold(BinaryOp::sub, x.type(), 0, x.constant()));
    return Tracer::current("operator-", a.at())
        .pure(with_type("neg.", signed_type), x.type(), {&x}, a.at(),
              lang::facts_sub(Facts{std::int64_t{1} << 62, 0, 0}, x.facts(), x.type()));
  }
  return Tracer::current("operator-", a.at())
      .pure(with_type("neg.", x.type()), x.type(), {&x}, a.at());
}

Value min(const Arg& a, const Arg& b, NanMode nan) {
  return min_or_max(BinaryOp::min, a, b, nan, "min");
}
Value max(const Arg& a, const Arg& b, NanMode nan) {
  return min_or_max(BinaryOp::max, a, b, nan, "max");
}

Value abs(const Arg& a) {
  Value x = a.natural();
  if (!is_arithmetic(x.type()) || !is_signed(x.type())) {
    if (!is_packed(x.type()))
      refuse_type("abs", x.type(), "signed integers and floating-point types", a.at());
  }
  return Tracer::current("abs", a.at()).pure(with_type("abs.", x.type()), x.type(), {&x}, a.at());
}

Value fma(const Arg& a, const Arg& b, const Arg& c) {
  Type type = !a.is_literal()   ? a.value().type()
              : !b.is_literal() ? b.value().type()
                                : c.natural().type();
  Value x = a.as(type, "fma");
  Value y = b.as(type, "fma");
  Value z = c.as(type, "fma");
  if (lang::is_number_pair(type)) return lang::fma_on_pairs(x, y, z, a.at());
  if (!is_arithmetic(type)) refuse_type("fma", type, "integers and floating-point types", a.at());
  Tracer& tracer = Tracer::current("fma", a.at());
  if (is_integer(type)) {
    Facts facts = lang::facts_add(lang::facts_mul(x.facts(), y.facts(), type), z.facts(), type);
    return tracer.pure(with_type("mad.lo.", type), type, {&x, &y, &z}, a.at(), facts);
  }
  return tracer.pure(with_type("fma.rn.", type), type, {&x, &y, &z}, a.at());
}

Value mul_wide(const Arg& a, const Arg& b) {
  Pair p = unify(a, b, "mul_wide");
  if (p.type != s32 && p.type != u32) refuse_type("mul_wide", p.type, "s32 and u32", p.at);
  Type wide = p.type == s32 ? s64 : u64;
  if (p.a.is_constant() && p.b.is_constant()) {
    return ValueAccess::constant(wide, *fold(BinaryOp::mul, wide, p.a.constant(), p.b.constant()));
  }
  return Tracer::current("mul_wide", p.at)
      .pure(with_type("mul.wide.", p.type), wide, {&p.a, &p.b}, p.at,
            lang::facts_mul(p.a.facts(), p.b.facts(), wide));
}

Value mul_hi(const Arg& a, const Arg& b) {
  Pair p = unify(a, b, "mul_hi");
  if (!is_integer(p.type) || bits(p.type) < 16) refuse_type("mul_hi", p.type, "integers", p.at);
  return Tracer::current("mul_hi", p.at)
      .pure(with_type("mul.hi.", p.type), p.type, {&p.a, &p.b}, p.at, lang::facts_of_type(p.type));
}

Value rsqrt_approx(const Arg& x) { return one_operand(x, "rsqrt.approx.f32", f32, "rsqrt_approx"); }
Value rcp_approx(const Arg& x) { return one_operand(x, "rcp.approx.f32", f32, "rcp_approx"); }
Value exp2_approx(const Arg& x) { return one_operand(x, "ex2.approx.f32", f32, "exp2_approx"); }
Value log2_approx(const Arg& x) { return one_operand(x, "lg2.approx.f32", f32, "log2_approx"); }
Value tanh_approx(const Arg& x) { return one_operand(x, "tanh.approx.f32", f32, "tanh_approx"); }

Value sqrt(const Arg& x) {
  Type type = x.natural().type();
  if (type != f32 && type != f64) refuse_type("sqrt", type, "f32 and f64", x.at());
  return one_operand(x, type == f32 ? "sqrt.rn.f32" : "sqrt.rn.f64", type, "sqrt");
}

}  // namespace tilewright
