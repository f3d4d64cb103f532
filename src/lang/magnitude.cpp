// SPDX-License-Identifier: Apache-2.0
// The largest magnitude of a fragment.
#include "lang/packed_word.h"
#include "lang/tracer.h"
#include "tilewright/fragment.h"

#include <string>

namespace tilewright {
namespace {

using lang::Tracer;

/// Of an even number of elements of 16 bits. Where the target has it, magnitudes are compared
/// whatever the signs, which come to nothing in the end.
Value largest_of_pairs(const Fragment& elements, SourceLoc at) {
  Tracer& tracer = Tracer::current("largest_magnitude", at);
  const std::string type = std::string(name(elements.type())) + "x2";
  const std::string unsigned_op = "max.NaN.xorsign.abs." + type;
  const bool any_sign = lang::has_instruction(unsigned_op, at);
  const std::string op = any_sign ? unsigned_op : "max.NaN." + type;
  Fragment pairs = elements.recast(u32, at);
  auto magnitudes = [](const Value& pair) { return pair & 0x7fff7fff; };
  Value largest = reduce(
      any_sign ? pairs : map(pairs, magnitudes, at),
      [&](const Value& a, const Value& b) {
        return tracer.pure(op, u32, {&a, &b}, at);
      },
      at);
  Fragment both(u32, 1, at);
  both.at(0, at) = Arg(magnitudes(largest), at);
  Fragment wide = both.recast(elements.type(), at).to(f32, at);
  return max(wide.at(0, at).get(), wide.at(1, at).get(), NanMode::propagate);
}

}  // namespace

Value largest_magnitude(const Fragment& elements, SourceLoc at) {
  const Type type = elements.type();
  Tracer::AttributeTo line(Tracer::current("largest_magnitude", at), at);
  if ((type == bf16 || type == f16) && elements.size() % 2 == 0)
    return largest_of_pairs(elements, at);
  auto larger = [](const Value& a, const Value& b) { return max(a, b, NanMode::propagate); };
  return reduce(map(
                    elements.to(f32, at), [](const Value& x) { return abs(x); }, at),
                larger, at);
}

}  // namespace tilewright
