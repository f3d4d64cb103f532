// SPDX-License-Identifier: Apache-2.0
// Operands at one type, and the types that operators take.
#include "lang/operands.h"

namespace tilewright::lang {

Pair unify(const Arg& a, const Arg& b, const char* what) {
  if (a.is_literal() && b.is_literal()) {
    throw Error(ErrorKind::user,
                std::string(what) + ": both operands are literals; one of them must be a value",
                a.at());
  }
  Type type = a.is_literal() ? b.value().type() : a.value().type();
  return {a.as(type, what), b.as(type, what), type, a.at()};
}

[[noreturn]] void refuse_type(const char* what, Type type, const char* allowed, SourceLoc at) {
  throw Error(
      ErrorKind::user,
      std::string(what) + ": not defined for " + std::string(name(type)) + "; it takes " + allowed,
      at);
}

Type bits_type(Type type) {
  if (type == pred) return pred;
  int width = bits(type);
  return width <= 16 ? b16 : width == 32 ? b32 : b64;
}

std::string with_type(const char* stem, Type type) {
  std::string op = stem;
  op += name(type);
  return op;
}

bool is_arithmetic(Type type) {
  return (is_integer(type) && bits(type) >= 16) || type == f16 || type == bf16 || type == f32 ||
         type == f64 || type == f16x2 || type == bf16x2;
}

bool is_real(Type type) { return is_arithmetic(type) && !is_integer(type); }

Value settled(const Value& value, SourceLoc at) {
  return ValueAccess::direct_var(value) ? ValueAccess::snapshot(value, at) : value;
}

}  // namespace tilewright::lang
