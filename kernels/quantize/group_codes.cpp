// SPDX-License-Identifier: Apache-2.0
// Scales, codes and layouts of groups, on the device.
#include "kernels/quantize/group_codes.h"

#include "tilewright/control.h"
#include "tilewright/function.h"
#include "tilewright/inline_ptx.h"
#include "tilewright/sync.h"
#include "tilewright/ue8m0.h"

#include <limits>
#include <span>

namespace tilewright {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
// Elements of e2m1 are computed as 64ths.
constexpr float kSixtyFourth = 0x1p-6f;
constexpr float kSaturates = 464.0f;  // the middle between 448 and what would follow in e4m3
// Division::skewed: reciprocals are so much too large, and the products are made smaller again.
constexpr float kSkew = 1 + 157 * 0x1p-23f;
constexpr float kUnskew = 0x1.fffd8cp-1f;
constexpr float kSkewedUnit = 0x1p16f;  // of products, of which e2m1_of_products() makes codes

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

Value any_of(std::span<const Value> conditions) {
  if (conditions.size() == 1) return conditions.front();
  return conditions.front() || any_of(conditions.subspan(1));
}

Value all_of(std::span<const Value> conditions) {
  if (conditions.size() == 1) return conditions.front();
  return conditions.front() && all_of(conditions.subspan(1));
}

/// The codes, or zeros: by whole words of them.
Fragment zero_unless(const Value& condition, const Fragment& codes) {
  int all = codes.size() * storage_bits(codes.type());
  Type word = all % 32 == 0 ? u32 : all % 16 == 0 ? u16 : u8;
  Fragment kept = map(codes.recast(word),
                      [&](const Value& w) { return select(condition, w, constant(word, 0)); });
  return kept.recast(codes.type());
}

/// Of 0 or a magnitude from 2^-126 to 2^126: ptxas guards other operands by 5 instructions.
Value reciprocal(const Value& x) {
  return inline_ptx("rcp.approx.ftz.f32 $0, $1;", {f32}, {x}).front();
}

Value finite_or_zero(const Value& scale) { return select(abs(scale) == kInfinity, 0.0f, scale); }

/// Skewed: of a scale of e4m3 or 0, for which it is 0; rounded correctly before the last product.
/// Corrected: a step of Newton's, 2^-40 above it, see Quotient.
Value inverse_of(Division division, const Value& scale) {
  if (division != Division::corrected && division != Division::skewed)
    return constant(f32, 1.0f) / scale;
  Value near = reciprocal(scale);
  if (division == Division::skewed) {
    Value inverse = fma(fma(-scale, near, 1.0f), near, near);
    return select(scale == 0.0f, 0.0f, inverse) * (kSkew * kSkewedUnit);
  }
  return fma(fma(-finite_or_zero(scale), near, 1.0f) + 0x1p-40f, near, near);
}

/// The reciprocal of a scale of 2^-92 to 2^100: rounded down, and what is left, rounded up.
struct TwoParts {
  Value most, rest;
};
TwoParts two_parts(const Value& scale) {
  Value near = reciprocal(scale);
  Value error = fma(-scale, near, 1.0f);
  Value most = inline_ptx("fma.rz.f32 $0, $1, $2, $1;", {f32}, {near, error}).front();
  Value left = fma(-scale, most, 1.0f);
  Value rest = inline_ptx("fma.rp.f32 $0, $1, $2, $1;", {f32}, {left * most, left}).front();
  return {most, max(rest, 0x1p-149f)};
}

/// x / divisor, correctly rounded, where that is 2^-126 and more: remainders are multiples of
/// 2^-149. (Tested for all significands.)
Value corrected_quotient(const Value& x, float divisor) {
  const float inverse = 1.0f / divisor;
  Value near = x * inverse;
  return fma(fma(near, -divisor, x), inverse, near);
}

/// Pre: x is at least 1e-30.
Value over_448(const Value& x) { return select(x < kInfinity, corrected_quotient(x, 448.0f), x); }

Value bounded(const QuantCoding& coding, const Value& largest) {
  if (coding.most == QuantCoding::kNoBound) return largest;
  return min(largest, coding.most, NanMode::propagate);
}

/// Called, as it hardly ever runs but would be most of the code.
Value divided(const Value& v, const Value& by) {
  return function_(
      "quotient_f32", [](const Value& x, const Value& divisor) { return x / divisor; }, f32, f32)(
      v, by);
}

/// Of x below 6 2^-126, in units of 2^-149, whose number is its code.
Value subnormal_sixth(const Value& x) {
  Value units = (x * 0x1p100f * 0x1p49f).to(u32);
  Value sixth = units / 6;
  Value up = units - sixth * 6 + (sixth & 1) > 3;  // to even at the middle
  return select(up, sixth + 1, sixth).bitcast(f32);
}

/// For products with `factor`; NaN for infinity. Sixths below 2^-126 are asked for under huge
/// factors only, for e4m3 has nothing below 2^-10.
Fragment sixths_of(const std::vector<Value>& xs, const Value& factor) {
  Fragment sixths(f32, static_cast<int>(xs.size()));
  for (std::size_t i = 0; i < xs.size(); ++i)
    sixths[static_cast<int>(i)] = corrected_quotient(xs[i], 6.0f);
  if_(factor > 0x1p100f, [&] {
    for (std::size_t i = 0; i < xs.size(); ++i) {
      Value sixth = sixths[static_cast<int>(i)].get();
      sixths[static_cast<int>(i)] = select(xs[i] < 6 * 0x1p-126f, subnormal_sixth(xs[i]), sixth);
    }
  });
  return sixths;
}

}  // namespace

// Quotients need correct remainders, which lose bits below 2^-149: a scale of at least 2^-92 and a
// quotient of at least 2^-10, half the smallest code, keep them. Elements beyond a bound of the
// scale may have a quotient of infinity, which has no remainder.
Division division_of(const QuantCoding& coding, bool exact, float floor) {
  constexpr float kLeastFloor = 448 * 0x1p-92f;
  if (!exact || coding.has_power_scales()) return Division::product;
  if (coding.format == QuantFormat::nvfp4) return Division::skewed;
  const bool given = coding.format == QuantFormat::fp8_tensor;
  const bool bound = coding.most != QuantCoding::kNoBound;
  return given || bound || floor < kLeastFloor ? Division::exact : Division::corrected;
}

Value larger(const Value& a, const Value& b) { return max(a, b, NanMode::propagate); }

// Corrected division: the first quotient q is v times the reciprocal y, the second q + (v - q s) y.
// Remainders are taken negative, so that -0 keeps its sign, and of 0 instead of an infinite scale,
// so that finite elements give 0.
//
// Rounding v / s and rounding the second quotient differ only if v / s and v / s + (v / s - q)
// (s y - 1) lie on both sides of the middle between two numbers of f32. Beside it, q is one of
// them, for |s y - 1| < 2^-24 if y is rounded correctly: half a unit away. In halves of a unit,
// v / s is D / S from the middle, D an integer that is not 0 and S < 2^24 the significand of s, and
// the error at most S 2^-48 (1 + 1 / S) < 1 / S. That y is not quite rounded correctly matters for
// S beyond 2^24 (1 - 2^-15) alone. There, next to a boundary of e4m3, which is an odd number of L
// bits, D is a multiple of 2^(L-1); where that is 1, y is above the reciprocal and the error less
// than 1 / S. (Tested for all S and boundaries.)
//
// Rounding v / s does not move it across a boundary b of e2m1 where s is a scale of e4m3: b s has 7
// bits, and a number v beside it is more than half a unit of the quotient away. Nor does one
// product with a reciprocal, if that is r K, rounded, with r the reciprocal, rounded, and K the
// skew: the product times 1 / K, rounded, is on v / s's side of b, and for v = b s on that of the
// even code. The skew is the least of which this is true. (Tested for the 8 significands of scales,
// and all of elements.)
Quotient::Quotient(Division division, const Value& scale) : division_(division), scale_(scale) {
  if (division == Division::exact || division == Division::by_parts) return;
  inverse_.emplace(inverse_of(division, scale));
  if (division == Division::corrected) divisor_.emplace(finite_or_zero(scale));
}

Value Quotient::operator()(const Value& v) const {
  switch (division_) {
    case Division::exact:
    case Division::by_parts:
      return v / scale_;
    case Division::corrected: {
      Value quotient = v * *inverse_;
      return fma(fma(quotient, *divisor_, -v), -*inverse_, quotient);
    }
    case Division::skewed:
    case Division::product:
      break;
  }
  return v * *inverse_;
}

// Of any elements. Products with the reciprocal's two parts are within 2^-20 of half a unit of the
// quotient, and rounded as it is unless that is as near to the middle of two numbers of f32. Where
// one of those is a boundary of codes, there are few such quotients, which are all tested. The
// first part is not above the reciprocal, and the second above 0, so that infinity and -0 stay.
std::vector<Fragment> Quotient::codes(const std::vector<Fragment>& elements, Type element) const {
  return codes({*this}, elements, element);
}

std::vector<Fragment> Quotient::codes(const std::vector<Quotient>& quotients,
                                      const std::vector<Fragment>& elements, Type element) {
  const std::size_t each = elements.size() / quotients.size();
  const Division division = quotients.front().division_;
  std::vector<Fragment> codes;
  if (division != Division::exact && division != Division::by_parts) {
    for (std::size_t i = 0; i < elements.size(); ++i)
      codes.push_back(map(elements[i], quotients[i / each]).to(element));
    return codes;
  }
  for (const Fragment& access : elements)
    codes.emplace_back(element, access.size());
  const auto assign = [&](std::size_t group, auto&& quotient) {
    for (std::size_t i = group * each; i < (group + 1) * each; ++i)
      codes[i].assign(map(elements[i], quotient).to(element));
  };
  std::vector<Value> usual;
  for (const Quotient& quotient : quotients) {
    const Value fits = quotient.scale_ <= 0x1p100f;
    usual.push_back(division == Division::exact ? quotient.scale_ >= 0x1p-92f && fits : fits);
  }
  if_(all_of(usual), [&] {
    for (std::size_t i = 0; i < quotients.size(); ++i) {
      const TwoParts inverse = two_parts(quotients[i].scale_);
      assign(i, [&](const Value& v) { return fma(v, inverse.most, v * inverse.rest); });
    }
  }).else_([&] {
    for (std::size_t i = 0; i < quotients.size(); ++i) {
      const Value& scale = quotients[i].scale_;
      if (division == Division::exact) {
        assign(i, [&](const Value& v) { return divided(v, scale); });
      } else {
        assign(i, Quotient(Division::corrected, scale));
      }
    }
  });
  return codes;
}

Quotient Quotient::from(int lane, int width) const {
  Quotient its(*this);
  its.inverse_.emplace(shuffle(*inverse_, lane, width));
  return its;
}

GroupCodes GroupCodes::of_largest(const QuantCoding& coding, Division division,
                                  const Value& largest, const Value& parameter) {
  return of_largest(coding, division, std::vector<Value>{largest}, parameter).front();
}

std::vector<GroupCodes> GroupCodes::of_largest(const QuantCoding& coding, Division division,
                                               const std::vector<Value>& largest,
                                               const Value& parameter) {
  std::vector<GroupCodes> groups;
  if (coding.format == QuantFormat::nvfp4) {
    const Fragment sixths = sixths_of(largest, parameter);
    for (std::size_t i = 0; i < largest.size(); ++i) {
      Value wanted = sixths[static_cast<int>(i)].get() * parameter;
      groups.push_back(nvfp4(coding, division, wanted, parameter));
    }
    return groups;
  }
  for (const Value& each : largest) {
    groups.push_back(
        is_mx(coding.format)
            ? mx(coding, each)
            : fp8(coding, division, over_448(larger(bounded(coding, each), parameter))));
  }
  return groups;
}

GroupCodes GroupCodes::from(int lane, int width) const {
  GroupCodes its(*this);
  its.beyond_.reset();
  if (quotient_) {
    its.quotient_.emplace(quotient_->from(lane, width));
  } else {
    its.factor_.emplace(shuffle(*factor_, lane, width));
    its.finite_.emplace(*its.factor_ > 0.0f);
  }
  return its;
}

std::vector<GroupCodes> GroupCodes::of_lanes(const std::vector<GroupCodes>& own, int width,
                                             std::size_t count) {
  std::vector<GroupCodes> all;
  all.reserve(count);
  for (std::size_t j = 0; j < count; ++j) {
    const auto lanes = static_cast<std::size_t>(width);
    all.push_back(own[j / lanes].from(static_cast<int>(j % lanes), width));
  }
  std::vector<Value> beyond;
  for (const GroupCodes& group : own)
    if (group.beyond_) beyond.push_back(*group.beyond_);
  if (!beyond.empty()) all.front().beyond_.emplace(vote_any(any_of(beyond)));
  return all;
}

GroupCodes GroupCodes::of_scale(const QuantCoding& coding, Division division, const Value& scale) {
  return fp8(coding, division, scale);
}

GroupCodes GroupCodes::fp8(const QuantCoding& coding, Division division, const Value& scale) {
  if (!coding.has_power_scales()) {
    GroupCodes group(coding, scale);
    group.quotient_.emplace(division, scale);
    return group;
  }
  Value power = to_ue8m0(scale, PowerRounding::up);
  Value wide = power.to(f32);
  GroupCodes group(coding, coding.scale_type == f32 ? wide : power.bitcast(u8));
  group.quotient_.emplace(division, wide);
  return group;
}

GroupCodes GroupCodes::mx(const QuantCoding& coding, const Value& largest) {
  Value finite = largest < kInfinity;
  Value code = select(finite, power_code(coding, largest), 255);
  GroupCodes group(coding, code.to(u8));
  Value factor = ((254 - code) << 23).bitcast(f32);  // codes are at most 253, or it is -infinity
  group.factor_.emplace(coding.element == e2m1 ? factor * kSixtyFourth : factor);
  group.finite_.emplace(finite);
  return group;
}

// Quotients exceed the codes where the scale saturates or has few bits: others are rounded by at
// most a 16th of them, and 6 and a 16th of it are below 7, which rounds to 8. What is not finite is
// among them.
GroupCodes GroupCodes::nvfp4(const QuantCoding& coding, Division division, const Value& wanted,
                             const Value& encode_scale) {
  constexpr float kLeastNormal = 0x1p-6f;
  Value scale = wanted.to(e4m3);  // NaN of what is not finite
  GroupCodes group(coding, scale);
  group.wanted_.emplace(wanted);
  group.factor_.emplace(encode_scale);
  const Value wide = scale.to(f32);
  // Nothing is left of elements under a scale of 0.
  const Value divisor = division == Division::product
                            ? select(wide == 0.0f, kInfinity, wide * (1 / kSixtyFourth))
                            : wide;
  group.quotient_.emplace(division, divisor);
  group.beyond_.emplace(!(wanted >= kLeastNormal && wanted <= kSaturates));
  return group;
}

Value GroupCodes::saturates() const {
  TW_ASSERT(wanted_.has_value(), "only nvfp4's scales saturate");
  return *wanted_ > kSaturates;  // not NaN
}

Fragment GroupCodes::operator()(const Fragment& wide) const {
  return codes_of({*this}, {wide}).front();
}

Fragment GroupCodes::scaled(const Fragment& wide) const { return factor_ ? wide * *factor_ : wide; }

std::vector<Fragment> codes_of(const std::vector<GroupCodes>& groups,
                               const std::vector<Fragment>& wide) {
  const QuantCoding& coding = groups.front().coding_;
  auto group_of = [&](std::size_t access) -> const GroupCodes& {
    return groups[access / (wide.size() / groups.size())];
  };
  std::vector<Fragment> codes;
  if (coding.element != e2m1) {
    std::vector<Fragment> scaled;
    for (std::size_t i = 0; i < wide.size(); ++i)
      scaled.push_back(group_of(i).scaled(wide[i]));
    std::vector<Quotient> quotients;
    for (const GroupCodes& group : groups)
      if (group.quotient_) quotients.push_back(*group.quotient_);
    if (!quotients.empty()) return Quotient::codes(quotients, scaled, coding.element);
    for (std::size_t i = 0; i < wide.size(); ++i)
      codes.push_back(group_of(i).kept(scaled[i].to(coding.element)));
    return codes;
  }
  std::vector<Fragment> parts;
  for (std::size_t i = 0; i < wide.size(); ++i) {
    const GroupCodes& group = group_of(i);
    const Fragment scaled = group.scaled(wide[i]);
    parts.push_back(group.quotient_ ? map(scaled, *group.quotient_) : scaled);
  }
  const bool skewed =
      groups.front().quotient_ && groups.front().quotient_->division() == Division::skewed;
  const float largest = 6 * (skewed ? kSkewedUnit : kSixtyFourth);
  const bool seldom_beyond = groups.front().beyond_.has_value();
  auto cut = [&] {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const Fragment within =
          map(parts[i], [&](const Value& x) { return max(min(x, largest), -largest); });
      const std::optional<Quotient>& quotient = group_of(i).quotient_;
      parts[i].assign(quotient ? zero_unless(quotient->by_number(), within) : within);
    }
  };
  if (seldom_beyond) {
    std::vector<Value> beyond;
    for (const GroupCodes& group : groups)
      if (group.beyond_) beyond.push_back(*group.beyond_);
    if_(any_of(beyond), cut);
  } else if (coding.rule == ScaleRule::floor) {
    cut();
  }
  for (std::size_t i = 0; i < wide.size(); ++i) {
    codes.push_back(group_of(i).kept(skewed ? parts[i].e2m1_of_products(kUnskew / kSkewedUnit)
                                            : parts[i].e2m1_of_64ths()));
  }
  return codes;
}

Fragment GroupCodes::kept(const Fragment& codes) const {
  return finite_ ? zero_unless(*finite_, codes) : codes;
}

Value scale_value(const QuantCoding& coding, const Value& stored) {
  if (coding.scale_type == f32) return stored;
  return (coding.scale_type == ue8m0 ? stored.bitcast(ue8m0) : stored).to(f32);
}

Tensor scales_of_row(ScaleLayout layout, const Tensor& scales, const Value& row) {
  switch (layout) {
    case ScaleLayout::row:
      return scales(row, _);
    case ScaleLayout::column_tma:
      return scales(_, row);
    case ScaleLayout::packed_ue8m0:
      return scales(_, row, _);
    case ScaleLayout::swizzle_128x4:
      return scales.slice(coord({row / 128, _, row % 32, row % 128 / 32, _}));
    case ScaleLayout::swizzle_8x4:
      break;
  }
  return scales(row / 8, _, row % 8, _);
}

Element scale_in_row(ScaleLayout layout, const Tensor& of_row, const Value& group, int further) {
  const bool words = layout != ScaleLayout::row && layout != ScaleLayout::column_tma;
  if (!words) return of_row(group + further);
  if (further % 4 == 0) return of_row(group / 4 + further / 4, group % 4);
  return of_row((group + further) / 4, (group + further) % 4);
}

Element scale_element(ScaleLayout layout, const Tensor& scales, const Value& row,
                      const Value& group) {
  return scale_in_row(layout, scales_of_row(layout, scales, row), group);
}

void pad_groups(ScaleLayout layout, const Tensor& scales, const Value& row, std::int64_t groups_n) {
  for (std::int64_t group = groups_n; group < padded_groups(layout, groups_n); ++group) {
    Value zero = constant(u8, 0);
    scale_element(layout, scales, row, constant(s32, group)) =
        scales.type() == u8 ? zero : zero.bitcast(scales.type());
  }
}

namespace {

void pad_word(ScaleLayout layout, const Tensor& scales, const Value& row, const Value& word) {
  if (layout == ScaleLayout::column_tma) {
    scale_element(layout, scales, row, word) = 1.0f;
    return;
  }
  Fragment zeros(scales.type(), 4);  // 0 when made
  store(scale_element(layout, scales, row, word * 4), zeros);
}

}  // namespace

void pad_rows(ScaleLayout layout, const Tensor& scales, const Value& row_count, const Value& word,
              std::int64_t groups_n) {
  const auto words = static_cast<int>(words_of_row(layout, groups_n));
  Value row = row_count + (word / words).to(row_count.type());
  const auto multiple = static_cast<int>(padded_rows(layout, 1));
  Value end = (row_count + (multiple - 1)) / multiple * multiple;
  if_(row < end, [&] { pad_word(layout, scales, row, word % words); });
}

}  // namespace tilewright
