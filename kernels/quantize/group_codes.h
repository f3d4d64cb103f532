// SPDX-License-Identifier: Apache-2.0
// A group's scale and codes from its largest magnitude, and its place in a layout. Traced.
#pragma once

#include "kernels/quantize/quant_format.h"
#include "tilewright/fragment.h"

#include <optional>
#include <vector>

namespace tilewright {

/// How elements are divided by their scale. All but `product` give the codes of `exact`.
enum class Division : std::uint8_t {
  exact,      ///< any operands: products with two parts, or a call for odd scales
  corrected,  ///< by the reciprocal, then a correction: scales of 2^-92 and more, to e4m3
  by_parts,   ///< the same, by products with two parts up to a scale of 2^100: one branch for all
  skewed,     ///< by a reciprocal that is a little too large: scales of e4m3, to codes of e2m1
  product     ///< by the reciprocal: powers of two, and `exact=false`
};

/// What gives the codes of `exact`, or products with the reciprocal. `floor` is the least largest
/// magnitude of fp8.
Division division_of(const QuantCoding& coding, bool exact, float floor);

/// Division of many elements by one scale.
class Quotient {
 public:
  Quotient(Division division, const Value& scale);
  Value operator()(const Value& v) const;
  /// The quotients as codes.
  std::vector<Fragment> codes(const std::vector<Fragment>& elements, Type element) const;
  /// By several scales, as many accesses by each one after the other.
  static std::vector<Fragment> codes(const std::vector<Quotient>& quotients,
                                     const std::vector<Fragment>& elements, Type element);
  /// Of products: that of another lane, the one `lane` of each `width`. For all lanes of a warp.
  Quotient from(int lane, int width) const;
  /// Of products: whether the scale is a number.
  Value by_number() const { return *inverse_ == *inverse_; }
  Division division() const { return division_; }

 private:
  Division division_;
  Value scale_;
  std::optional<Value> inverse_ = {};  ///< absent: made where a scale takes it
  std::optional<Value> divisor_ = {};  ///< the scale, 0 if it is infinite
};

/// NaN if one operand is.
Value larger(const Value& a, const Value& b);

/// One group under its scale.
class GroupCodes {
 public:
  /// From the group's largest magnitude. `parameter` is the least largest magnitude (fp8), or the
  /// encode scale (nvfp4).
  static GroupCodes of_largest(const QuantCoding& coding, Division division, const Value& largest,
                               const Value& parameter);
  /// The same of several groups; what seldom happens is asked once, so that instructions mix.
  static std::vector<GroupCodes> of_largest(const QuantCoding& coding, Division division,
                                            const std::vector<Value>& largest,
                                            const Value& parameter);
  /// fp8 with a scale that is known.
  static GroupCodes of_scale(const QuantCoding& coding, Division division, const Value& scale);

  /// With codes of e2m1, the same groups in each of `width` lanes, from lanes that have different
  /// ones: group j as the (j / width)th of lane j % width. For all lanes of a warp.
  static std::vector<GroupCodes> of_lanes(const std::vector<GroupCodes>& own, int width,
                                          std::size_t count);

  /// The scale as it is stored: f32, a byte of ue8m0, or e4m3. Not of_lanes().
  const Value& stored() const { return stored_; }
  /// Of nvfp4: whether e4m3 has no scale large enough, so that the group is clipped. Not
  /// of_lanes().
  Value saturates() const;
  /// Codes of elements in f32.
  Fragment operator()(const Fragment& wide) const;
  /// Of accesses in f32, as many of each group one after the other.
  friend std::vector<Fragment> codes_of(const std::vector<GroupCodes>& groups,
                                        const std::vector<Fragment>& wide);

 private:
  Fragment scaled(const Fragment& wide) const;
  /// Zeros in groups that are not finite.
  Fragment kept(const Fragment& codes) const;
  GroupCodes from(int lane, int width) const;
  GroupCodes(const QuantCoding& coding, Value stored)
      : coding_(coding), stored_(std::move(stored)) {}
  static GroupCodes fp8(const QuantCoding& coding, Division division, const Value& scale);
  static GroupCodes mx(const QuantCoding& coding, const Value& largest);
  static GroupCodes nvfp4(const QuantCoding& coding, Division division, const Value& wanted,
                          const Value& encode_scale);

  QuantCoding coding_;
  Value stored_;
  std::optional<Value> factor_ = {};       ///< of the elements, before the division
  std::optional<Quotient> quotient_ = {};  ///< absent: the factor is all
  std::optional<Value> wanted_ = {};       ///< nvfp4: the scale before it is rounded
  std::optional<Value> finite_ = {};  ///< absent: it is, or among those beyond; else codes are 0
  std::optional<Value> beyond_ = {};  ///< quotients exceed the largest code, or are NaN
};

std::vector<Fragment> codes_of(const std::vector<GroupCodes>& groups,
                               const std::vector<Fragment>& wide);

/// The number that a stored scale stands for, in f32.
Value scale_value(const QuantCoding& coding, const Value& stored);

/// The scales of a row in a tensor of the layout's modes, and a group's of them.
Tensor scales_of_row(ScaleLayout layout, const Tensor& scales, const Value& row);
/// Or of the group that is `further` on.
Element scale_in_row(ScaleLayout layout, const Tensor& of_row, const Value& group, int further = 0);
/// The scale of a group in a tensor of the layout's modes.
Element scale_element(ScaleLayout layout, const Tensor& scales, const Value& row,
                      const Value& group);
/// Writes what a layout has beyond the `groups_n` groups of a row. For one thread of the row.
void pad_groups(ScaleLayout layout, const Tensor& scales, const Value& row, std::int64_t groups_n);
/// Writes word `word` of padding_words(), if there is one.
void pad_rows(ScaleLayout layout, const Tensor& scales, const Value& row_count, const Value& word,
              std::int64_t groups_n);

}  // namespace tilewright
