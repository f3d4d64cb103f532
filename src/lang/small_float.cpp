// SPDX-License-Identifier: Apache-2.0
// fp8, fp6 and fp4: the target's cvt, two elements at a time, or the same results by arithmetic.
#include "lang/small_float.h"

#include "lang/packed_word.h"
#include "lang/tracer.h"
#include "tilewright/bit.h"

#include <array>
#include <cmath>
#include <string>

namespace tilewright::lang {
namespace {

struct Format {
  Type type;
  int exponent_bits, mantissa_bits;
  int lowest;  ///< exponent of the smallest normal number
  double largest;
  double prescale;  ///< see narrow_code(); 0: the sign has to be added apart
  int width() const { return 1 + exponent_bits + mantissa_bits; }
  bool has_nan() const { return width() == 8; }
};
constexpr Format kFormats[] = {
    {e4m3, 4, 3, -6, 448, 0},  {e5m2, 5, 2, -14, 57344, 0}, {e2m3, 2, 3, 0, 7.5, 1},
    {e3m2, 3, 2, -2, 28, 0.5}, {e2m1, 2, 1, 0, 6, 1},
};
const Format& format_of(Type type) {
  for (const Format& format : kFormats)
    if (format.type == type) return format;
  TW_ASSERT(false, "the caller asks is_small_float()");
  return kFormats[0];
}

Value u32_constant(std::int64_t bits) { return ValueAccess::constant(u32, bits); }
/// A pair of one f16.
Value both_halves(std::int64_t half) { return ValueAccess::constant(f16x2, half * 0x10001); }
Value f32_constant(double value) { return constant(f32, value); }

/// |f| or `least`, whichever is larger, with the sign of f.
Value at_least(const Value& f, double least, SourceLoc at) {
  Tracer& tracer = Tracer::current("to", at);
  Value bound = f32_constant(least);
  constexpr const char* kOp = "max.xorsign.abs.f32";
  if (has_instruction(kOp, at)) return tracer.pure(kOp, f32, {&f, &bound}, at);
  Value sign = f.bitcast(u32) & 0x80000000;
  return (max(abs(f), bound).bitcast(u32) | sign).bitcast(f32);
}

/// A u32 whose low 8 bits are the code of x.
///
/// With f the power of two below |x|, but no smaller than the format's lowest, the steps of the
/// format at x are f 2^-M. The sum r = x + f 2^(23-M) rounds x to them, ties to even, and holds
/// their number k in its low bits and the exponent E of f 2^(23-M) above. The code is
/// k + 2^M (E - E of the lowest), and r >> (23-M) is 2^M E: so r + (r >> (23-M)) is the code and a
/// constant, which j more steps in the factor 2^(23-M) make a multiple of 2^8. The sign comes to
/// its bit S by adding r >> (31-S) too, provided that the upper S bits of all E are equal; both
/// shifts are one multiplication. `prescale` moves the exponents to where they are.
Value narrow_code(const Format& format, const Value& x, Range range, SourceLoc at) {
  Tracer& tracer = Tracer::current("to", at);
  int m = format.mantissa_bits;
  int sign_bit = format.width() - 1;
  bool with_sign = format.prescale != 0;
  double scale = with_sign ? format.prescale : 1;
  int lowest = format.lowest + (with_sign ? static_cast<int>(std::log2(scale)) : 0);
  int lowest_field = lowest + 150 - m;
  int offset = 2048 - (lowest_field << m) - (with_sign ? lowest_field >> (8 - sign_bit) : 0);
  Value limit = f32_constant(format.largest * scale);
  Value scaled = scale == 1 ? x : x * scale;
  Value c = range == Range::within ? scaled : max(min(scaled, limit), -format.largest * scale);
  Value power = (c.bitcast(u32) & 0xff800000).bitcast(f32);
  Value f = at_least(power, std::ldexp(1.0, lowest), at);
  Value factor = f32_constant(std::ldexp(1.0, 23 - m) + std::ldexp(offset, -m));
  Value r = fma(f, factor, c).bitcast(u32);
  if (with_sign) {
    Value shifts = u32_constant((1 << (9 + m)) + (1 << (1 + sign_bit)));
    return tracer.pure("mad.hi.u32", u32, {&r, &shifts, &r}, at);
  }
  Value code = (((r >> (23 - m)) + r) & 0x7f) | (c.bitcast(u32) >> 24 & 0x80);
  return select(x == x, code, 0x7f);
}

/// Low nibbles of up to eight words, the rest 0.
Value pack_nibbles(std::span<const Value> codes) {
  std::vector<Value> pairs;
  for (std::size_t i = 0; i < codes.size(); i += 2)
    pairs.push_back(i + 1 < codes.size() ? fma(codes[i + 1], 16, codes[i]) : codes[i]);
  return pack_bytes(pairs);
}

std::string narrowing_op(Type to) { return "cvt.rn.satfinite." + std::string(name(to)) + "x2.f32"; }
std::string widening_op(Type from) { return "cvt.rn.f16x2." + std::string(name(from)) + "x2"; }

/// Eight codes of e2m1 as two words of the upper bytes of f16, whose lower bytes are 0. prmt looks
/// four magnitudes up at once; the signs are the top bits of the nibbles.
std::array<Value, 2> e2m1_bytes(const Value& word) {
  Value low_table = u32_constant(0x3e3c3800);   // 0, 0.5, 1, 1.5
  Value high_table = u32_constant(0x46444240);  // 2, 3, 4, 6
  Value indices = word & 0x77777777;
  Value even = word << 4;
  auto four = [&](const Value& four_indices, std::int64_t selector) {
    return prmt(low_table, high_table, four_indices) | (prmt(even, word, selector) & 0x80808080);
  };
  return {four(indices, 0x5140), four(indices >> 16, 0x7362)};
}

constexpr double kLeast64th = 0x1.00001p-6;

/// A word of codes of e2m1 from numbers that count them in e4m3: see narrow_64ths().
template <class Counted>
Value narrow_counted(std::span<const Value> wide, SourceLoc at, Counted counted) {
  std::array<std::vector<Value>, 2> halves;  // elements of even and of odd index
  for (std::size_t i = 0; i < wide.size(); ++i)
    halves[i % 2].push_back(counted(wide[i]));
  const std::string op = narrowing_op(Type::e4m3);
  Value even = narrow_pairs(op, Type::e4m3, halves[0], at);
  Value odd = narrow_pairs(op, Type::e4m3, halves[1], at);
  auto chosen = [](std::int64_t mask, const Value& a, const Value& b) {
    return ((a ^ b) & mask) ^ b;
  };
  Value magnitudes = chosen(0x07070707, (even >> 2) - 0x01010101, (odd << 2) - 0x10101010);
  Value signs = chosen(0x80808080, odd, even >> 4);
  Value codes = chosen(0x77777777, magnitudes, signs);
  return wide.size() == 8 ? codes : codes & ((std::int64_t{1} << 4 * wide.size()) - 1);
}

/// Two codes of a format of 6 or 8 bits, each in the upper byte of a half, as f16x2: the fields are
/// moved in place, and the multiplication moves the exponents and normalises what is subnormal.
Value fields_to_halves(const Format& format, const Value& codes, SourceLoc at) {
  Tracer& tracer = Tracer::current("to", at);
  int magnitude_bits = format.width() - 1;
  int down = 8 - (10 - format.mantissa_bits);  // the mantissa's lowest bit is bit 8 here
  std::int64_t mask = ((std::int64_t{1} << magnitude_bits) - 1) << (10 - format.mantissa_bits);
  Value moved = down == 0 ? codes : codes >> down;
  Value sign = format.width() == 8 ? codes : codes << (8 - format.width());
  Value halves = (moved & mask * 0x10001) | (sign & 0x80008000);
  Value scale = both_halves((format.lowest + 29) << 10);  // 2^(lowest + 14)
  Value value = tracer.pure("mul.rn.f16x2", u32, {&halves, &scale}, at);
  if (format.type != e4m3) return value;
  // 480 is the NaN: times 140 it alone overflows, and infinity times 0 makes the sum a NaN.
  Value beyond = both_halves(0x5860);
  Value zero = both_halves(0);
  Value large = tracer.pure("mul.rn.f16x2", u32, {&value, &beyond}, at);
  return tracer.pure("fma.rn.f16x2", u32, {&large, &zero, &value}, at);
}

}  // namespace

bool is_small_float(Type type) {
  for (const Format& format : kFormats)
    if (format.type == type) return true;
  return false;
}

std::vector<Value> widen_small(Type from, const Value& word, int count, SourceLoc at) {
  if (has_instruction(widening_op(from), at))
    return widen_pairs(widening_op(from), from, word, count, at);
  std::vector<Value> wide;
  Value zero = u32_constant(0);
  if (from == e2m1) {
    std::array<Value, 2> bytes = e2m1_bytes(word);
    for (int i = 0; 2 * i < count; ++i)
      wide.push_back(prmt(bytes[i < 2 ? 0 : 1], zero, i % 2 == 0 ? 0x1404 : 0x3424));
    return wide;
  }
  for (int i = 0; 2 * i < count; ++i) {
    Value upper = prmt(word, zero, i == 0 ? 0x1404 : 0x3424);
    wide.push_back(from == e5m2 ? upper : fields_to_halves(format_of(from), upper, at));
  }
  return wide;
}

Value narrow_small(Type to, std::span<const Value> wide, Range range, SourceLoc at) {
  if (has_instruction(narrowing_op(to), at)) return narrow_pairs(narrowing_op(to), to, wide, at);
  std::vector<Value> codes;
  codes.reserve(wide.size());
  for (const Value& value : wide)
    codes.push_back(narrow_code(format_of(to), value, range, at));
  return to == e2m1 ? pack_nibbles(codes) : pack_bytes(codes);
}

// Let g be |x|, but a little more than 2^-6 at least: with f the power of two below it, steps of
// e2m1 are f / 2 for 64 x, and so are those of f32 below 2^22 g. The difference of 2^22 g and x
// rounds to them, ties to even, for 2^22 g is an even number of steps wherever x is in the middle
// of two. (Just above a power of two the difference may have half the step, but x rounds to the
// power there.) What x was rounded to, and g / 2, are a number from which e4m3 keeps its power of
// two and the first bit below: together they count the codes of e2m1, from 1, in bits 2 to 5. So no
// sign is lost of a zero.
Value narrow_64ths(std::span<const Value> wide, SourceLoc at) {
  return narrow_counted(wide, at, [&](const Value& x) {
    Value g = at_least(x, kLeast64th, at);
    Value difference = fma(g, 0x1p22f, -x);
    return fma(g, 0x1p22f + 0.5f, -difference);
  });
}

// Elements are 2^22 times as large, and so is g: the difference has room for a factor of theirs.
// Where g is above a power of two and the product below it, the product rounds to the power.
Value narrow_products(std::span<const Value> wide, float factor, SourceLoc at) {
  return narrow_counted(wide, at, [&](const Value& x) {
    Value g = at_least(x, kLeast64th * 0x1p22, at);
    Value difference = fma(x, -factor / 64, g);
    return fma(g, 1 + 0x1p-23f, -difference);
  });
}

Value product_to_odd(const Value& x, float factor, SourceLoc at) {
  Tracer& tracer = Tracer::current("e2m1_of_products", at);
  Value by = f32_constant(factor);
  Value cut = tracer.pure("mul.rz.f32", f32, {&x, &by}, at);
  return select(fma(x, by, -cut) == 0.0f, cut, (cut.bitcast(u32) | 1).bitcast(f32));
}

}  // namespace tilewright::lang
