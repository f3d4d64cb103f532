// SPDX-License-Identifier: Apache-2.0
// Scales, codes and layouts of groups, on the device.
#include "kernels/quantize/group_codes.h"

#include "tilewright/ue8m0.h"

#include <limits>

namespace tilewright {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// The largest number of a type, (1 + fraction 2^-23) 2^exponent.
struct Largest {
  float value;
  int exponent, fraction, mantissa_bits;
};
Largest largest_of(Type element) {
  if (element == e2m1) return {6.0f, 2, 0x400000, 1};
  if (element == e5m2) return {57344.0f, 15, 0x600000, 2};
  return {448.0f, 8, 0x600000, 3};
}

/// The code of ue8m0, in an s32, for a finite largest magnitude of a group.
///
/// ceil: amax / largest exceeds a power of two where amax's fraction exceeds the largest number's;
/// `at` is amax with the exponent of that power. At 2^-127, the least, the quotient is subnormal,
/// and the first fraction beyond rounds back.
Value power_code(const QuantCoding& coding, const Value& amax) {
  const Largest largest = largest_of(coding.element);
  Value word = amax.bitcast(s32);
  if (coding.rule == ScaleRule::ceil) {
    Value at = word - (largest.exponent << 23);
    Value code = (at + (0x7fffff - largest.fraction)) >> 23;
    return select(at > largest.fraction + 1, code, 0);
  }
  bool even = coding.rule == ScaleRule::even;
  Value rounded = even ? word + (1 << (22 - largest.mantissa_bits)) : word;
  return max((rounded >> 23) - largest.exponent, 0);
}

/// The codes, or zeros: by whole words of them.
Fragment zero_unless(const Value& condition, const Fragment& codes) {
  int all = codes.size() * storage_bits(codes.type());
  Type word = all % 32 == 0 ? u32 : all % 16 == 0 ? u16 : u8;
  Fragment kept = map(codes.recast(word),
                      [&](const Value& w) { return select(condition, w, constant(word, 0)); });
  return kept.recast(codes.type());
}

}  // namespace

Value larger(const Value& a, const Value& b) { return max(a, b, NanMode::propagate); }

Value largest_magnitude(const Fragment& wide) {
  return reduce(map(wide, [](const Value& v) { return abs(v); }), larger);
}

// Corrected division (Markstein): the reciprocal is correctly rounded, the first quotient within
// two units of the last place, the second within one, the third correctly rounded. Remainders are
// taken negative, so that -0 keeps its sign, and of 0 instead of an infinite scale, so that finite
// elements give 0.
//
// One correction leaves a quotient within 2^-44 of the exact one, rounded. A product of a boundary
// of e2m1 (3 bits) and a scale of e4m3 (4 bits) is a number of f32, so that the nearest elements
// beside it have quotients more than half a unit beside the boundary: the codes are those of the
// rounded quotient. Infinite elements have no remainder: min takes the number.
Quotient::Quotient(Division division, const Value& scale)
    : division_(division),
      scale_(scale),
      inverse_(division == Division::corrected_once ? select(scale == 0.0f, 0.0f, rcp_approx(scale))
                                                    : constant(f32, 1.0f) / scale) {
  if (division == Division::corrected) {
    divisor_.emplace(select(abs(scale) == kInfinity, 0.0f, scale));
  }
}

Value Quotient::operator()(const Value& v) const {
  switch (division_) {
    case Division::exact:
      return v / scale_;
    case Division::product:
      return v * inverse_;
    case Division::corrected: {
      Value second = corrected(v * inverse_, v);
      return corrected(second, v);
    }
    case Division::corrected_once:
      break;
  }
  Value first = v * inverse_;
  Value remainder = min(fma(first, scale_, -v), std::numeric_limits<float>::max());
  return fma(remainder, -inverse_, first);
}

Value Quotient::corrected(const Value& quotient, const Value& v) const {
  return fma(fma(quotient, *divisor_, -v), -inverse_, quotient);
}

GroupCodes GroupCodes::of_largest(const QuantCoding& coding, Division division,
                                  const Value& largest, const Value& parameter) {
  if (is_mx(coding.format)) return mx(coding, largest);
  if (coding.format == QuantFormat::nvfp4) return nvfp4(coding, division, largest, parameter);
  return fp8(coding, division, larger(largest, parameter) / largest_of(coding.element).value);
}

GroupCodes GroupCodes::of_scale(const QuantCoding& coding, Division division, const Value& scale) {
  return fp8(coding, division, scale);
}

GroupCodes GroupCodes::fp8(const QuantCoding& coding, Division division, const Value& scale) {
  if (coding.scale_type == f32) {
    GroupCodes group(coding, scale);
    group.quotient_.emplace(division, scale);
    return group;
  }
  Value power = to_ue8m0(scale, PowerRounding::up);
  GroupCodes group(coding, power.bitcast(u8));
  group.quotient_.emplace(division, power.to(f32));
  return group;
}

GroupCodes GroupCodes::mx(const QuantCoding& coding, const Value& largest) {
  Value finite = largest < kInfinity;
  Value code = select(finite, power_code(coding, largest), 255);
  GroupCodes group(coding, code.to(u8));
  group.factor_.emplace(((254 - code) << 23).bitcast(f32));  // codes are at most 253
  group.finite_.emplace(finite);
  return group;
}

GroupCodes GroupCodes::nvfp4(const QuantCoding& coding, Division division, const Value& largest,
                             const Value& encode_scale) {
  Value finite = largest < kInfinity;
  Value wanted = largest / 6.0f * encode_scale;
  Value scale = select(finite, wanted, std::numeric_limits<float>::quiet_NaN()).to(e4m3);
  GroupCodes group(coding, scale);
  group.factor_.emplace(encode_scale);
  group.quotient_.emplace(division, scale.to(f32));
  group.finite_.emplace(finite);
  return group;
}

Fragment GroupCodes::operator()(const Fragment& wide) const {
  Fragment scaled = factor_ ? wide * *factor_ : wide;
  Fragment codes = (quotient_ ? map(scaled, *quotient_) : scaled).to(coding_.element);
  return finite_ ? zero_unless(*finite_, codes) : codes;
}

Value scale_value(const QuantCoding& coding, const Value& stored) {
  if (coding.scale_type == f32) return stored;
  return (coding.scale_type == ue8m0 ? stored.bitcast(ue8m0) : stored).to(f32);
}

Element scale_element(ScaleLayout layout, const Tensor& scales, const Value& row,
                      const Value& group) {
  switch (layout) {
    case ScaleLayout::row:
      return scales(row, group);
    case ScaleLayout::column_tma:
      return scales(group, row);
    case ScaleLayout::packed_ue8m0:
      return scales(group / 4, row, group % 4);
    case ScaleLayout::swizzle_128x4:
      return scales.element(coord({row / 128, group / 4, row % 32, row % 128 / 32, group % 4}));
    case ScaleLayout::swizzle_8x4:
      break;
  }
  return scales(row / 8, group / 4, row % 8, group % 4);
}

void pad_groups(ScaleLayout layout, const Tensor& scales, const Value& row, std::int64_t groups_n) {
  for (std::int64_t group = groups_n; group < padded_groups(layout, groups_n); ++group) {
    Value zero = constant(u8, 0);
    scale_element(layout, scales, row, constant(s32, group)) =
        scales.type() == u8 ? zero : zero.bitcast(scales.type());
  }
}

void pad_word(ScaleLayout layout, const Tensor& scales, const Value& row, const Value& word) {
  if (layout == ScaleLayout::column_tma) {
    scale_element(layout, scales, row, word) = 1.0f;
    return;
  }
  Fragment zeros(scales.type(), 4);  // 0 when made
  store(scale_element(layout, scales, row, word * 4), zeros);
}

}  // namespace tilewright
