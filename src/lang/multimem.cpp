// SPDX-License-Identifier: Apache-2.0
// Multicast loads, stores and reductions as PTX.
#include "tilewright/multimem.h"

#include "lang/address.h"
#include "lang/reduction.h"

namespace tilewright {
namespace {

using lang::Operands;
using lang::Tracer;

constexpr const char* kOps[] = {".add", ".min", ".max", ".and", ".or", ".xor"};

Operands operands_of(Reduction reduction) {
  switch (reduction) {
    case Reduction::add:
      return Operands::sum;
    case Reduction::min:
    case Reduction::max:
      return Operands::order;
    case Reduction::and_:
    case Reduction::or_:
    case Reduction::xor_:
      return Operands::bits;
  }
  return Operands::bits;
}

[[noreturn]] void refuse(const char* what, const std::string& message, SourceLoc at) {
  throw Error(ErrorKind::user, std::string(what) + ": " + message, at);
}

/// "multimem.red.release.sys.global"
std::string stem(const char* what, const char* kind, const Tensor& tensor, MultimemOptions options,
                 SourceLoc at) {
  static constexpr const char* kScopes[] = {".cta", ".cluster", ".gpu", ".sys"};
  bool loads = std::string_view(kind) == "ld_reduce";
  Order strong = loads ? Order::acquire : Order::release;
  if (options.order != Order::relaxed && options.order != strong) {
    refuse(what,
           std::string("the order must be Order::relaxed or Order::") +
               (loads ? "acquire" : "release"),
           at);
  }
  if (tensor.space() != MemorySpace::global) {
    refuse(what,
           std::string("the element is in ") + lang::space_word(tensor.space()) +
               " memory; a multicast address is one of global memory",
           at);
  }
  const char* order = options.order == Order::relaxed ? ".relaxed"
                      : loads                         ? ".acquire"
                                                      : ".release";
  return std::string("multimem.") + kind + order + kScopes[static_cast<int>(options.scope)] +
         ".global";
}

/// ".add.u64" for one element.
std::string scalar_word(const char* what, Reduction reduction, Type type, SourceLoc at) {
  std::string word = lang::operand_word(operands_of(reduction), type);
  bool half = type == f16 || type == bf16;
  if (word.empty() || half) {
    refuse(what,
           "not defined for one " + std::string(name(type)) + "; " +
               lang::operands_text(operands_of(reduction)) +
               (half ? ", of f16 and bf16 several at once" : ""),
           at);
  }
  return kOps[static_cast<int>(reduction)] + word;
}

/// ".v2.f16x2" for several; min and max take halves alone.
std::string vector_word(const char* what, const Element& first, int count, bool ordered,
                        SourceLoc at) {
  Type type = first.tensor().type();
  bool half = type == f16 || type == bf16;
  bool fits = (half && (count == 2 || count == 4 || count == 8)) ||
              (type == f32 && !ordered && (count == 2 || count == 4));
  if (!fits) {
    refuse(what,
           std::to_string(count) + " elements of " + std::string(name(type)) +
               "; it takes 2, 4 or 8 f16 or bf16, and 2 or 4 f32 to add or store",
           at);
  }
  std::int64_t size = std::int64_t{count} * bytes(type);
  if (lang::known_alignment(first) < size) {
    refuse(what,
           std::to_string(size) + " bytes at an address known to be aligned to " +
               std::to_string(lang::known_alignment(first)) +
               "; take fewer elements at a time, or give the tensor its alignment",
           at);
  }
  int words = half ? count / 2 : count;
  std::string vector = words > 1 ? ".v" + std::to_string(words) : "";
  return vector + "." + std::string(name(type)) + (half ? "x2" : "");
}

std::string vector_word(const char* what, Reduction reduction, const Element& first, int count,
                        SourceLoc at) {
  if (operands_of(reduction) == Operands::bits) {
    refuse(what, "several elements at once are added, or their least or greatest taken", at);
  }
  return kOps[static_cast<int>(reduction)] +
         vector_word(what, first, count, reduction != Reduction::add, at);
}

ptx::Operand value_operand(const Fragment& fragment, SourceLoc at) {
  if (fragment.words(at).size() == 1) return ptx::reg(fragment.words(at)[0]);
  std::vector<ptx::Operand> elems;
  for (std::uint32_t word : fragment.words(at))
    elems.push_back(ptx::reg(word));
  return ptx::vector(std::move(elems));
}

void require_type(const char* what, const Element& first, const Fragment& values, SourceLoc at) {
  if (values.type() == first.tensor().type()) return;
  refuse(what,
         "the fragment has type " + std::string(name(values.type())) + " and the tensor " +
             std::string(name(first.tensor().type())) + "; convert with .to()",
         at);
}

}  // namespace

Value multimem_load(Reduction reduction, const Element& cell, MultimemOptions options,
                    SourceLoc at) {
  const char* what = "multimem_load";
  Tracer& tracer = Tracer::current(what, at);
  Type type = cell.tensor().type();
  std::string op =
      stem(what, "ld_reduce", cell.tensor(), options, at) + scalar_word(what, reduction, type, at);
  ptx::Operand address = lang::address_operand(cell, at);
  ptx::RegId reg = tracer.new_reg(type);
  tracer.emit(op, {ptx::reg(reg), address}, at);
  return tracer.result(type, reg, Uniformity::thread);
}

Fragment multimem_load(Reduction reduction, const Element& first, int count,
                       MultimemOptions options, SourceLoc at) {
  const char* what = "multimem_load";
  Tracer& tracer = Tracer::current(what, at);
  std::string op = stem(what, "ld_reduce", first.tensor(), options, at) +
                   vector_word(what, reduction, first, count, at);
  ptx::Operand address = lang::address_operand(first, at);
  Fragment loaded = Fragment::undefined(first.tensor().type(), count, at);
  tracer.emit(op, {value_operand(loaded, at), address}, at);
  return loaded;
}

void multimem_store(const Element& cell, const Arg& value, MultimemOptions options) {
  const char* what = "multimem_store";
  SourceLoc at = value.at();
  Tracer& tracer = Tracer::current(what, at);
  Type type = cell.tensor().type();
  if (bits(type) != 32 && bits(type) != 64) {
    refuse(what,
           "not defined for one " + std::string(name(type)) + "; it takes types of 32 or 64 bits",
           at);
  }
  std::string word = ".b" + std::to_string(bits(type));
  ptx::RegId reg = tracer.reg_of(value.as(type, what), at);
  tracer.emit(stem(what, "st", cell.tensor(), options, at) + word,
              {lang::address_operand(cell, at), ptx::reg(reg)}, at);
}

void multimem_store(const Element& first, const Fragment& values, MultimemOptions options,
                    SourceLoc at) {
  const char* what = "multimem_store";
  Tracer& tracer = Tracer::current(what, at);
  require_type(what, first, values, at);
  std::string op = stem(what, "st", first.tensor(), options, at) +
                   vector_word(what, first, values.size(), false, at);
  tracer.emit(op, {lang::address_operand(first, at), value_operand(values, at)}, at);
}

void multimem_red(Reduction reduction, const Element& cell, const Arg& value,
                  MultimemOptions options) {
  const char* what = "multimem_red";
  SourceLoc at = value.at();
  Tracer& tracer = Tracer::current(what, at);
  Type type = cell.tensor().type();
  std::string op =
      stem(what, "red", cell.tensor(), options, at) + scalar_word(what, reduction, type, at);
  ptx::RegId reg = tracer.reg_of(value.as(type, what), at);
  tracer.emit(op, {lang::address_operand(cell, at), ptx::reg(reg)}, at);
}

void multimem_red(Reduction reduction, const Element& first, const Fragment& values,
                  MultimemOptions options, SourceLoc at) {
  const char* what = "multimem_red";
  Tracer& tracer = Tracer::current(what, at);
  require_type(what, first, values, at);
  std::string op = stem(what, "red", first.tensor(), options, at) +
                   vector_word(what, reduction, first, values.size(), at);
  tracer.emit(op, {lang::address_operand(first, at), value_operand(values, at)}, at);
}

}  // namespace tilewright
