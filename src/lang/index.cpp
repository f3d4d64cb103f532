// SPDX-License-Identifier: Apache-2.0
// Traced values as integers of the layout algebra, and back.
#include "lang/facts.h"
#include "lang/tracer.h"
#include "tilewright/tensor.h"

#include <limits>
#include <numeric>
#include <vector>

namespace tilewright {

using lang::Tracer;

namespace {

IntFacts to_int_facts(const Facts& facts) { return {facts.divisor, facts.lo, facts.hi}; }

/// The symbol of a register: one id for each register, so that equal values compare equal.
Int symbol_of(const Value& base, Tracer& tracer) {
  std::uint32_t reg = ValueAccess::reg(base);
  for (std::size_t i = 0; i < tracer.symbols.size(); ++i) {
    const Value& known = tracer.symbols[i];
    if (ValueAccess::reg(known) == reg && known.type() == base.type() &&
        known.facts().lo == base.facts().lo && known.facts().hi == base.facts().hi &&
        known.facts().divisor == base.facts().divisor) {
      return Int::symbol(i + 1, to_int_facts(base.facts()));
    }
  }
  tracer.symbols.push_back(base);
  return Int::symbol(tracer.symbols.size(), to_int_facts(base.facts()));
}

Type type_for(std::int64_t lo, std::int64_t hi) {
  bool small = lo >= std::numeric_limits<std::int32_t>::min() &&
               hi <= std::numeric_limits<std::int32_t>::max();
  return small ? s32 : s64;
}

Value with_type(const Value& value, Type type, SourceLoc at) {
  if (value.type() == type) return value;
  // x + c widens as widen(x) + c: an index of a tensor does not wrap.
  std::int64_t addend = value.is_constant() ? 0 : ValueAccess::bits(value);
  if (type == s64 && addend != 0) {
    Value base =
        ValueAccess::with_addend(value, 0, lang::facts_less(value.facts(), addend, value.type()));
    Value wide = base.to(s64, at);
    return ValueAccess::with_addend(wide, addend, value.facts());
  }
  return value.to(type, at);
}

Value apply(IntOp op, const Value& a, const Value& b, SourceLoc at) {
  Arg x(a, at);
  Arg y(b, at);
  switch (op) {
    case IntOp::add:
      return x + y;
    case IntOp::sub:
      return x - y;
    case IntOp::mul:
      return x * y;
    case IntOp::div:
      return x / y;
    case IntOp::rem:
      return x % y;
    case IntOp::ceil_div:
      return Arg(Arg(Arg(a, at) + b, at) - 1, at) / y;
    case IntOp::min:
      return min(x, y);
    case IntOp::max:
      return max(x, y);
    case IntOp::and_:
      return x & y;
    case IntOp::xor_:
      return x ^ y;
    case IntOp::symbol:
      break;
  }
  TW_ASSERT(false, "symbols are not operations");
  return a;
}

/// x + c, whose product with a constant k is x * k + c * k: c * k may become an immediate.
bool has_addend(const Value& value) {
  return !value.is_constant() && ValueAccess::bits(value) != 0;
}

bool is_wide_product(const Int& value, const Value& a, const Value& b) {
  return value.node()->op == IntOp::mul && a.type() == s32 && b.type() == s32;
}

}  // namespace

Int to_int(const Value& value, SourceLoc at) {
  if (!is_integer(value.type()) || bits(value.type()) < 32) {
    throw Error(ErrorKind::user,
                "coordinate: a value of type " + std::string(name(value.type())) +
                    " is no index; convert it with .to(s32)",
                at);
  }
  if (value.is_constant()) return value.constant();
  Tracer& tracer = Tracer::current("coordinate", at);
  std::int64_t addend = ValueAccess::bits(value);
  if (addend == 0) return symbol_of(value, tracer);
  const Facts& facts = value.facts();
  if (value.type() == u32) {  // the sum may wrap: 3 - 1 is 3 + 4294967295
    ptx::RegId sum = tracer.reg_of(value, at);
    return symbol_of(tracer.result(u32, sum, value.uniformity(), facts), tracer);
  }
  Value base = ValueAccess::with_addend(value, 0, lang::facts_less(facts, addend, value.type()));
  return symbol_of(base, tracer) + Int(addend);
}

Value to_value(const Int& value, SourceLoc at) {
  if (value.is_static()) {
    std::int64_t number = value.value();
    return ValueAccess::constant(type_for(number, number), number);
  }
  const IntNode& node = *value.node();
  Tracer& tracer = Tracer::current("coordinate", at);
  if (node.op == IntOp::symbol) {
    if (node.symbol == 0 || node.symbol > tracer.symbols.size()) {
      throw Error(ErrorKind::user,
                  "coordinate: the dynamic integer " + to_string(value) +
                      " does not come from this trace; pass it to the kernel as an argument",
                  at);
    }
    const Value& known = tracer.symbols[node.symbol - 1];
    bool long_index =
        bits(known.type()) == 64 || known.facts().hi > std::numeric_limits<std::int32_t>::max();
    Type type = long_index ? s64 : s32;
    return known.type() == type ? known : known.to(type, at);
  }
  Value a = to_value(node.lhs, at);
  Value b = to_value(node.rhs, at);
  Type type = type_for(value.min(), value.max());
  Facts facts{value.divisor(), value.min(), value.max()};
  if (type == s64 && is_wide_product(value, a, b) && !has_addend(a) && !has_addend(b)) {
    const bool counts = a.facts().lo >= 0 && b.facts().lo >= 0;
    const Type narrow = counts ? u32 : s32;
    return mul_wide(Arg(a.to(narrow, at), at), Arg(b.to(narrow, at), at)).to(s64, at).assume(facts);
  }
  bool narrow_operands = a.type() == s32 && b.type() == s32 && type == s32;
  Type operand_type = narrow_operands ? s32 : s64;
  Value result = apply(node.op, with_type(a, operand_type, at), with_type(b, operand_type, at), at);
  return with_type(result, type, at).assume(facts);
}

Index::Index(const Value& value, SourceLoc at) : coord_(to_int(value, at)) {}
Index::Index(const Var& value, SourceLoc at) : coord_(to_int(Value(value, at), at)) {}

Index::Index(std::initializer_list<Index> nested) : coord_(tilewright::coord(nested)) {}

IntTuple coord(std::initializer_list<Index> indices) {
  std::vector<IntTuple> elems;
  elems.reserve(indices.size());
  for (const Index& index : indices)
    elems.push_back(index.coord());
  return IntTuple::tuple(std::move(elems));
}

}  // namespace tilewright
