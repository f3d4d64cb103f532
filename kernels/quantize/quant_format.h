// SPDX-License-Identifier: Apache-2.0
// The quantised formats: their groups, element and scale types, and where scales lie in memory.
#pragma once

#include "kernels/rows/rows.h"
#include "tilewright/trace.h"
#include "tilewright/type.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright {

enum class QuantFormat : std::uint8_t {
  fp8_tensor,   ///< e4m3, one scale
  fp8_token,    ///< e4m3, one scale a row
  fp8_block,    ///< e4m3, one scale for a group of elements of a row, 128 as a rule
  fp8_block2d,  ///< e4m3, one scale for 128 elements of 128 rows
  mxfp8,        ///< e4m3 or e5m2, one ue8m0 for 32 elements of a row (OCP MX)
  mxfp4,        ///< e2m1, one ue8m0 for 32 elements of a row (OCP MX)
  nvfp4         ///< e2m1, one e4m3 for 16 elements of a row, and one f32 for the tensor
};

/// The power of two that scales a group of OCP MX with the largest magnitude `amax`.
enum class ScaleRule : std::uint8_t {
  ceil,   ///< the least that brings amax into the elements' range: nothing saturates
  floor,  ///< of amax's exponent alone, as OCP's text has it
  even    ///< floor of amax rounded to the elements' mantissa
};

enum class ScaleLayout : std::uint8_t {
  row,            ///< [..., G]
  column_tma,     ///< [G, Tp], Tp a multiple of 4; 1.0 beyond T
  packed_ue8m0,   ///< [ceil(G / 4), Tp, 4], 0 beyond: four groups of a row are a word
  swizzle_128x4,  ///< [ceil(T / 128), ceil(G / 4), 32, 4, 4], 0 beyond (tcgen05's block scales)
  swizzle_8x4     ///< [ceil(T / 8), ceil(G / 4), 8, 4], 0 beyond
};

std::string_view name(QuantFormat format);
std::string_view name(ScaleLayout layout);
/// Pre: `text` is one of the names.
QuantFormat quant_format(std::string_view text);
ScaleLayout scale_layout(std::string_view text);

/// What the codes of a tensor are: part of a specialisation.
struct QuantCoding {
  QuantFormat format = QuantFormat::fp8_token;
  Type element = e4m3;
  Type scale_type = f32;
  ScaleRule rule = ScaleRule::ceil;
  ScaleLayout layout = ScaleLayout::row;
  std::int64_t block = 128;  ///< elements of fp8_block under one scale
  bool power_scale = false;  ///< scales in f32 are powers of two
  float most = kNoBound;     ///< fp8_token: a row's largest magnitude counts as this at most
  static constexpr float kNoBound = std::numeric_limits<float>::infinity();
  bool has_power_scales() const { return scale_type == ue8m0 || power_scale; }
  friend bool operator==(const QuantCoding&, const QuantCoding&) = default;
};
std::string to_string(const QuantCoding& coding);

bool is_mx(QuantFormat format);
/// Elements of a row of `h` under one scale; `block` is fp8_block's.
std::int64_t group_elems(QuantFormat format, std::int64_t h, std::int64_t block);
/// Whether a row may end in a part of a group.
enum class Tail : std::uint8_t { whole, ragged };
/// Rows of `t` under one scale.
std::int64_t group_rows(QuantFormat format, std::int64_t t);
/// Of a matrix of scales in a layout: [groups_m, groups_n] of them.
std::vector<std::int64_t> scales_shape(ScaleLayout layout, std::int64_t groups_m,
                                       std::int64_t groups_n);
/// Rows of scales that a layout has room for.
std::int64_t padded_rows(ScaleLayout layout, std::int64_t groups_m);
/// Words of 4 bytes that padding takes in one row.
std::int64_t words_of_row(ScaleLayout layout, std::int64_t groups_n);
/// Words of all rows that a layout has beyond the `groups_m` of scales.
std::int64_t padding_words(ScaleLayout layout, std::int64_t groups_m, std::int64_t groups_n);
/// Groups of a row that a layout has room for.
std::int64_t padded_groups(ScaleLayout layout, std::int64_t groups_n);

/// Refuses types that the format does not have, and layouts that it does not take.
void check_coding(const QuantCoding& coding, const rows::Caller& caller);
/// Refuses a number in f32 where `format` is not the one that takes it, and none where it is.
void check_given(const std::optional<View>& given, std::string_view which, QuantFormat taking,
                 QuantFormat format, const rows::Caller& caller);
/// Refuses a counter of clipped groups that is not u32[1], and one with a format other than nvfp4.
void check_saturated(const std::optional<View>& saturated, QuantFormat format,
                     const rows::Caller& caller);
/// Refuses scales of a tensor that are not f32, a least largest magnitude that is too small, and a
/// bound that is not above 0.
void check_fp8(const QuantCoding& coding, float floor, const rows::Caller& caller);
/// Refuses groups of other sizes than 16 to 256, rows that are not whole groups unless their tail
/// is ragged, and rows of e2m1 that do not start and end at bytes.
void check_groups(const QuantCoding& coding, Tail tail, const View& q, const rows::Caller& caller);
/// The scales of codes [T, H] as the kernels index them: in the layout's modes, a matrix for `row`,
/// with ue8m0 as bytes. Refuses other shapes.
View scales_view(const View& scales, const QuantCoding& coding, const View& q,
                 const rows::Caller& caller);
DynamicModes dynamic_scale_modes(ScaleLayout layout);
TensorArg scales_arg_of(const View& scales, ScaleLayout layout);

}  // namespace tilewright
