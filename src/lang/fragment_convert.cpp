// SPDX-License-Identifier: Apache-2.0
// Conversion of whole fragments: by words where several elements share one.
#include "lang/fragment_words.h"
#include "lang/nibble.h"
#include "lang/packed_word.h"
#include "lang/small_float.h"
#include "lang/tracer.h"
#include "lang/ue8m0_word.h"
#include "tilewright/fragment.h"

#include <optional>
#include <string>

namespace tilewright {

using lang::Tracer;

namespace {

bool is_half(Type type) { return type == f16 || type == bf16; }

/// Two f32 from a word of two 16-bit elements.
void widen_halves(Tracer& tracer, Type from, std::uint32_t word, std::uint32_t low,
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

void narrow_halves(Tracer& tracer, Type to, std::uint32_t word, std::uint32_t low,
                   const std::uint32_t* high, SourceLoc at) {
  ptx::Operand upper = high != nullptr ? ptx::reg(*high) : ptx::imm_f32(0.0f);
  const char* op = to == bf16 ? "cvt.rn.bf16x2.f32" : "cvt.rn.f16x2.f32";
  tracer.emit(op, {ptx::reg(word), upper, ptx::reg(low)}, at);
}

/// Between f32 and pairs of f16 or bf16.
Fragment convert_halves(const Fragment& x, Type to, SourceLoc at) {
  Tracer& tracer = Tracer::current("to", at);
  bool widening = to == f32;
  Fragment out = Fragment::undefined(to, x.size(), at);
  const Fragment& narrow = widening ? x : out;
  const Fragment& wide = widening ? out : x;
  for (std::size_t w = 0; w < narrow.words().size(); ++w) {
    bool pair = 2 * w + 1 < wide.words().size();
    const std::uint32_t* high = pair ? &wide.words()[2 * w + 1] : nullptr;
    std::uint32_t word = narrow.words()[w];
    if (widening) widen_halves(tracer, x.type(), word, wide.words()[2 * w], high, at);
    if (!widening) narrow_halves(tracer, to, word, wide.words()[2 * w], high, at);
  }
  return out;
}

/// From fp8, fp6 and fp4; exact in f16 and in all that is wider.
Fragment widen_small(const Fragment& x, Type to, SourceLoc at) {
  if (to == f16) {
    return lang::widen_by_words(
        f16, x,
        [&](const Value& word, int count) { return lang::widen_small(x.type(), word, count, at); },
        at);
  }
  auto widen = [&](const Value& word, int count) {
    std::vector<Value> wide;
    for (const Value& pair : lang::widen_small(x.type(), word, count, at)) {
      int left = std::min(2, count - static_cast<int>(wide.size()));
      for (const Value& value : lang::f16_pair_to_f32(pair, left, at))
        wide.push_back(value);
    }
    return wide;
  };
  Fragment wide = lang::widen_by_words(f32, x, widen, at);
  return to == f32 ? wide : wide.to(to, at);
}

Fragment widen_nibbles(const Fragment& x, Type to, SourceLoc at) {
  auto by = [&](Type type, auto&& widen) { return lang::widen_by_words(type, x, widen, at); };
  if (to == f16) {
    return by(f16, [&](const Value& word, int count) {
      return lang::nibbles_to_halves(x.type(), word, count, at);
    });
  }
  bool real = is_float(to);
  Fragment wide = by(real ? f32 : s32, [&](const Value& word, int count) {
    return real ? lang::nibbles_to_f32(x.type(), word, count)
                : lang::nibbles_to_s32(x.type(), word, count);
  });
  return to == wide.type() ? wide : wide.to(to, at);
}

[[noreturn]] void refuse(Type from, Type to, const std::string& remedy, SourceLoc at) {
  throw Error(ErrorKind::user,
              "to: no conversion from " + std::string(name(from)) + " to " + std::string(name(to)) +
                  "; " + remedy,
              at);
}

Fragment narrow_to_small(const Fragment& x, Type to, lang::Range range, SourceLoc at) {
  if (x.type() != f32) {
    bool exact = is_half(x.type()) || (is_integer(x.type()) && bits(x.type()) <= 16);
    if (!exact) refuse(x.type(), to, "it would round twice: convert to f32 first", at);
    return narrow_to_small(x.to(f32, at), to, range, at);
  }
  return lang::narrow_by_words(
      to, x, [&](std::span<const Value> wide) { return lang::narrow_small(to, wide, range, at); },
      at);
}

Fragment narrow_to_nibbles(const Fragment& x, Type to, SourceLoc at) {
  if (x.type() != s32) {
    bool fits = is_float(x.type()) || (is_integer(x.type()) && bits(x.type()) <= 16);
    if (!fits) refuse(x.type(), to, "convert to s32 first", at);
    return x.to(s32, at).to(to, at);
  }
  return lang::narrow_by_words(
      to, x, [&](std::span<const Value> wide) { return lang::narrow_nibbles(to, wide, at); }, at);
}

std::optional<Fragment> convert_words(const Fragment& x, Type to, SourceLoc at) {
  Type from = x.type();
  if ((is_half(from) && to == f32) || (from == f32 && is_half(to)))
    return convert_halves(x, to, at);
  if (to == ue8m0)
    refuse(from, to, "which power of two it shall be is said by to_ue8m0(x, PowerRounding)", at);
  if (lang::is_small_float(from)) return widen_small(x, to, at);
  if (lang::is_nibble(from)) return widen_nibbles(x, to, at);
  if (from == ue8m0) {
    Fragment wide = lang::widen_by_words(
        f32, x, [&](const Value& word, int count) { return lang::widen_ue8m0(word, count, at); },
        at);
    return to == f32 ? wide : wide.to(to, at);
  }
  if (lang::is_small_float(to)) return narrow_to_small(x, to, lang::Range::any, at);
  if (lang::is_nibble(to)) return narrow_to_nibbles(x, to, at);
  return std::nullopt;
}

/// Where there is no instruction for e2m1, but one for e4m3.
bool narrows_e2m1_by_e4m3(SourceLoc at) {
  return !lang::has_instruction("cvt.rn.satfinite.e2m1x2.f32", at) &&
         lang::has_instruction("cvt.rn.satfinite.e4m3x2.f32", at);
}

}  // namespace

Fragment Fragment::to(Type type, SourceLoc at) const {
  require_role(at);
  if (type == type_) return *this;
  Tracer& tracer = Tracer::current("to", at);
  Tracer::AttributeTo line(tracer, at);
  if (std::optional<Fragment> converted = convert_words(*this, type, at)) return *converted;
  Fragment out(type, size_, at);
  for (int i = 0; i < size_; ++i)
    out.at(i, at) = Arg(this->at(i, at).get().to(type, at), at);
  return out;
}

Fragment Fragment::to_within(Type type, SourceLoc at) const {
  if (type_ != f32 || !lang::is_small_float(type)) return to(type, at);
  require_role(at);
  Tracer::AttributeTo line(Tracer::current("to_within", at), at);
  return narrow_to_small(*this, type, lang::Range::within, at);
}

Fragment Fragment::e2m1_of_64ths(SourceLoc at) const {
  require_role(at);
  TW_ASSERT(type_ == f32, "64ths are f32");
  Tracer::AttributeTo line(Tracer::current("e2m1_of_64ths", at), at);
  if (!narrows_e2m1_by_e4m3(at))
    return narrow_to_small(*this * 64.0f, e2m1, lang::Range::within, at);
  return lang::narrow_by_words(
      e2m1, *this, [&](std::span<const Value> wide) { return lang::narrow_64ths(wide, at); }, at);
}

// A number that is rounded to odd is on the same side of all boundaries of e2m1.
Fragment Fragment::e2m1_of_products(float factor, SourceLoc at) const {
  require_role(at);
  TW_ASSERT(type_ == f32 && factor >= 0x1.ffp-17f && factor <= 0x1p-16f, "as its declaration says");
  Tracer::AttributeTo line(Tracer::current("e2m1_of_products", at), at);
  if (!narrows_e2m1_by_e4m3(at)) {
    const Fragment products =
        map(*this, [&](const Value& x) { return lang::product_to_odd(x, factor, at); });
    return narrow_to_small(products, e2m1, lang::Range::within, at);
  }
  return lang::narrow_by_words(
      e2m1, *this,
      [&](std::span<const Value> wide) { return lang::narrow_products(wide, factor, at); }, at);
}

}  // namespace tilewright
