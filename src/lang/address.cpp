// SPDX-License-Identifier: Apache-2.0
// Byte addresses. Constant parts of an offset become the instruction's immediate, so that
// neighbouring elements share one register.
#include "lang/address.h"

#include "lang/facts.h"
#include "tilewright/view.h"

#include <algorithm>
#include <bit>
#include <string>

namespace tilewright::lang {
namespace {

/// `elements * bytes` in the width of an address, the constant part split off.
struct ByteOffset {
  Value dynamic;  // a register, or constant 0
  std::int64_t constant;
};

/// Half of an integer that 2 is known to divide, without a division where its terms are even.
Int halved(const Int& even) {
  if (even.is_static()) return even.value() / 2;
  const IntNode& node = *even.node();
  bool sum = node.op == IntOp::add || node.op == IntOp::sub;
  if (sum && node.lhs.divisible_by(2) && node.rhs.divisible_by(2))
    return Int::apply(node.op, halved(node.lhs), halved(node.rhs));
  if (node.op == IntOp::mul && node.rhs.is_static() && node.rhs.divisible_by(2))
    return node.lhs * halved(node.rhs);
  if (node.op == IntOp::mul && node.lhs.is_static() && node.lhs.divisible_by(2))
    return halved(node.lhs) * node.rhs;
  return even / 2;
}

/// Times a power of two. A shift is added to a parameter straight from the constant bank's uniform
/// port, where the sum of a wide product first loads it into registers: 15 ns of one row, 35 to 55
/// of 64 rows of an elementwise kernel on an H200.
Value shifted(const Value& wide, std::int64_t size, SourceLoc at) {
  return size == 1 ? wide
                   : Arg(wide, at) << Arg(std::countr_zero(static_cast<std::uint64_t>(size)), at);
}

ByteOffset byte_offset(const Tensor& tensor, const Int& elements, SourceLoc at) {
  std::int64_t size = bytes(tensor.type());
  Type wide = tensor.space() == MemorySpace::global ? u64 : u32;
  Value zero = ValueAccess::constant(wide, 0);
  Value index = to_value(addressable_offset(tensor.type(), elements, at), at);
  if (index.is_constant()) return {zero, index.constant() * size};
  std::int64_t addend = ValueAccess::bits(index);
  Value base = ValueAccess::with_addend(index, 0, facts_less(index.facts(), addend, index.type()));
  Arg x(base, at);
  if (wide == u32) {
    Value narrow = base.type() == s64 ? base.to(s32, at) : base;
    return {(Arg(narrow, at) * size).to(u32, at), addend * size};
  }
  if (base.type() != s32) return {shifted(base.to(u64, at), size, at), addend * size};
  if (base.facts().lo >= 0) return {shifted(base.to(u32, at).to(u64, at), size, at), addend * size};
  Value product =
      size == 1 ? base.to(s64, at) : mul_wide(x, Arg(ValueAccess::constant(s32, size), at));
  return {product.to(u64, at), addend * size};
}

}  // namespace

Int addressable_offset(Type type, const Int& elements, SourceLoc at) {
  if (storage_bits(type) >= 8) return elements;
  if (elements.divisible_by(2)) return halved(elements);
  throw Error(ErrorKind::user,
              "memory access: an offset of " + to_string(elements) + " elements of " +
                  std::string(name(type)) +
                  " may lie within a byte; use one that is known to be even, by its strides and "
                  "tiles or by assume({.divisor = 2})",
              at);
}

Value address_of(const Tensor& tensor, const Int& elements, SourceLoc at) {
  ByteOffset offset = byte_offset(tensor, elements, at);
  Value sum = Arg(tensor.base(), at) + Arg(offset.dynamic, at);
  return Arg(sum, at) + offset.constant;
}

ptx::Operand address_operand(const Tensor& tensor, const Int& elements, SourceLoc at) {
  Tracer& tracer = Tracer::current("memory access", at);
  Value address = address_of(tensor, elements, at);
  constexpr std::int64_t kMaxImmediate = (std::int64_t{1} << 23) - 1;  // SASS: 24 bits, signed
  std::int64_t addend = ValueAccess::has_reg(address) ? ValueAccess::bits(address) : 0;
  if (addend > kMaxImmediate || addend < -kMaxImmediate) addend = 0;
  if (addend == 0) return ptx::address(tracer.reg_of(address, at));
  Value base = ValueAccess::with_addend(address, 0, facts_of_type(address.type()));
  return ptx::address(tracer.reg_of(base, at), addend);
}

std::int64_t known_alignment(const Element& element) {
  std::int64_t divisor = element.offset().divisor();
  std::int64_t offset_bytes = divisor * storage_bits(element.tensor().type()) / 8;
  std::int64_t power = offset_bytes == 0 ? 4096 : offset_bytes & -offset_bytes;
  return std::min<std::int64_t>(element.tensor().alignment_bytes(), power);
}

const char* space_word(MemorySpace space) {
  switch (space) {
    case MemorySpace::global:
      return "global";
    case MemorySpace::shared:
      return "shared";
    case MemorySpace::cluster:
      return "shared::cluster";
  }
  return "";
}

Value shared_symbol(Tracer& tracer, ptx::SymbolId id, int alignment_bytes, SourceLoc at) {
  ptx::RegId reg = tracer.new_reg(u32);
  tracer.emit("mov.u32", {ptx::reg(reg), ptx::symbol(id)}, at);
  constexpr std::int64_t kSharedWindow = 1 << 24;
  return tracer.result(u32, reg, Uniformity::block, {alignment_bytes, 0, kSharedWindow});
}

}  // namespace tilewright::lang
