// SPDX-License-Identifier: Apache-2.0
// Functions on the bits of integers.
#include "tilewright/bit.h"

#include "lang/facts.h"
#include "lang/tracer.h"

#include <string>

namespace tilewright {
namespace {

using lang::Tracer;

Value integer(const char* what, const Arg& x) {
  Value value = x.natural();
  if (is_integer(value.type()) && bits(value.type()) >= 32) return value;
  throw Error(ErrorKind::user,
              std::string(what) + ": not defined for " + std::string(name(value.type())) +
                  "; it takes integers of 32 or 64 bits",
              x.at());
}

Value word(const char* what, const Arg& x) {
  Value value = x.natural();
  if (is_integer(value.type()) && bits(value.type()) == 32) return value;
  throw Error(ErrorKind::user,
              std::string(what) + ": not defined for " + std::string(name(value.type())) +
                  "; it takes s32 and u32",
              x.at());
}

std::string with_width(const char* op, Type type) {
  return std::string(op) + ".b" + std::to_string(bits(type));
}

Value count_bits(const char* op, const Arg& x) {
  Value value = integer(op, x);
  Tracer& tracer = Tracer::current(op, x.at());
  return tracer.pure(with_width(op, value.type()), u32, {&value}, x.at(),
                     {1, 0, bits(value.type())});
}

Value funnel(const char* what, const char* op, const Arg& low, const Arg& high, const Arg& shift) {
  Value a = word(what, low);
  Value b = word(what, high);
  Value n = word(what, shift);
  return Tracer::current(what, low.at())
      .pure(op, a.type(), {&a, &b, &n}, low.at(), lang::facts_of_type(a.type()));
}

}  // namespace

Value popc(const Arg& x) { return count_bits("popc", x); }
Value clz(const Arg& x) { return count_bits("clz", x); }

Value brev(const Arg& x) {
  Value value = integer("brev", x);
  Tracer& tracer = Tracer::current("brev", x.at());
  return tracer.pure(with_width("brev", value.type()), value.type(), {&value}, x.at(),
                     lang::facts_of_type(value.type()));
}

Value bfe(const Arg& x, const Arg& position, const Arg& length) {
  Value value = integer("bfe", x);
  Value from = word("bfe", position);
  Value count = word("bfe", length);
  std::string op = "bfe." + std::string(name(value.type()));
  return Tracer::current("bfe", x.at())
      .pure(op, value.type(), {&value, &from, &count}, x.at(), lang::facts_of_type(value.type()));
}

Value bfi(const Arg& x, const Arg& base, const Arg& position, const Arg& length) {
  Value into = integer("bfi", base);
  Value value = x.as(into.type(), "bfi");
  Value from = word("bfi", position);
  Value count = word("bfi", length);
  return Tracer::current("bfi", x.at())
      .pure(with_width("bfi", into.type()), into.type(), {&value, &into, &from, &count}, x.at(),
            lang::facts_of_type(into.type()));
}

Value prmt(const Arg& a, const Arg& b, const Arg& selector) {
  Value first = word("prmt", a);
  Value second = word("prmt", b);
  Value digits = word("prmt", selector);
  return Tracer::current("prmt", a.at())
      .pure("prmt.b32", first.type(), {&first, &second, &digits}, a.at(),
            lang::facts_of_type(first.type()));
}

Value shf_left(const Arg& low, const Arg& high, const Arg& shift) {
  return funnel("shf_left", "shf.l.wrap.b32", low, high, shift);
}
Value shf_right(const Arg& low, const Arg& high, const Arg& shift) {
  return funnel("shf_right", "shf.r.wrap.b32", low, high, shift);
}

Value dp4a(const Arg& a, const Arg& b, const Arg& c) {
  Value x = word("dp4a", a);
  Value y = word("dp4a", b);
  Type type = x.type() == s32 || y.type() == s32 ? s32 : u32;
  Value sum = c.as(type, "dp4a");
  std::string op = "dp4a." + std::string(name(x.type())) + "." + std::string(name(y.type()));
  return Tracer::current("dp4a", a.at())
      .pure(op, type, {&x, &y, &sum}, a.at(), lang::facts_of_type(type));
}

}  // namespace tilewright
