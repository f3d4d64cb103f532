// SPDX-License-Identifier: Apache-2.0
// Facts of the quantised formats and of the layouts of their scales.
#include "kernels/quantize/quant_format.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

namespace tilewright {
namespace {

constexpr std::array<std::string_view, 7> kFormatNames{
    "fp8_tensor", "fp8_token", "fp8_block", "fp8_block2d", "mxfp8", "mxfp4", "nvfp4"};
constexpr std::array<std::string_view, 5> kLayoutNames{"row", "column_tma", "packed_ue8m0",
                                                       "swizzle_128x4", "swizzle_8x4"};

template <class E, std::size_t N>
E named(const std::array<std::string_view, N>& names, std::string_view text) {
  const auto* at = std::find(names.begin(), names.end(), text);
  TW_ASSERT(at != names.end(), "the schema lists the names");
  return static_cast<E>(at - names.begin());
}

std::int64_t rounded_up(std::int64_t n, std::int64_t multiple) {
  return rows::ceil_div(n, multiple) * multiple;
}

struct Types {
  std::string_view text;
  std::array<Type, 2> any;
};
Types element_types(QuantFormat format) {
  switch (format) {
    case QuantFormat::fp8_tensor:
    case QuantFormat::fp8_token:
    case QuantFormat::fp8_block:
    case QuantFormat::fp8_block2d:
      return {"e4m3", {e4m3, e4m3}};
    case QuantFormat::mxfp8:
      return {"e4m3 or e5m2", {e4m3, e5m2}};
    case QuantFormat::mxfp4:
    case QuantFormat::nvfp4:
      break;
  }
  return {"e2m1", {e2m1, e2m1}};
}
Types scale_types(QuantFormat format) {
  if (is_mx(format)) return {"ue8m0", {ue8m0, ue8m0}};
  if (format == QuantFormat::nvfp4) return {"e4m3", {e4m3, e4m3}};
  return {"f32 or ue8m0", {f32, ue8m0}};
}

void check_type(Type type, const Types& types, const char* which, const rows::Caller& caller) {
  if (type == types.any[0] || type == types.any[1]) return;
  caller.refuse(std::string(which) + " has type " + std::string(name(type)) + "; it must be " +
                std::string(types.text));
}

bool one_scale_a_row(QuantFormat format) {
  return format == QuantFormat::fp8_tensor || format == QuantFormat::fp8_token;
}

View row_scales(const View& scales, const QuantCoding& coding, std::int64_t groups_m,
                std::int64_t groups_n, const rows::Caller& caller) {
  bool vector = one_scale_a_row(coding.format);
  View matrix = vector ? scales : rows::folded(scales, "scales", caller);
  bool fits = vector ? scales.rank == 1 && scales.shape[0] == groups_m
                     : matrix.shape[0] == groups_m && matrix.shape[1] == groups_n;
  if (!fits) {
    caller.refuse("scales is " + to_string(scales) + "; it must have " + std::to_string(groups_m) +
                  (vector ? " groups of " : " rows of ") + std::to_string(groups_n) + " element" +
                  (groups_n == 1 ? "" : "s"));
  }
  if (vector) {
    matrix.rank = 2;
    matrix.shape[1] = 1;
    matrix.stride[1] = 1;
  }
  return matrix;
}

}  // namespace

std::string_view name(QuantFormat format) { return kFormatNames[static_cast<std::size_t>(format)]; }
std::string_view name(ScaleLayout layout) { return kLayoutNames[static_cast<std::size_t>(layout)]; }
QuantFormat quant_format(std::string_view text) { return named<QuantFormat>(kFormatNames, text); }
ScaleLayout scale_layout(std::string_view text) { return named<ScaleLayout>(kLayoutNames, text); }

std::string to_string(const QuantCoding& coding) {
  return std::string(name(coding.format)) + " e=" + std::string(name(coding.element)) +
         " s=" + std::string(name(coding.scale_type)) +
         " r=" + std::to_string(static_cast<int>(coding.rule)) + " " +
         std::string(name(coding.layout)) +
         (coding.block == 128 ? "" : " g=" + std::to_string(coding.block)) +
         (coding.power_scale ? " pow2" : "") +
         (coding.most < QuantCoding::kNoBound
              ? " most=" + std::to_string(std::bit_cast<std::uint32_t>(coding.most))
              : "");
}

bool is_mx(QuantFormat format) {
  return format == QuantFormat::mxfp8 || format == QuantFormat::mxfp4;
}

std::int64_t group_elems(QuantFormat format, std::int64_t h, std::int64_t block) {
  switch (format) {
    case QuantFormat::fp8_tensor:
    case QuantFormat::fp8_token:
      return h;
    case QuantFormat::fp8_block:
      return block;
    case QuantFormat::fp8_block2d:
      return 128;
    case QuantFormat::mxfp8:
    case QuantFormat::mxfp4:
      return 32;
    case QuantFormat::nvfp4:
      break;
  }
  return 16;
}

std::int64_t group_rows(QuantFormat format, std::int64_t t) {
  if (format == QuantFormat::fp8_tensor) return std::max<std::int64_t>(1, t);
  return format == QuantFormat::fp8_block2d ? 128 : 1;
}

std::int64_t padded_rows(ScaleLayout layout, std::int64_t groups_m) {
  switch (layout) {
    case ScaleLayout::row:
      return groups_m;
    case ScaleLayout::column_tma:
    case ScaleLayout::packed_ue8m0:
      return rounded_up(groups_m, 4);
    case ScaleLayout::swizzle_128x4:
      return rounded_up(groups_m, 128);
    case ScaleLayout::swizzle_8x4:
      break;
  }
  return rounded_up(groups_m, 8);
}

std::int64_t padded_groups(ScaleLayout layout, std::int64_t groups_n) {
  bool words = layout != ScaleLayout::row && layout != ScaleLayout::column_tma;
  return words ? rounded_up(groups_n, 4) : groups_n;
}

std::int64_t words_of_row(ScaleLayout layout, std::int64_t groups_n) {
  return layout == ScaleLayout::column_tma ? groups_n : rows::ceil_div(groups_n, 4);
}

std::int64_t padding_words(ScaleLayout layout, std::int64_t groups_m, std::int64_t groups_n) {
  return (padded_rows(layout, groups_m) - groups_m) * words_of_row(layout, groups_n);
}

std::vector<std::int64_t> scales_shape(ScaleLayout layout, std::int64_t groups_m,
                                       std::int64_t groups_n) {
  std::int64_t rows = padded_rows(layout, groups_m);
  std::int64_t words = rows::ceil_div(groups_n, 4);
  switch (layout) {
    case ScaleLayout::row:
      return {groups_m, groups_n};
    case ScaleLayout::column_tma:
      return {groups_n, rows};
    case ScaleLayout::packed_ue8m0:
      return {words, rows, 4};
    case ScaleLayout::swizzle_128x4:
      return {rows / 128, words, 32, 4, 4};
    case ScaleLayout::swizzle_8x4:
      break;
  }
  return {rows / 8, words, 8, 4};
}

void check_coding(const QuantCoding& coding, const rows::Caller& caller) {
  check_type(coding.element, element_types(coding.format), "q", caller);
  check_type(coding.scale_type, scale_types(coding.format), "scales", caller);
  bool takes = true;
  switch (coding.layout) {
    case ScaleLayout::row:
      break;
    case ScaleLayout::column_tma:
      takes = coding.format == QuantFormat::fp8_block && coding.scale_type == f32;
      break;
    case ScaleLayout::packed_ue8m0:
      takes = (coding.format == QuantFormat::fp8_block || is_mx(coding.format)) &&
              coding.scale_type == ue8m0;
      break;
    case ScaleLayout::swizzle_128x4:
    case ScaleLayout::swizzle_8x4:
      takes = is_mx(coding.format) || coding.format == QuantFormat::nvfp4;
      break;
  }
  if (takes) return;
  caller.refuse("scale_layout=" + std::string(name(coding.layout)) + " with " +
                std::string(name(coding.format)) + " and scales of " +
                std::string(name(coding.scale_type)) +
                "; column_tma takes fp8_block with f32, packed_ue8m0 groups with ue8m0, the "
                "swizzles mxfp8, mxfp4 and nvfp4");
}

void check_given(const std::optional<View>& given, std::string_view which, QuantFormat taking,
                 QuantFormat format, const rows::Caller& caller) {
  const std::string text(which);
  if (given && format != taking)
    caller.refuse(text + " is given; only " + std::string(name(taking)) + " takes one");
  if (!given && format == taking) {
    caller.refuse(text + " is absent; " + std::string(name(taking)) + " takes one f32 number");
  }
  if (!given) return;
  rows::check_type(*given, which, f32, caller);
  rows::check_vector(*given, which, 1, caller);
}

void check_saturated(const std::optional<View>& saturated, QuantFormat format,
                     const rows::Caller& caller) {
  if (!saturated) return;
  if (format != QuantFormat::nvfp4)
    caller.refuse("saturated is given; only scales of nvfp4 saturate");
  if (saturated->type != u32 || size(*saturated) != 1)
    caller.refuse("saturated is " + to_string(*saturated) + "; it must be u32[1]");
}

void check_fp8(const QuantCoding& coding, float floor, const rows::Caller& caller) {
  if (coding.format == QuantFormat::fp8_tensor && coding.scale_type != f32) {
    caller.refuse("scales has type " + std::string(name(coding.scale_type)) +
                  "; with fp8_tensor it must be f32");
  }
  if (!(coding.most > 0))
    caller.refuse("scale_ub=" + rows::number_text(coding.most) + "; it must be above 0");
  if (!std::isfinite(floor) || floor < 1e-30f)
    caller.refuse("floor=" + rows::number_text(floor) + "; it must be finite and at least 1e-30");
}

void check_groups(const QuantCoding& coding, Tail tail, const View& q, const rows::Caller& caller) {
  constexpr std::array<std::int64_t, 5> kBlocks{16, 32, 64, 128, 256};
  const QuantFormat format = coding.format;
  std::int64_t h = q.shape[1];
  if (h == 0) caller.refuse("rows have 0 elements; they must have some");
  if (std::find(kBlocks.begin(), kBlocks.end(), coding.block) == kBlocks.end())
    caller.refuse("group=" + std::to_string(coding.block) + "; it must be 16, 32, 64, 128 or 256");
  std::int64_t group = group_elems(format, h, coding.block);
  if (h % group != 0 && format != QuantFormat::fp8_block2d && tail == Tail::whole) {
    caller.refuse("rows have " + std::to_string(h) + " elements; " + std::string(name(format)) +
                  " takes multiples of " + std::to_string(group) + " without ragged_tail");
  }
  if (q.type == e2m1 && h % 2 != 0) {
    caller.refuse("rows have " + std::to_string(h) +
                  " elements; those of e2m1 must have an even number");
  }
  if (q.type == e2m1 && q.shape[0] > 1 && q.stride[0] % 2 != 0) {
    caller.refuse("q is " + to_string(q) +
                  "; rows of e2m1 must be an even number of elements apart");
  }
}

View scales_view(const View& scales, const QuantCoding& coding, const View& q,
                 const rows::Caller& caller) {
  const bool whole = coding.format == QuantFormat::fp8_tensor;  // one scale, of no rows too
  std::int64_t groups_m =
      whole ? 1 : rows::ceil_div(q.shape[0], group_rows(coding.format, q.shape[0]));
  std::int64_t groups_n =
      rows::ceil_div(q.shape[1], group_elems(coding.format, q.shape[1], coding.block));
  View view;
  if (coding.layout == ScaleLayout::row) {
    view = row_scales(scales, coding, groups_m, groups_n, caller);
  } else {
    std::vector<std::int64_t> shape = scales_shape(coding.layout, groups_m, groups_n);
    const View wanted = make_view(scales.address, scales.type, shape);
    bool fits = scales.rank == wanted.rank && scales.shape == wanted.shape && is_row_major(scales);
    if (!fits) {
      caller.refuse("scales is " + to_string(scales) + "; with " +
                    std::string(name(coding.layout)) + " it must be " + to_string(wanted));
    }
    view = wanted;
  }
  if (view.type == ue8m0) view.type = u8;
  return view;
}

DynamicModes dynamic_scale_modes(ScaleLayout layout) {
  bool columns = layout == ScaleLayout::column_tma || layout == ScaleLayout::packed_ue8m0;
  if (columns) return {.extents = 0b10, .strides = 0b01};
  return {.extents = 0b01, .strides = layout == ScaleLayout::row ? 1U : 0U};
}

TensorArg scales_arg_of(const View& scales, ScaleLayout layout) {
  return tensor_arg(scales, dynamic_scale_modes(layout));
}

}  // namespace tilewright
