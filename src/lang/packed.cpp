// SPDX-License-Identifier: Apache-2.0
// Pairs of values: made of halves, and computed by instructions or half by half.
#include "lang/packed.h"

#include "lang/operands.h"
#include "lang/packed_word.h"
#include "lang/tracer.h"

#include <array>
#include <string>
#include <utility>

namespace tilewright {
namespace {

constexpr std::array<std::pair<Type, Type>, 5> kPairs{
    {{f16, f16x2}, {bf16, bf16x2}, {u16, u16x2}, {s16, s16x2}, {f32, f32x2}}};

/// The half as an unsigned integer of the pair's width.
Value widened(const Value& half) {
  return bits(half.type()) == 32 ? half.bitcast(u32).to(u64) : half.bitcast(u16).to(u32);
}

}  // namespace

Value pack(const Arg& low, const Arg& high) {
  lang::Pair p = lang::unify(low, high, "pack");
  for (auto [half, pair] : kPairs) {
    if (half != p.type) continue;
    Value shifted = Arg(widened(p.b), p.at) << bits(half);
    return (Arg(widened(p.a), p.at) | Arg(shifted, p.at)).bitcast(pair);
  }
  lang::refuse_type("pack", p.type, "f16, bf16, u16, s16 and f32", p.at);
}

Unpacked unpack(const Arg& packed) {
  Value x = packed.natural();
  for (auto [half, pair] : kPairs) {
    if (pair != x.type()) continue;
    Type whole = bits(half) == 32 ? u64 : u32;
    Type bare = bits(half) == 32 ? u32 : u16;
    Value word = x.bitcast(whole);
    Value upper = Arg(word, packed.at()) >> bits(half);
    return {word.to(bare).bitcast(half), upper.to(bare).bitcast(half)};
  }
  lang::refuse_type("unpack", x.type(), "f16x2, bf16x2, u16x2, s16x2 and f32x2", packed.at());
}

namespace lang {

bool is_number_pair(Type type) { return type == u16x2 || type == s16x2 || type == f32x2; }

Value binary_on_pairs(std::string_view stem, Binary half, const Value& a, const Value& b,
                      SourceLoc at) {
  std::string op = std::string(stem) + std::string(name(a.type()));
  if (!stem.empty() && has_instruction(op, at))
    return Tracer::current(stem.data(), at).pure(op, a.type(), {&a, &b}, at);
  Unpacked x = unpack(Arg(a, at)), y = unpack(Arg(b, at));
  Value low = half(Arg(x.low, at), Arg(y.low, at));
  Value high = half(Arg(x.high, at), Arg(y.high, at));
  return pack(Arg(low, at), Arg(high, at));
}

Value fma_on_pairs(const Value& a, const Value& b, const Value& c, SourceLoc at) {
  if (a.type() == f32x2 && has_instruction("fma.rn.f32x2", at))
    return Tracer::current("fma", at).pure("fma.rn.f32x2", f32x2, {&a, &b, &c}, at);
  Unpacked x = unpack(Arg(a, at)), y = unpack(Arg(b, at)), z = unpack(Arg(c, at));
  Value low = fma(Arg(x.low, at), Arg(y.low, at), Arg(z.low, at));
  Value high = fma(Arg(x.high, at), Arg(y.high, at), Arg(z.high, at));
  return pack(Arg(low, at), Arg(high, at));
}

}  // namespace lang
}  // namespace tilewright
