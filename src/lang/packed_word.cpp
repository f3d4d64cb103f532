// SPDX-License-Identifier: Apache-2.0
// Words of packed elements.
#include "lang/packed_word.h"

#include "lang/tracer.h"
#include "tilewright/bit.h"
#include "tilewright/form.h"

#include <algorithm>

namespace tilewright::lang {
namespace {

/// The registers of pairs that make up a word: two of 16 bits, or four of 8.
std::vector<ptx::RegId> pair_registers(Tracer& tracer, Type type) {
  const std::size_t count = type == e2m1 ? 4 : 2;
  std::vector<ptx::RegId> pairs;
  pairs.reserve(count);
  for (std::size_t i = 0; i < count; ++i)
    pairs.push_back(type == e2m1 ? tracer.new_byte() : tracer.new_reg(b16));
  return pairs;
}
ptx::Operand as_vector(const std::vector<ptx::RegId>& registers) {
  std::vector<ptx::Operand> elements;
  elements.reserve(registers.size());
  for (ptx::RegId id : registers)
    elements.push_back(ptx::reg(id));
  return ptx::vector(std::move(elements));
}

}  // namespace

bool has_instruction(std::string_view op, SourceLoc at) {
  Tracer& tracer = Tracer::current("to", at);
  for (const ptx::Requires& need : ptx::opcode(op).row().requires_)
    if (!need.targets.empty() && ptx::satisfies(tracer.target(), need.targets)) return true;
  return false;
}

Value pack_bytes(std::span<const Value> codes) {
  Value zero = constant(u32, 0);
  auto pair = [&](std::size_t i) {
    if (i + 1 < codes.size()) return prmt(codes[i], codes[i + 1], 0x0040);
    return i < codes.size() ? prmt(codes[i], zero, 0x0040) : zero;
  };
  Value low = pair(0);
  Value high = pair(2);
  return prmt(low, high, 0x5410);
}

Value narrow_pairs(std::string_view op, Type to, std::span<const Value> wide, SourceLoc at) {
  Tracer& tracer = Tracer::current("to", at);
  std::vector<ptx::RegId> pairs = pair_registers(tracer, to);
  Value zero = constant(f32, 0);
  Uniformity uniformity = Uniformity::grid;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    auto element = [&](std::size_t j) {
      return tracer.operand(j < wide.size() ? wide[j] : zero, at);
    };
    ptx::Operand low = element(2 * i);
    ptx::Operand high = element(2 * i + 1);
    tracer.emit(op, {ptx::reg(pairs[i]), high, low}, at);
  }
  for (const Value& value : wide)
    uniformity = std::max(uniformity, value.uniformity());
  ptx::RegId word = tracer.new_reg(b32);
  tracer.emit("mov.b32", {ptx::reg(word), as_vector(pairs)}, at);
  return tracer.result(u32, word, uniformity);
}

std::vector<Value> widen_pairs(std::string_view op, Type from, const Value& word, int count,
                               SourceLoc at) {
  Tracer& tracer = Tracer::current("to", at);
  std::vector<ptx::RegId> pairs = pair_registers(tracer, from);
  tracer.emit("mov.b32", {as_vector(pairs), tracer.operand(word, at, false)}, at);
  std::vector<Value> wide;
  for (int i = 0; 2 * i < count; ++i) {
    ptx::RegId both = tracer.new_reg(b32);
    tracer.emit(op, {ptx::reg(both), ptx::reg(pairs[static_cast<std::size_t>(i)])}, at);
    wide.push_back(tracer.result(u32, both, word.uniformity()));
  }
  return wide;
}

std::vector<Value> f16_pair_to_f32(const Value& pair, int count, SourceLoc at) {
  Tracer& tracer = Tracer::current("to", at);
  ptx::RegId halves[] = {tracer.new_reg(f16), tracer.new_reg(f16)};
  tracer.emit(
      "mov.b32",
      {ptx::vector({ptx::reg(halves[0]), ptx::reg(halves[1])}), tracer.operand(pair, at, false)},
      at);
  std::vector<Value> wide;
  for (ptx::RegId id : halves) {
    if (static_cast<int>(wide.size()) == count) break;
    Value half = tracer.result(f16, id, pair.uniformity());
    wide.push_back(tracer.pure("cvt.f32.f16", f32, {&half}, at));
  }
  return wide;
}

std::vector<Value> bf16_pair_to_f32(const Value& pair, int count) {
  std::vector<Value> wide{(pair << 16).bitcast(f32)};  // a bf16 is the upper half of an f32
  if (count > 1) wide.push_back((pair & 0xffff0000).bitcast(f32));
  return wide;
}

}  // namespace tilewright::lang
