// SPDX-License-Identifier: Apache-2.0
// Fragments: packing and element access.
#include "tilewright/fragment.h"

#include "lang/tracer.h"
#include "tilewright/view.h"

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
  if (size <= 0 || type == pred || type == none || bits(type) > 64) {
    throw Error(ErrorKind::user,
                "Fragment: " + std::to_string(size) + " elements of type " +
                    std::string(name(type)) + "; it takes one or more elements of 4 to 64 bits",
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
      per_word_(bits(type) >= 32 ? 1 : 32 / storage_bits(type)),
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
  int width = 32 / per_word;
  Value shift = ValueAccess::constant(u32, std::int64_t{width} * (index_ % per_word));
  Value moved = tracer.pure("shr.u32", u32, {&whole, &shift}, at_);
  Value mask = ValueAccess::constant(u32, (1 << width) - 1);
  Value element_word = tracer.pure("and.b32", u32, {&moved, &mask}, at_);
  return tracer.pure("cvt.u16.u32", type, {&element_word}, at_);
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
  if (last_alone) {
    tracer.emit("cvt.u32.u16", {ptx::reg(word), ptx::reg(element)}, at_);
    return *this;
  }
  if (per_word == 2) {
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
  int width = 32 / per_word;
  tracer.emit("bfi.b32",
              {ptx::reg(word), ptx::reg(wide), ptx::reg(word),
               ptx::imm(std::int64_t{width} * (index_ % per_word)), ptx::imm(width)},
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
    if (per_word_ == 8) pattern = (pattern & 0xf) * 0x11111111;
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

Fragment Fragment::recast(Type type, SourceLoc at) const {
  require_role(at);
  int total = size_ * storage_bits(type_);
  int width = type == none || type == pred ? 0 : storage_bits(type);
  bool words = bits(type_) <= 32 && width <= 32;
  if (width == 0 || total % width != 0 || !(words || bits(type_) == width)) {
    throw Error(ErrorKind::user,
                "recast: " + std::to_string(size_) + " elements of " + std::string(name(type_)) +
                    " are " + std::to_string(total) + " bits, not whole elements of " +
                    std::string(name(type)) + " in the same registers",
                at);
  }
  return {type, total / width, words_, number_};
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
