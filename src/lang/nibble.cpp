// SPDX-License-Identifier: Apache-2.0
// 4-bit integers: spread to bytes, which prmt makes the low bits of floats.
#include "lang/nibble.h"

#include "lang/tracer.h"
#include "tilewright/bit.h"

#include <array>

namespace tilewright::lang {
namespace {

Value u32_constant(std::int64_t bits) { return ValueAccess::constant(u32, bits); }

/// Two words of four bytes, 0 to 15: the elements, and for s4 8 more than they are.
std::array<Value, 2> biased_bytes(Type from, const Value& word, int count) {
  Value biased = from == s4 ? word ^ 0x88888888 : word;
  Value even = biased & 0x0f0f0f0f;
  Value odd = biased >> 4 & 0x0f0f0f0f;
  Value low = prmt(even, odd, 0x5140);
  return {low, count > 4 ? prmt(even, odd, 0x7362) : low};
}
int bias_of(Type type) { return type == s4 ? 8 : 0; }

}  // namespace

std::vector<Value> nibbles_to_halves(Type from, const Value& word, int count, SourceLoc at) {
  Tracer& tracer = Tracer::current("to", at);
  std::array<Value, 2> bytes = biased_bytes(from, word, count);
  Value thousands = u32_constant(0x64646464);  // 0x6400 is the f16 1024, whose last digit is 1
  Value offset = ValueAccess::constant(f16x2, (0x6400 + bias_of(from)) * 0x10001LL);
  std::vector<Value> pairs;
  for (int i = 0; 2 * i < count; ++i) {
    Value both = prmt(bytes[i < 2 ? 0 : 1], thousands, i % 2 == 0 ? 0x4140 : 0x4342);
    pairs.push_back(tracer.pure("sub.rn.f16x2", u32, {&both, &offset}, at));
  }
  return pairs;
}

std::vector<Value> nibbles_to_f32(Type from, const Value& word, int count) {
  std::array<Value, 2> bytes = biased_bytes(from, word, count);
  Value large = u32_constant(0x4b000000);  // the f32 2^23, whose last digit is 1
  std::vector<Value> wide;
  wide.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    wide.push_back(prmt(bytes[i < 4 ? 0 : 1], large, 0x7650 + i % 4).bitcast(f32) -
                   (8388608.0f + static_cast<float>(bias_of(from))));
  }
  return wide;
}

std::vector<Value> nibbles_to_s32(Type from, const Value& word, int count) {
  std::vector<Value> wide;
  for (int i = 0; i < count; ++i) {
    Value top = word << (28 - 4 * i);
    wide.push_back(from == s4 ? top.to(s32) >> 28 : (top >> 28).to(s32));
  }
  return wide;
}

Value narrow_nibbles(Type to, std::span<const Value> wide, SourceLoc at) {
  Tracer& tracer = Tracer::current("to", at);
  const char* op = to == s4 ? "cvt.pack.sat.s4.s32.b32" : "cvt.pack.sat.u4.s32.b32";
  Value zero_element = ValueAccess::constant(s32, 0);
  auto element = [&](std::size_t i) { return i < wide.size() ? wide[i] : zero_element; };
  Value above = u32_constant(0);
  std::vector<Value> words;
  for (std::size_t i = (wide.size() + 1) / 2; i-- > 0;) {
    Value low = element(2 * i);
    Value high = element(2 * i + 1);
    const Value& rest = words.empty() ? above : words.back();
    words.push_back(tracer.pure(op, u32, {&high, &low, &rest}, at));
  }
  return words.back();
}

}  // namespace tilewright::lang
