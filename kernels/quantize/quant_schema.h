// SPDX-License-Identifier: Apache-2.0
// Tensors, options, tolerances and references of operators that quantise what they compute.
#pragma once

#include "kernels/quantize/quant_output.h"
#include "kernels/rows/row_schema.h"
#include "tilewright/operator.h"

#include <array>
#include <optional>
#include <string_view>
#include <vector>

namespace tilewright {

inline constexpr std::array kScaleTypes{f32, ue8m0, e4m3};
inline constexpr std::array kCodeTypes{e4m3, e5m2, e2m1};

inline constexpr TensorSpec kScalesTensor{
    .name = "scales",
    .role = Role::output,
    .shape = "*",
    .types = kScaleTypes,
    .doc =
        "[1] (fp8_tensor), [T] (fp8_token), [T/128, H/128] (fp8_block2d), else [..., G] for G "
        "groups a row, or scale_layout's "
        "modes; f32 or ue8m0 (fp8), ue8m0 (mx), e4m3 (nvfp4)"};
inline constexpr TensorSpec kCodesTensor{.name = "q",
                                         .role = Role::output,
                                         .shape = "...,H",
                                         .types = kCodeTypes,
                                         .doc = "e4m3 (fp8, mxfp8), e5m2 (mxfp8) or e2m1 (fp4)"};
inline constexpr TensorSpec kEncodeScaleTensor{
    .name = "encode_scale",
    .role = Role::input,
    .presence = Presence::optional,
    .shape = "1",
    .types = kF32,
    .doc = "nvfp4: 2688 / the tensor's largest magnitude"};

inline constexpr std::array kCountTypes{s32};
inline constexpr TensorSpec kTokensPerExpert{
    .name = "tokens_per_expert",
    .role = Role::input,
    .presence = Presence::optional,
    .shape = "E",
    .types = kCountTypes,
    .doc = "rows of each expert; those behind are neither read nor written, nor their scales"};

inline constexpr std::array kSaturatedTypes{u32};
inline constexpr TensorSpec kSaturatedTensor{
    .name = "saturated",
    .role = Role::inout,
    .presence = Presence::optional,
    .shape = "1",
    .types = kSaturatedTypes,
    .doc = "nvfp4: groups that the largest scale clips are added to it"};

inline constexpr std::array<std::string_view, 2> kElementWords{"e4m3", "e5m2"};
inline constexpr std::array<std::string_view, 2> kScaleTypeWords{"f32", "ue8m0"};
inline constexpr std::array<std::string_view, 3> kScaleRuleWords{"ceil", "floor", "even"};
inline constexpr std::array<std::string_view, 5> kScaleLayoutWords{
    "row", "column_tma", "packed_ue8m0", "swizzle_128x4", "swizzle_8x4"};
inline constexpr std::array<std::string_view, 1> kNoBoundWord{"none"};
inline constexpr OptionSpec kScaleLayoutOption{
    .name = "scale_layout",
    .type = OptionType::choice,
    .default_text = "row",
    .words = kScaleLayoutWords,
    .doc = "where the scales of groups lie; padding is written"};
/// Of quantize and of quantised outputs.
inline constexpr OptionSpec kGroupOption{
    .name = "group",
    .type = OptionType::integer,
    .default_text = "128",
    .least = 16,
    .most = 256,
    .doc = "fp8_block: elements under one scale, a power of two"};
inline constexpr OptionSpec kRaggedTailOption{
    .name = "ragged_tail",
    .type = OptionType::boolean,
    .default_text = "false",
    .doc = "rows may end in a part of a group, which has a scale of its own"};
inline constexpr std::array<OptionSpec, 10> kCodingOptions{{
    {.name = "element",
     .type = OptionType::choice,
     .default_text = "e4m3",
     .words = kElementWords,
     .doc = "type of mxfp8's elements"},
    {.name = "scale_type",
     .type = OptionType::choice,
     .default_text = "f32",
     .words = kScaleTypeWords,
     .doc = "of fp8 formats; ue8m0: the power of two at or above"},
    {.name = "scale_rule",
     .type = OptionType::choice,
     .default_text = "ceil",
     .words = kScaleRuleWords,
     .doc =
         "mx: nothing saturates; by the exponent of the largest; by that of the rounded largest"},
    kScaleLayoutOption,
    {.name = "exact",
     .type = OptionType::boolean,
     .default_text = "true",
     .doc = "divide by the scale; false: multiply by its reciprocal"},
    {.name = "floor",
     .type = OptionType::real,
     .default_text = "1e-10",
     .least = 1e-30,
     .doc = "fp8: least largest magnitude of a group"},
    kGroupOption,
    kRaggedTailOption,
    {.name = "pow2_scale",
     .type = OptionType::boolean,
     .default_text = "false",
     .doc = "fp8: scales in f32 become the power of two at or above, as those of ue8m0"},
    {.name = "scale_ub",
     .type = OptionType::real,
     .default_text = "none",
     .words = kNoBoundWord,
     .doc = "fp8_token: a row's largest magnitude counts as this at most"},
}};

template <class T, std::size_t N, std::size_t M>
constexpr std::array<T, N + M> joined(const std::array<T, N>& a, const std::array<T, M>& b) {
  std::array<T, N + M> both{};
  for (std::size_t i = 0; i < N; ++i)
    both[i] = a[i];
  for (std::size_t i = 0; i < M; ++i)
    both[N + i] = b[i];
  return both;
}
constexpr TensorSpec as_optional(TensorSpec spec) {
  spec.presence = Presence::optional;
  return spec;
}

/// The tensors and options of an operator with the output y, behind its own.
inline constexpr std::array<TensorSpec, 5> kQuantOutputTensors{{
    {.name = "scale",
     .role = Role::input,
     .presence = Presence::optional,
     .shape = "1",
     .types = kF32,
     .doc = "fp8_tensor: the decode scale"},
    kEncodeScaleTensor,
    {.name = "q",
     .role = Role::output,
     .presence = Presence::optional,
     .shape = "*",
     .types = kCodeTypes,
     .doc = "with quant, of y's shape: e4m3 (fp8, mxfp8), e5m2 (mxfp8) or e2m1 (fp4)"},
    as_optional(kScalesTensor),
    kSaturatedTensor,
}};
inline constexpr std::array<std::string_view, 7> kQuantWords{
    "none", "fp8_tensor", "fp8_token", "fp8_block", "mxfp8", "mxfp4", "nvfp4"};
inline constexpr std::array<std::string_view, 2> kQuantFromWords{"f32", "via_x_dtype"};
inline constexpr auto kQuantOutputOptions =
    joined(std::array<OptionSpec, 2>{{
               {.name = "quant",
                .type = OptionType::choice,
                .default_text = "none",
                .words = kQuantWords,
                .doc = "writes q and scales by this format of quantize, y on demand"},
               {.name = "quant_from",
                .type = OptionType::choice,
                .default_text = "f32",
                .words = kQuantFromWords,
                .doc = "quantises y unrounded, or rounded to x's type: what quantize makes of y"},
           }},
           kCodingOptions);

/// Format and options of quantize in `format_option`: quant or format. Pre: it is not none.
QuantizeOptions coding_options(const Arguments& arguments, std::string_view format_option);
/// Refuses kGroupOption and kRaggedTailOption where they change nothing.
void refuse_idle_groups(const Arguments& arguments, QuantFormat format);
Type element_type(const Arguments& arguments, QuantFormat format);
Type scale_type(const Arguments& arguments, QuantFormat format);
/// The shape of scales for codes of a shape.
std::vector<std::int64_t> scales_shape_of(QuantFormat format, ScaleLayout layout,
                                          std::int64_t group, std::vector<std::int64_t> codes);

/// Whether quant is not none.
bool quantises(const Arguments& arguments);
/// Refuses tensors that quant=none does not have.
QuantOutputTensors quant_output_tensors(const Arguments& arguments);
QuantOutputOptions quant_output_options(const Arguments& arguments);
/// Whether y is a matrix of rows, or a batch of them with scales of their own each.
enum class Batching : std::uint8_t { one, batch };
/// Adds q and scales, and leaves y to those who ask for it, if quantises(). Pre: y is the first.
void add_quant_outputs(const Arguments& arguments, std::vector<OutputSpec>& outputs,
                       Batching batching = Batching::one);
/// The rows of each matrix of a batch that are written; absent: there is one matrix, all of it.
using ExpertRows = std::optional<std::vector<std::int64_t>>;
/// Sets q, without its last rounding, and scales from an unrounded y within `error` |y|. Where such
/// an error decides how a scale of few bits is rounded, it is the one that is written(), and q is
/// by it; likewise saturated. Rows that are not written are NaN in both.
void quant_output_reference(const Arguments& arguments, HostTensors& tensors, double error,
                            const ExpertRows& experts = {});
/// Of q and scales, for an unrounded y within `error` |y|: nothing for other outputs. Scales of few
/// bits are equal, as written() has them beside a boundary.
std::optional<Tolerance> quant_output_tolerance(const Arguments& arguments, std::string_view output,
                                                double error);
/// Whether `which` is [E, T, N] of experts: tokens_per_expert says so, and other modes are refused.
bool has_experts(const Arguments& arguments, std::string_view which);
/// The shape of scales of experts' codes [E, T, H], which have a layout of their own each.
std::vector<std::int64_t> scales_shape_of_batch(QuantFormat format, ScaleLayout layout,
                                                std::int64_t group,
                                                const std::vector<std::int64_t>& codes);
/// Refuses numbers of rows that experts with `rows` [E, T, N] cannot have.
void check_tokens(const Arguments& arguments, std::span<const Array> inputs, const View& rows);
/// If there is tokens_per_expert: the T rows of a problem are those of its E experts, as many each.
void fill_experts(const Problem& problem, std::vector<Array>& inputs, std::string_view which);
/// Refuses a given decode scale that is not above 0.
void check_scale(const Arguments& arguments, std::span<const Array> inputs);
/// Sensible scales for results with a largest magnitude of about `largest`.
void fill_quant_scales(std::vector<Array>& inputs, double largest);

}  // namespace tilewright
