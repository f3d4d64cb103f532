// SPDX-License-Identifier: Apache-2.0
// Operands, sizes of variables, and symbols of a module.
#include "tilewright/module.h"

#include <algorithm>
#include <bit>

namespace tilewright::ptx {
namespace {

Operand make(Operand::Kind kind, std::uint32_t id, std::int64_t value) {
  Operand out;
  out.kind = kind;
  out.id = id;
  out.value = value;
  return out;
}

}  // namespace

Operand reg(RegId id, bool negated) {
  Operand out = make(Operand::Kind::reg, id, 0);
  out.negated = negated;
  return out;
}

Operand imm(std::int64_t value) {
  Operand out = make(Operand::Kind::imm, 0, value);
  out.type = Type::s64;
  return out;
}

Operand imm_f32(float value) {
  Operand out = make(Operand::Kind::imm, 0, std::bit_cast<std::int32_t>(value));
  out.type = Type::f32;
  return out;
}

Operand imm_f64(double value) {
  Operand out = make(Operand::Kind::imm, 0, std::bit_cast<std::int64_t>(value));
  out.type = Type::f64;
  return out;
}

Operand symbol(SymbolId id, std::int64_t offset) { return make(Operand::Kind::symbol, id, offset); }
Operand label(LabelId id) { return make(Operand::Kind::label, id, 0); }
Operand sink() { return make(Operand::Kind::sink, 0, 0); }

Operand address(RegId base, std::int64_t offset) {
  return make(Operand::Kind::address_reg, base, offset);
}

Operand address_symbol(SymbolId base, std::int64_t offset) {
  return make(Operand::Kind::address_symbol, base, offset);
}

Operand address_imm(std::int64_t value) { return make(Operand::Kind::address_imm, 0, value); }

Operand vector(std::vector<Operand> elems) {
  Operand out = make(Operand::Kind::vector, 0, 0);
  out.elems = std::move(elems);
  return out;
}

Operand list(std::vector<Operand> elems) {
  Operand out = make(Operand::Kind::list, 0, 0);
  out.elems = std::move(elems);
  return out;
}

Operand pair(Operand first, Operand second) {
  Operand out = make(Operand::Kind::pair, 0, 0);
  out.elems = {std::move(first), std::move(second)};
  return out;
}

std::int64_t size_bytes(const Variable& variable) {
  std::int64_t size = std::int64_t{bytes(variable.type)} * variable.vector;
  for (const std::int64_t extent : variable.extents)
    size *= extent;
  return size;
}

int alignment_bytes(const Variable& variable) {
  return variable.alignment != 0 ? variable.alignment
                                 : std::max(1, bytes(variable.type) * variable.vector);
}

SymbolId Module::symbol_id(std::string_view name) {
  const auto it = std::find(symbols.begin(), symbols.end(), name);
  const auto id = static_cast<SymbolId>(it - symbols.begin());
  if (it == symbols.end()) symbols.emplace_back(name);
  return id;
}

const Function* Module::find_function(std::string_view name) const {
  const Function* found = nullptr;
  for (const Function& f : functions) {
    if (f.name != name) continue;
    if (!f.declaration) return &f;
    found = &f;
  }
  return found;
}

}  // namespace tilewright::ptx
