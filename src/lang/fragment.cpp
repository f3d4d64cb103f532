// SPDX-License-Identifier: Apache-2.0
// Fragments: packing, element access, conversion of whole fragments.
#include "tilewright/fragment.h"

#include "lang/fp8.h"
#include "lang/tracer.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>

namespace tilewright {

using lang::Tracer;

namespace {

Value word_value(std::uint32_t word) {
  // Registers of fragments are variables: never shared as common subexpressions.
  Var var = ValueAccess::make_var(u32, word, Uniformity::thread);
  return ValueAccess::direct(var);
}

void refuse_sizes(const char* what, int a, int b, SourceLoc at) {
  throw Error(ErrorKind::user,
              std::string(what) + ": the fragments have " + std::to_string(a) + " and " +
                  std::to_string(b) + " elements; they must be equal",
              at);
}

}  // namespace

Fragment::Fragment(Type type, int size, SourceLoc at) : Fragment(undefined(type, size, at)) {
  if (per_word_ == 1) return;
  Tracer& tracer = Tracer::current("Fragment", at);
  for (std::uint32_t word : words_)
    tracer.emit("mov.b32", {ptx::reg(word), ptx::imm(0)}, at);
}

Fragment Fragment::undefined(Type type, int size, SourceLoc at) {
  Tracer& tracer = Tracer::current("Fragment", at);
  if (size <= 0 || type == pred || bits(type) > 64 || bits(type) < 8) {
    throw Error(ErrorKind::user,
                "Fragment: " + std::to_string(size) + " elements of type " +
                    std::string(name(type)) + "; it takes one or more elements of 8 to 64 bits",
                at);
  }
  Fragment made(type, size, std::vector<std::uint32_t>{}, tracer.fragments++);
  int count = (size + made.per_word_ - 1) / made.per_word_;
  for (int i = 0; i < count; ++i)
    made.words_.push_back(tracer.new_reg(bits(type) == 64 ? b64 : b32));
  return made;
}

Fragment::Fragment(Type type, int size, std::vector<std::uint32_t> words, int number)
    : type_(type),
      size_(size),
      per_word_(bits(type) >= 32 ? 1 : 32 / bits(type)),
      number_(number),
      words_(std::move(words)) {}

void Fragment::require_role(SourceLoc at) const {
  Tracer& tracer = Tracer::current("Fragment", at);
  if (number_ >= tracer.role_fragments) return;
  throw Error(ErrorKind::user,
              "Fragment: " + std::to_string(size_) + " elements of " + std::string(name(type_)) +
                  " made before a role branch and used beyond it, which would keep their "
                  "registers in every role; make it inside the role's body",
              at);
}

Fragment::Slot::Slot(const Fragment& fragment, int index, SourceLoc at)
    : fragment_(fragment), index_(index), at_(at) {
  fragment.require_role(at);
  if (index >= 0 && index < fragment.size()) return;
  throw Error(ErrorKind::user,
              "Fragment: element " + std::to_string(index) + " of " +
                  std::to_string(fragment.size()) + "; indices are constants from 0",
              at);
}

Value Fragment::Slot::get() const {
  Tracer& tracer = Tracer::current("Fragment", at_);
  int per_word = fragment_.per_word_;
  std::uint32_t word = fragment_.words_[static_cast<std::size_t>(index_ / per_word)];
  Type type = fragment_.type_;
  if (per_word == 1) return Value(ValueAccess::make_var(type, word, Uniformity::thread), at_);
  ptx::RegId element = tracer.new_reg(type);
  if (per_word == 2) {
    ptx::RegId other = tracer.new_reg(type);
    bool high = index_ % 2 == 1;
    tracer.emit("mov.b32",
                {ptx::vector({ptx::reg(high ? other : element), ptx::reg(high ? element : other)}),
                 ptx::reg(word)},
                at_);
    return tracer.result(type, element, Uniformity::thread);
  }
  Value whole = word_value(word);
  Value shift = ValueAccess::constant(u32, 8 * (index_ % 4));
  Value moved = tracer.pure("shr.u32", u32, {&whole, &shift}, at_);
  Value mask = ValueAccess::constant(u32, 0xff);
  Value byte = tracer.pure("and.b32", u32, {&moved, &mask}, at_);
  return tracer.pure("cvt.u16.u32", type, {&byte}, at_);
}

Fragment::Slot::operator Arg() const { return Arg(get(), at_); }

const Fragment::Slot& Fragment::Slot::operator=(const Arg& value) const {
  Tracer& tracer = Tracer::current("Fragment", at_);
  Type type = fragment_.type_;
  bool fresh = !value.is_literal() && ValueAccess::fresh(value.value());
  Value source = value.as(type, "Fragment");
  int per_word = fragment_.per_word_;
  std::uint32_t word = fragment_.words_[static_cast<std::size_t>(index_ / per_word)];
  if (per_word == 1) {
    if (fresh && tracer.retarget(value.value(), word)) return *this;
    ValueAccess::make_var(type, word, Uniformity::thread) = Arg(source, at_);
    return *this;
  }
  ptx::RegId element = tracer.reg_of(source, at_);
  bool last_alone = index_ == fragment_.size_ - 1 && index_ % per_word == 0;
  if (per_word == 2) {
    if (last_alone) {
      tracer.emit("cvt.u32.u16", {ptx::reg(word), ptx::reg(element)}, at_);
      return *this;
    }
    // Insert 16 bits: prmt selects two bytes of the element and two of the old word.
    ptx::RegId wide = tracer.new_reg(u32);
    tracer.emit("cvt.u32.u16", {ptx::reg(wide), ptx::reg(element)}, at_);
    std::int64_t selector = index_ % 2 == 0 ? 0x7610 : 0x1054;
    tracer.emit("prmt.b32", {ptx::reg(word), ptx::reg(wide), ptx::reg(word), ptx::imm(selector)},
                at_);
    return *this;
  }
  ptx::RegId wide = tracer.new_reg(u32);
  tracer.emit("cvt.u32.u16", {ptx::reg(wide), ptx::reg(element)}, at_);
  tracer.emit(
      "bfi.b32",
      {ptx::reg(word), ptx::reg(wide), ptx::reg(word), ptx::imm(8 * (index_ % 4)), ptx::imm(8)},
      at_);
  return *this;
}

void Fragment::fill(const Arg& value) const {
  SourceLoc at = value.at();
  Tracer& tracer = Tracer::current("fill", at);
  require_role(at);
  Value element = value.as(type_, "fill");
  const char* move = bits(type_) == 64 ? "mov.b64" : "mov.b32";
  if (element.is_constant()) {
    std::int64_t pattern = element.constant();
    if (per_word_ == 2) pattern = (pattern & 0xffff) * 0x10001;
    if (per_word_ == 4) pattern = (pattern & 0xff) * 0x1010101;
    for (std::uint32_t word : words_)
      tracer.emit(move, {ptx::reg(word), ptx::imm(pattern)}, at);
    return;
  }
  if (per_word_ == 1) {
    ptx::RegId source = tracer.reg_of(element, at);
    for (std::uint32_t word : words_)
      tracer.emit(move, {ptx::reg(word), ptx::reg(source)}, at);
    return;
  }
  for (std::uint32_t word : words_)
    tracer.emit(move, {ptx::reg(word), ptx::imm(0)}, at);
  for (int i = 0; i < size_; ++i)
    this->at(i, at) = Arg(element, at);
}

void Fragment::assign(const Fragment& other, SourceLoc at) const {
  if (other.size() != size_) refuse_sizes("assign", size_, other.size(), at);
  if (other.type() != type_) {
    throw Error(ErrorKind::user,
                "assign: the fragments have types " + std::string(name(type_)) + " and " +
                    std::string(name(other.type())) + "; convert with .to()",
                at);
  }
  Tracer& tracer = Tracer::current("assign", at);
  require_role(at);
  other.require_role(at);
  const char* move = bits(type_) == 64 ? "mov.b64" : "mov.b32";
  for (std::size_t i = 0; i < words_.size(); ++i) {
    tracer.emit(move, {ptx::reg(words_[i]), ptx::reg(other.words_[i])}, at);
  }
}

Fragment Fragment::clone(SourceLoc at) const {
  Fragment copy = undefined(type_, size_, at);
  copy.assign(*this, at);
  return copy;
}

Fragment Fragment::part(int begin, int count, SourceLoc at) const {
  bool whole = begin >= 0 && count > 0 && begin + count <= size_ && begin % per_word_ == 0 &&
               (count % per_word_ == 0 || begin + count == size_);
  if (!whole) {
    throw Error(ErrorKind::user,
                "part: elements " + std::to_string(begin) + " to " +
                    std::to_string(begin + count - 1) + " of " + std::to_string(size_) +
                    "; take elements inside, in words of " + std::to_string(per_word_),
                at);
  }
  auto first = words_.begin() + begin / per_word_;
  auto last = first + (count + per_word_ - 1) / per_word_;
  return {type_, count, std::vector<std::uint32_t>(first, last), number_};
}

namespace {

/// Two f32 from a word of two 16-bit elements.
void widen_word(Tracer& tracer, Type from, std::uint32_t word, std::uint32_t low,
                const std::uint32_t* high, SourceLoc at) {
  if (from == bf16) {  // a bf16 is the upper half of an f32
    tracer.emit("shl.b32", {ptx::reg(low), ptx::reg(word), ptx::imm(16)}, at);
    if (high != nullptr) {
      tracer.emit("and.b32", {ptx::reg(*high), ptx::reg(word), ptx::imm(0xffff0000)}, at);
    }
    return;
  }
  ptx::RegId half_low = tracer.new_reg(f16);
  ptx::RegId half_high = tracer.new_reg(f16);
  tracer.emit("mov.b32", {ptx::vector({ptx::reg(half_low), ptx::reg(half_high)}), ptx::reg(word)},
              at);
  tracer.emit("cvt.f32.f16", {ptx::reg(low), ptx::reg(half_low)}, at);
  if (high != nullptr) tracer.emit("cvt.f32.f16", {ptx::reg(*high), ptx::reg(half_high)}, at);
}

void narrow_word(Tracer& tracer, Type to, std::uint32_t word, std::uint32_t low,
                 const std::uint32_t* high, SourceLoc at) {
  ptx::Operand upper = high != nullptr ? ptx::reg(*high) : ptx::imm_f32(0.0f);
  const char* op = to == bf16 ? "cvt.rn.bf16x2.f32" : "cvt.rn.f16x2.f32";
  tracer.emit(op, {ptx::reg(word), upper, ptx::reg(low)}, at);
}

}  // namespace

Fragment Fragment::to(Type type, SourceLoc at) const {
  require_role(at);
  if (type == type_) return *this;
  Tracer& tracer = Tracer::current("to", at);
  bool halves = type_ == bf16 || type_ == f16;
  bool to_halves = type == bf16 || type == f16;
  if ((halves && type == f32) || (type_ == f32 && to_halves)) {
    Fragment out = undefined(type, size_, at);
    const Fragment& narrow = halves ? *this : out;
    const Fragment& wide = halves ? out : *this;
    for (std::size_t w = 0; w < narrow.words_.size(); ++w) {
      bool pair = 2 * w + 1 < wide.words_.size();
      const std::uint32_t* high = pair ? &wide.words_[2 * w + 1] : nullptr;
      if (halves) widen_word(tracer, type_, narrow.words_[w], wide.words_[2 * w], high, at);
      if (!halves) narrow_word(tracer, type, narrow.words_[w], wide.words_[2 * w], high, at);
    }
    return out;
  }
  if ((lang::is_fp8(type_) && type == f32) || (type_ == f32 && lang::is_fp8(type))) {
    bool narrowing = type_ == f32;
    Fragment out = undefined(type, size_, at);
    const Fragment& narrow = narrowing ? out : *this;
    std::span<const std::uint32_t> wide = narrowing ? words_ : out.words_;
    for (std::size_t w = 0; w < narrow.words_.size(); ++w) {
      auto four = wide.subspan(4 * w, std::min<std::size_t>(4, wide.size() - 4 * w));
      if (narrowing) lang::narrow_fp8(tracer, type, narrow.words_[w], four, at);
      if (!narrowing) lang::widen_fp8(tracer, type_, narrow.words_[w], four, at);
    }
    return out;
  }
  Fragment out(type, size_, at);
  for (int i = 0; i < size_; ++i)
    out.at(i, at) = Arg(this->at(i, at).get().to(type, at), at);
  return out;
}

namespace {

template <class F>
Fragment elementwise(const char* what, const Fragment& a, const Fragment& b, F&& combine) {
  if (a.size() != b.size()) refuse_sizes(what, a.size(), b.size(), {});
  return zip_map(a, b, combine);
}

}  // namespace

Fragment operator+(const Fragment& a, const Fragment& b) {
  return elementwise("operator+", a, b, [](const Value& x, const Value& y) { return x + y; });
}
Fragment operator-(const Fragment& a, const Fragment& b) {
  return elementwise("operator-", a, b, [](const Value& x, const Value& y) { return x - y; });
}
Fragment operator*(const Fragment& a, const Fragment& b) {
  return elementwise("operator*", a, b, [](const Value& x, const Value& y) { return x * y; });
}
Fragment operator*(const Fragment& a, const Arg& b) {
  return map(a, [&](const Value& x) { return x * b; });
}
Fragment operator+(const Fragment& a, const Arg& b) {
  return map(a, [&](const Value& x) { return x + b; });
}

}  // namespace tilewright
