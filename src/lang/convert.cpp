// SPDX-License-Identifier: Apache-2.0
// Conversions between types.
#include "lang/facts.h"
#include "lang/fold.h"
#include "lang/nibble.h"
#include "lang/small_float.h"
#include "lang/tracer.h"
#include "tilewright/fragment.h"
#include "tilewright/number_formats.h"
#include "tilewright/value.h"

#include <bit>
#include <cmath>
#include <optional>
#include <string>

namespace tilewright {
namespace {

using lang::Tracer;

std::string cvt(const char* rounding, Type to, Type from) {
  std::string op = "cvt";
  op += rounding;
  op += '.';
  op += name(to);
  op += '.';
  op += name(from);
  return op;
}

bool convertible(Type type) {
  return (is_integer(type) && bits(type) >= 8) || type == f16 || type == bf16 || type == f32 ||
         type == f64;
}

/// bf16 to f32 is exact: the upper half of the word. Two instructions on every target.
Value widen_bf16(const Value& x, Tracer& tracer, SourceLoc at) {
  Value word = tracer.pure("cvt.u32.u16", u32, {&x}, at);
  Value sixteen = ValueAccess::constant(u32, 16);
  return tracer.pure("shl.b32", f32, {&word, &sixteen}, at);
}

std::optional<Value> fold_conversion(const Value& x, Type to) {
  if (!x.is_constant()) return std::nullopt;
  std::int64_t raw = x.constant();
  if (is_integer(x.type()) && is_integer(to)) return ValueAccess::constant(to, lang::wrap(to, raw));
  if (is_integer(x.type()) && (to == f32 || to == f64)) {
    bool is_u64 = x.type() == u64 && raw < 0;
    if (is_u64) return std::nullopt;
    std::int64_t out =
        to == f64
            ? std::bit_cast<std::int64_t>(static_cast<double>(raw))
            : static_cast<std::int64_t>(std::bit_cast<std::uint32_t>(static_cast<float>(raw)));
    return ValueAccess::constant(to, out);
  }
  if ((x.type() == f16 || x.type() == bf16) && to == f32) {
    auto half = static_cast<std::uint16_t>(raw);
    float value = x.type() == f16 ? f16_to_f32(half) : bf16_to_f32(half);
    return ValueAccess::constant(f32,
                                 static_cast<std::int64_t>(std::bit_cast<std::uint32_t>(value)));
  }
  if (!is_float(to) || (x.type() != f32 && x.type() != f64)) return std::nullopt;
  double value = x.type() == f64
                     ? std::bit_cast<double>(raw)
                     : static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(raw)));
  if (to == f16 || to == bf16) return ValueAccess::constant(to, lang::rounded_bits(to, value));
  if (std::isnan(value)) return std::nullopt;
  if (to == f64) return ValueAccess::constant(to, std::bit_cast<std::int64_t>(value));
  if (to == f32) {
    auto narrow = std::bit_cast<std::uint32_t>(static_cast<float>(value));
    return ValueAccess::constant(to, static_cast<std::int64_t>(narrow));
  }
  return std::nullopt;
}

Value convert_float(const Value& x, Type to, Tracer& tracer, SourceLoc at) {
  Type from = x.type();
  if (from == bf16) {
    Value wide = widen_bf16(x, tracer, at);
    return to == f32 ? wide : wide.to(to, at);
  }
  if (to == bf16 && from == f16) return x.to(f32, at).to(bf16, at);
  bool widening = bits(to) > bits(from);
  return tracer.pure(cvt(widening ? "" : ".rn", to, from), to, {&x}, at);
}

bool converts_by_words(Type type) {
  return lang::is_small_float(type) || lang::is_nibble(type) || type == ue8m0;
}

/// By way of a fragment of one element.
Value convert_alone(const Value& x, Type to, SourceLoc at) {
  Fragment one = Fragment::undefined(x.type(), 1, at);
  one.at(0, at) = Arg(x, at);
  return one.to(to, at).at(0, at).get();
}

}  // namespace

Value Value::to(Type to, SourceLoc at) const {
  Type from = type_;
  if (from == to) return *this;
  if (auto folded = fold_conversion(*this, to)) return *folded;
  Tracer& tracer = Tracer::current("to", at);
  if (from == pred && is_integer(to) && bits(to) >= 16) {
    return select(Arg(*this, at), Arg(ValueAccess::constant(to, 1), at),
                  Arg(ValueAccess::constant(to, 0), at));
  }
  if (from != pred && (converts_by_words(from) || converts_by_words(to)))
    return convert_alone(*this, to, at);
  if (from == tf32) return bitcast(f32, at).to(to, at);
  if (to == tf32 && from == f32) return tracer.pure("cvt.rna.tf32.f32", tf32, {this}, at);
  if (to == tf32 && bits(from) == 16 && is_float(from)) return this->to(f32, at).bitcast(tf32, at);
  if (!convertible(from) || !convertible(to)) {
    throw Error(ErrorKind::user,
                "to: no conversion from " + std::string(name(from)) + " to " +
                    std::string(name(to)) +
                    (to == pred ? "; compare with 0" : "; use bitcast() for the same bits"),
                at);
  }
  if (is_float(from) && is_float(to)) return convert_float(*this, to, tracer, at);
  if (is_float(from)) {
    if (from == bf16) return widen_bf16(*this, tracer, at).to(to, at);
    return tracer.pure(cvt(".rzi", to, from), to, {this}, at, lang::facts_of_type(to));
  }
  // ptxas 13.0 takes no 8-bit source with bf16; f32 holds every such integer.
  if (to == bf16 && bits(from) == 8) return this->to(f32, at).to(bf16, at);
  if (is_float(to)) return tracer.pure(cvt(".rn", to, from), to, {this}, at);
  if (bits(from) == bits(to) && bits(to) >= 16) {  // same register, other sign
    Value same = *this;
    same.type_ = to;
    same.facts_ = lang::fits(facts_, to) ? facts_ : lang::facts_of_type(to);
    if (!has_reg_) return ValueAccess::constant(to, lang::wrap(to, bits_));
    return same;
  }
  Facts kept = lang::fits(facts_, to) ? facts_ : lang::facts_of_type(to);
  // Zeros above take no instruction, a sign does.
  const bool counts = from == s32 && bits(to) == 64 && facts_.lo >= 0;
  return tracer.pure(counts ? "cvt.u64.u32" : cvt("", to, from), to, {this}, at, kept);
}

Value Value::bitcast(Type to, SourceLoc at) const {
  if (to == type_) return *this;
  if (bits(to) != bits(type_) || to == pred || type_ == pred) {
    throw Error(ErrorKind::user,
                "bitcast: " + std::string(name(type_)) + " has " + std::to_string(bits(type_)) +
                    " bits and " + std::string(name(to)) + " has " + std::to_string(bits(to)) +
                    "; convert with .to()",
                at);
  }
  if (!has_reg_) {
    std::int64_t raw = is_integer(to) ? lang::wrap(to, bits_) : bits_;
    return ValueAccess::constant(to, raw);
  }
  Value whole = *this;
  if (bits_ != 0) {  // the addend is an integer's
    Tracer& tracer = Tracer::current("bitcast", at);
    whole.reg_ = tracer.reg_of(*this, at);
    whole.bits_ = 0;
    whole.region_ = tracer.innermost().id;
  }
  whole.fresh_ = false;
  whole.type_ = to;
  whole.facts_ = lang::facts_of_type(to);
  return whole;
}

}  // namespace tilewright
