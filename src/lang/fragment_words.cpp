// SPDX-License-Identifier: Apache-2.0
// The registers of a fragment as values.
#include "lang/fragment_words.h"

#include "lang/tracer.h"

#include <algorithm>

namespace tilewright::lang {

Value register_value(const Fragment& fragment, int index, Type type) {
  // Registers of fragments are variables: never shared as common subexpressions.
  std::uint32_t id = fragment.words()[static_cast<std::size_t>(index)];
  return ValueAccess::direct(ValueAccess::make_var(type, id, Uniformity::thread));
}

void put_register(const Fragment& fragment, int index, const Value& value, SourceLoc at) {
  Tracer& tracer = Tracer::current("to", at);
  std::uint32_t id = fragment.words()[static_cast<std::size_t>(index)];
  if (ValueAccess::fresh(value) && tracer.retarget(value, id)) return;
  tracer.emit(move_of(value.type()), {ptx::reg(id), tracer.operand(value, at)}, at);
}

Fragment narrow_by_words(Type to, const Fragment& wide,
                         const std::function<Value(std::span<const Value>)>& narrow, SourceLoc at) {
  Fragment out = Fragment::undefined(to, wide.size(), at);
  int per_word = out.elements_per_word();
  for (int begin = 0, word = 0; begin < wide.size(); begin += per_word, ++word) {
    std::vector<Value> elements;
    for (int i = begin; i < std::min(begin + per_word, wide.size()); ++i)
      elements.push_back(register_value(wide, i, wide.type()));
    put_register(out, word, narrow(elements), at);
  }
  return out;
}

Fragment widen_by_words(
    Type to, const Fragment& packed,
    const std::function<std::vector<Value>(const Value& word, int count)>& widen, SourceLoc at) {
  Fragment out = Fragment::undefined(to, packed.size(), at);
  int per_word = packed.elements_per_word();
  int next = 0;
  for (int begin = 0, word = 0; begin < packed.size(); begin += per_word, ++word) {
    int count = std::min(per_word, packed.size() - begin);
    for (const Value& value : widen(register_value(packed, word, u32), count))
      put_register(out, next++, value, at);
  }
  return out;
}

}  // namespace tilewright::lang
