// SPDX-License-Identifier: Apache-2.0
// What the operators on values share: operands at one type, and the types that they take.
#pragma once

#include "lang/tracer.h"
#include "tilewright/value.h"

#include <string>

namespace tilewright::lang {

/// Both operands at one type: a literal takes the other's.
struct Pair {
  Value a, b;
  Type type;
  SourceLoc at;
};
Pair unify(const Arg& a, const Arg& b, const char* what);
/// An operand handed back as a result: a Var's register becomes a snapshot.
Value settled(const Value& value, SourceLoc at);

[[noreturn]] void refuse_type(const char* what, Type type, const char* allowed, SourceLoc at);
bool is_arithmetic(Type type);
bool is_real(Type type);
/// The bit type of the same width; pred stays.
Type bits_type(Type type);
/// An opcode whose last word is the type.
std::string with_type(const char* stem, Type type);

}  // namespace tilewright::lang
