// SPDX-License-Identifier: Apache-2.0
// Value, Var and Arg: construction, assignment, literals.
#include "tilewright/value.h"

#include "lang/facts.h"
#include "lang/fold.h"
#include "lang/tracer.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <string>
#include <utility>

namespace tilewright {

using lang::Tracer;

Value::Value(const Value& other)
    : type_(other.type_),
      uniformity_(other.uniformity_),
      has_reg_(other.has_reg_),
      direct_var_(other.direct_var_),
      reg_(other.reg_),
      region_(other.region_),
      bits_(other.bits_),
      facts_(other.facts_) {
  other.fresh_ = false;  // two holders now
}

Value::Value(Value&& other) noexcept
    : type_(other.type_),
      uniformity_(other.uniformity_),
      has_reg_(other.has_reg_),
      direct_var_(other.direct_var_),
      fresh_(other.fresh_),
      reg_(other.reg_),
      region_(other.region_),
      bits_(other.bits_),
      facts_(other.facts_) {}

namespace {

Value snapshot(const Var& var, SourceLoc at) {
  Tracer& tracer = Tracer::current("reading a Var", at);
  ptx::RegId copy = tracer.new_reg(var.type());
  tracer.emit(lang::move_of(var.type()), {ptx::reg(copy), ptx::reg(ValueAccess::reg(var))}, at);
  return tracer.result(var.type(), copy, var.uniformity(), lang::facts_of_type(var.type()));
}

}  // namespace

Value::Value(const Var& var, SourceLoc at) : Value(snapshot(var, at)) {}

std::int64_t Value::constant() const {
  TW_ASSERT(!has_reg_, "constant() is asked only of constants");
  return bits_;
}

Value Value::assume(Facts facts) const {
  Value same = *this;
  same.facts_ = facts;
  return same;
}

Arg::Arg(const Var& var, SourceLoc at) : value_(ValueAccess::direct(var)), at_(at) {}

Arg::Arg(Literal kind, std::int64_t integer, double real, SourceLoc at)
    : kind_(kind), integer_(integer), real_(real), at_(at) {}

namespace {

std::string quoted(double real) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.9g", real);
  return text.data();
}

}  // namespace

Value Arg::as(Type type, const char* what) const {
  auto refuse = [&](const std::string& literal) -> Error {
    return {ErrorKind::user,
            std::string(what) + ": the literal " + literal + " does not fit type " +
                std::string(name(type)) +
                "; write another literal, or convert the value beside it with .to()",
            at_};
  };
  switch (kind_) {
    case Literal::none:
      if (value_.type() != type) {
        throw Error(ErrorKind::user,
                    std::string(what) + ": needs " + std::string(name(type)) + " and got " +
                        std::string(name(value_.type())) +
                        (type == pred ? "; compare with 0" : "; convert with .to()"),
                    at_);
      }
      return value_;
    case Literal::boolean:
      if (type != pred) throw refuse(integer_ != 0 ? "true" : "false");
      return ValueAccess::constant(pred, integer_);
    case Literal::integer: {
      auto literal = lang::literal_bits(type, integer_);
      if (!literal || type == pred) throw refuse(std::to_string(integer_));
      return ValueAccess::constant(type, *literal);
    }
    case Literal::real: {
      auto literal = lang::literal_bits(type, real_);
      if (!literal) throw refuse(quoted(real_));
      return ValueAccess::constant(type, *literal);
    }
  }
  return value_;
}

Value Arg::natural() const {
  switch (kind_) {
    case Literal::none:
      return value_;
    case Literal::boolean:
      return ValueAccess::constant(pred, integer_);
    case Literal::integer: {
      bool small = integer_ >= std::numeric_limits<std::int32_t>::min() &&
                   integer_ <= std::numeric_limits<std::int32_t>::max();
      return ValueAccess::constant(small ? s32 : s64, integer_);
    }
    case Literal::real:
      return ValueAccess::constant(
          f32, static_cast<std::int64_t>(std::bit_cast<std::uint32_t>(static_cast<float>(real_))));
  }
  return value_;
}

Value Arg::settled() const {
  Value value = natural();
  return ValueAccess::direct_var(value) ? ValueAccess::snapshot(value, at_) : value;
}

Value constant(Type type, const Arg& literal) {
  if (!literal.is_literal()) {
    throw Error(ErrorKind::user, "constant: takes a literal; convert a value with .to()",
                literal.at());
  }
  return literal.as(type, "constant");
}

Var::Var(std::uint32_t reg, Type type, Uniformity uniformity)
    : type_(type), uniformity_(uniformity), reg_(reg) {}

Var::Var(Type type, SourceLoc at) : type_(type), reg_(Tracer::current("Var", at).new_reg(type)) {}

Var::Var(const Arg& init, Uniformity uniformity)
    : type_(init.natural().type()),
      uniformity_(uniformity),
      reg_(Tracer::current("Var", init.at()).new_reg(type_)) {
  *this = init;
}

Var::Var(Type type, const Arg& init, Uniformity uniformity)
    : type_(type), uniformity_(uniformity), reg_(Tracer::current("Var", init.at()).new_reg(type)) {
  *this = init;
}

namespace {

void require_uniform(const Value& value, Uniformity promised, const Tracer& tracer, SourceLoc at) {
  Uniformity got = std::max(value.uniformity(), tracer.divergence());
  if (got <= promised) return;
  static constexpr const char* kNames[] = {"grid", "block", "warp", "thread"};
  throw Error(ErrorKind::user,
              std::string("assigning to a Var that was promised to be the same in the whole ") +
                  kNames[static_cast<int>(promised)] +
                  ": the value or the control flow here differs between " +
                  (got == Uniformity::thread ? "threads"
                   : got == Uniformity::warp ? "warps"
                                             : "blocks") +
                  "; declare the Var without that promise, or make the value uniform",
              at);
}

}  // namespace

Var& Var::operator=(const Arg& value) {
  Tracer& tracer = Tracer::current("assigning to a Var", value.at());
  bool fresh = !value.is_literal() && ValueAccess::fresh(value.value());
  Value source = value.as(type_, "assigning to a Var");
  require_uniform(source, uniformity_, tracer, value.at());
  if (fresh && tracer.retarget(value.value(), reg_)) return *this;
  ptx::Operand operand = tracer.operand(source, value.at());
  tracer.emit(lang::move_of(type_), {ptx::reg(reg_), std::move(operand)}, value.at());
  return *this;
}

Var& Var::operator=(const Var& other) {
  // A copy assignment has no room for a line: the newest one is the nearest to it.
  return *this = Arg(other, Tracer::current("assigning to a Var", {}).latest());
}
Var& Var::operator+=(const Arg& value) { return *this = Arg(*this, value.at()) + value; }
Var& Var::operator-=(const Arg& value) { return *this = Arg(*this, value.at()) - value; }
Var& Var::operator*=(const Arg& value) { return *this = Arg(*this, value.at()) * value; }

}  // namespace tilewright
