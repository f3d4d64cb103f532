// SPDX-License-Identifier: Apache-2.0
// Atomics and reductions: which types each has, and how PTX spells it.
#include "tilewright/atomic.h"

#include "lang/address.h"
#include "lang/reduction.h"

#include <string>
#include <vector>

namespace tilewright {
namespace {

using lang::Operands;
using lang::Tracer;

enum class Old : std::uint8_t { wanted, dropped };

std::string with_space(const char* stem, const char* what, const Element& cell,
                       AtomicOptions options, SourceLoc at) {
  static constexpr const char* kOrders[] = {".relaxed", ".acquire", ".release", ".acq_rel"};
  static constexpr const char* kScopes[] = {".cta", ".cluster", ".gpu", ".sys"};
  bool reduction = std::string(stem) == "red";
  if (reduction && (options.order == Order::acquire || options.order == Order::acq_rel)) {
    throw Error(ErrorKind::user,
                std::string(what) + ": the order is " +
                    (kOrders[static_cast<int>(options.order)] + 1) +
                    ", but an operation without the old value acquires nothing; use "
                    "Order::relaxed or Order::release, or the atomic_ form",
                at);
  }
  return std::string(stem) + kOrders[static_cast<int>(options.order)] +
         kScopes[static_cast<int>(options.scope)] + "." + lang::space_word(cell.tensor().space());
}

struct Operation {
  const char* what;  // for errors
  const char* op;    // ".add"
  Operands operands;
};

std::string full_op(const Operation& operation, const Element& cell, AtomicOptions options, Old old,
                    SourceLoc at) {
  Type type = cell.tensor().type();
  std::string word = lang::operand_word(operation.operands, type);
  if (word.empty()) {
    throw Error(
        ErrorKind::user,
        std::string(operation.what) + ": not defined for " + std::string(name(type)) + "; " +
            lang::operands_text(operation.operands) +
            (operation.operands == Operands::order ? "; write a loop with atomic_cas for others"
                                                   : ""),
        at);
  }
  const char* stem = old == Old::wanted ? "atom" : "red";
  return with_space(stem, operation.what, cell, options, at) + operation.op + word;
}

Value atomic(const Operation& operation, const Element& cell, const Arg& value,
             AtomicOptions options) {
  SourceLoc at = value.at();
  Tracer& tracer = Tracer::current(operation.what, at);
  Type type = cell.tensor().type();
  std::string op = full_op(operation, cell, options, Old::wanted, at);
  ptx::Operand operand = tracer.operand(value.as(type, operation.what), at);
  ptx::Operand address = lang::address_operand(cell, at);
  ptx::RegId old = tracer.new_reg(type);
  tracer.emit(op, {ptx::reg(old), address, operand}, at);
  return tracer.result(type, old, Uniformity::thread);
}

void reduction(const Operation& operation, const Element& cell, const Arg& value,
               AtomicOptions options) {
  SourceLoc at = value.at();
  Tracer& tracer = Tracer::current(operation.what, at);
  std::string op = full_op(operation, cell, options, Old::dropped, at);
  ptx::Operand operand = tracer.operand(value.as(cell.tensor().type(), operation.what), at);
  tracer.emit(op, {lang::address_operand(cell, at), operand}, at);
}

/// ".add.v2.f32" and the like; errors for what the hardware does not have.
std::string vector_op(const char* what, const Element& first, const Fragment& values,
                      SourceLoc at) {
  Type type = first.tensor().type();
  bool half = type == f16 || type == bf16;
  int words = half ? values.size() / 2 : values.size();
  bool whole = !half || values.size() % 2 == 0;
  bool global = first.tensor().space() == MemorySpace::global;
  bool fits = whole && (words == 1 || (global && (words == 2 || words == 4)));
  if ((!half && type != f32) || values.type() != type || !fits) {
    throw Error(ErrorKind::user,
                std::string(what) + ": " + std::to_string(values.size()) + " elements of " +
                    std::string(name(values.type())) + " to " + std::string(name(type)) + " in " +
                    lang::space_word(first.tensor().space()) +
                    " memory; it takes 2 f16 or bf16, and in global memory 2 or 4 f32 and 4 or 8 "
                    "f16 or bf16",
                at);
  }
  std::int64_t size = std::int64_t{4} * words;
  if (lang::known_alignment(first) < size) {
    throw Error(ErrorKind::user,
                std::string(what) + ": " + std::to_string(size) +
                    " bytes at an address known to be aligned to " +
                    std::to_string(lang::known_alignment(first)) +
                    "; add fewer elements at a time, or give the tensor its alignment",
                at);
  }
  std::string op = half ? ".add.noftz" : ".add";
  if (words > 1) op += ".v" + std::to_string(words);
  return op + "." + std::string(name(type)) + (half ? "x2" : "");
}

ptx::Operand words_operand(const Fragment& fragment, SourceLoc at) {
  if (fragment.words(at).size() == 1) return ptx::reg(fragment.words(at)[0]);
  std::vector<ptx::Operand> elems;
  for (std::uint32_t word : fragment.words(at))
    elems.push_back(ptx::reg(word));
  return ptx::vector(std::move(elems));
}

constexpr Operation kAdd{"atomic_add", ".add", Operands::sum};
constexpr Operation kMin{"atomic_min", ".min", Operands::order};
constexpr Operation kMax{"atomic_max", ".max", Operands::order};
constexpr Operation kAnd{"atomic_and", ".and", Operands::bits};
constexpr Operation kOr{"atomic_or", ".or", Operands::bits};
constexpr Operation kXor{"atomic_xor", ".xor", Operands::bits};
constexpr Operation kInc{"atomic_inc", ".inc", Operands::word};
constexpr Operation kDec{"atomic_dec", ".dec", Operands::word};
constexpr Operation kExch{"atomic_exch", ".exch", Operands::bits};

/// The same operation by the name of its form without the old value.
constexpr Operation red(const Operation& operation, const char* what) {
  return {what, operation.op, operation.operands};
}

}  // namespace

Value atomic_add(const Element& cell, const Arg& value, AtomicOptions options) {
  return atomic(kAdd, cell, value, options);
}
Value atomic_min(const Element& cell, const Arg& value, AtomicOptions options) {
  return atomic(kMin, cell, value, options);
}
Value atomic_max(const Element& cell, const Arg& value, AtomicOptions options) {
  return atomic(kMax, cell, value, options);
}
Value atomic_and(const Element& cell, const Arg& value, AtomicOptions options) {
  return atomic(kAnd, cell, value, options);
}
Value atomic_or(const Element& cell, const Arg& value, AtomicOptions options) {
  return atomic(kOr, cell, value, options);
}
Value atomic_xor(const Element& cell, const Arg& value, AtomicOptions options) {
  return atomic(kXor, cell, value, options);
}
Value atomic_inc(const Element& cell, const Arg& value, AtomicOptions options) {
  return atomic(kInc, cell, value, options);
}
Value atomic_dec(const Element& cell, const Arg& value, AtomicOptions options) {
  return atomic(kDec, cell, value, options);
}
Value atomic_exch(const Element& cell, const Arg& value, AtomicOptions options) {
  return atomic(kExch, cell, value, options);
}

Value atomic_cas(const Element& cell, const Arg& expected, const Arg& value,
                 AtomicOptions options) {
  SourceLoc at = value.at();
  Tracer& tracer = Tracer::current("atomic_cas", at);
  Type type = cell.tensor().type();
  if (bits(type) < 16) {
    throw Error(ErrorKind::user,
                "atomic_cas: not defined for " + std::string(name(type)) +
                    "; it takes types of 16, 32 or 64 bits",
                at);
  }
  std::string op =
      with_space("atom", "atomic_cas", cell, options, at) + ".cas.b" + std::to_string(bits(type));
  ptx::Operand old_bits = ptx::reg(tracer.reg_of(expected.as(type, "atomic_cas"), at));
  ptx::Operand new_bits = ptx::reg(tracer.reg_of(value.as(type, "atomic_cas"), at));
  ptx::Operand address = lang::address_operand(cell, at);
  ptx::RegId old = tracer.new_reg(type);
  tracer.emit(op, {ptx::reg(old), address, old_bits, new_bits}, at);
  return tracer.result(type, old, Uniformity::thread);
}

void red_add(const Element& cell, const Arg& value, AtomicOptions options) {
  reduction(red(kAdd, "red_add"), cell, value, options);
}
void red_min(const Element& cell, const Arg& value, AtomicOptions options) {
  reduction(red(kMin, "red_min"), cell, value, options);
}
void red_max(const Element& cell, const Arg& value, AtomicOptions options) {
  reduction(red(kMax, "red_max"), cell, value, options);
}
void red_and(const Element& cell, const Arg& value, AtomicOptions options) {
  reduction(red(kAnd, "red_and"), cell, value, options);
}
void red_or(const Element& cell, const Arg& value, AtomicOptions options) {
  reduction(red(kOr, "red_or"), cell, value, options);
}
void red_xor(const Element& cell, const Arg& value, AtomicOptions options) {
  reduction(red(kXor, "red_xor"), cell, value, options);
}
void red_inc(const Element& cell, const Arg& value, AtomicOptions options) {
  reduction(red(kInc, "red_inc"), cell, value, options);
}
void red_dec(const Element& cell, const Arg& value, AtomicOptions options) {
  reduction(red(kDec, "red_dec"), cell, value, options);
}

Fragment atomic_add(const Element& first, const Fragment& values, AtomicOptions options,
                    SourceLoc at) {
  Tracer& tracer = Tracer::current("atomic_add", at);
  std::string op = with_space("atom", "atomic_add", first, options, at) +
                   vector_op("atomic_add", first, values, at);
  Fragment old(values.type(), values.size(), at);
  tracer.emit(op,
              {words_operand(old, at), lang::address_operand(first, at), words_operand(values, at)},
              at);
  return old;
}

void red_add(const Element& first, const Fragment& values, AtomicOptions options, SourceLoc at) {
  Tracer& tracer = Tracer::current("red_add", at);
  std::string op =
      with_space("red", "red_add", first, options, at) + vector_op("red_add", first, values, at);
  tracer.emit(op, {lang::address_operand(first, at), words_operand(values, at)}, at);
}

}  // namespace tilewright
