// SPDX-License-Identifier: Apache-2.0
// Conversion to and from ue8m0, by the target's cvt or by arithmetic on f32's exponent.
#include "tilewright/ue8m0.h"

#include "lang/fragment_words.h"
#include "lang/packed_word.h"
#include "lang/tracer.h"
#include "lang/ue8m0_word.h"
#include "tilewright/bit.h"

#include <string>

namespace tilewright {
namespace {

using lang::Tracer;

/// The code in a u32: everything up to 2^-127, which is half of the smallest normal f32, is 0.
Value code_of(const Value& x, PowerRounding rounding) {
  Value a = x.bitcast(u32) & 0x7fffffff;
  Value carried =
      rounding == PowerRounding::up ? select(a > 0x00400000, a + 0x007fffff, constant(u32, 0)) : a;
  return select(x == x, min(carried >> 23, 254), 255);
}

Value narrow_word(std::span<const Value> wide, PowerRounding rounding, SourceLoc at) {
  const char* op = rounding == PowerRounding::up ? "cvt.rp.satfinite.ue8m0x2.f32"
                                                 : "cvt.rz.satfinite.ue8m0x2.f32";
  if (lang::has_instruction(op, at)) return lang::narrow_pairs(op, ue8m0, wide, at);
  std::vector<Value> codes;
  for (const Value& x : wide)
    codes.push_back(code_of(x, rounding));
  return lang::pack_bytes(codes);
}

void require_f32(Type type, SourceLoc at) {
  if (type == f32) return;
  throw Error(ErrorKind::user,
              "to_ue8m0: not defined for " + std::string(name(type)) +
                  "; it takes f32, convert with .to(f32)",
              at);
}

}  // namespace

namespace lang {

std::vector<Value> widen_ue8m0(const Value& word, int count, SourceLoc at) {
  constexpr const char* kOp = "cvt.rn.bf16x2.ue8m0x2";
  std::vector<Value> wide;
  if (has_instruction(kOp, at)) {
    for (const Value& pair : widen_pairs(kOp, ue8m0, word, count, at)) {
      int left = count - static_cast<int>(wide.size());
      for (Value& value : bf16_pair_to_f32(pair, left))
        wide.push_back(std::move(value));
    }
    return wide;
  }
  Value zero = constant(u32, 0);
  for (int i = 0; i < count; ++i) {
    Value power = (prmt(word, zero, 0x0444 + i * 0x1000) >> 1).bitcast(f32);
    // Code 0 is 2^-127, not 0; code 255 is infinity here, and infinity times 0 makes the sum a NaN.
    wide.push_back(fma(power, 0.0f, max(power, 0x1p-127f)));
  }
  return wide;
}

}  // namespace lang

Value to_ue8m0(const Arg& x, PowerRounding rounding) {
  SourceLoc at = x.at();
  Value value = x.settled();
  require_f32(value.type(), at);
  Tracer& tracer = Tracer::current("to_ue8m0", at);
  Tracer::AttributeTo attribute(tracer, at);
  Value word = narrow_word({&value, 1}, rounding, at);
  return tracer.pure("cvt.u16.u32", ue8m0, {&word}, at);
}

Fragment to_ue8m0(const Fragment& x, PowerRounding rounding, SourceLoc at) {
  require_f32(x.type(), at);
  Tracer& tracer = Tracer::current("to_ue8m0", at);
  Tracer::AttributeTo attribute(tracer, at);
  return lang::narrow_by_words(
      ue8m0, x, [&](std::span<const Value> wide) { return narrow_word(wide, rounding, at); }, at);
}

}  // namespace tilewright
