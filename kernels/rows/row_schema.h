// SPDX-License-Identifier: Apache-2.0
// What the schemas of operators on rows share.
#pragma once

#include "kernels/rows/row_norm.h"
#include "tilewright/operator.h"

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright {

inline constexpr std::array kReals{bf16, f16, f32};
inline constexpr std::array kF32{f32};

inline constexpr std::array<std::string_view, 2> kOutTypes{"as_x", "f32"};
inline constexpr OptionSpec kWeightBiasOption{.name = "weight_bias",
                                              .type = OptionType::real,
                                              .default_text = "0",
                                              .doc = "added to w in f32: 1 for Gemma"};
inline constexpr OptionSpec kCastBeforeWeightOption{
    .name = "cast_before_weight",
    .type = OptionType::boolean,
    .default_text = "false",
    .doc = "round x / rms to x's type before the weight"};
inline constexpr OptionSpec kPartialOption{
    .name = "partial",
    .type = OptionType::integer,
    .default_text = "0",
    .least = 0,
    .doc = "take the mean over the first elements only; 0: all"};
inline constexpr OptionSpec kOutTypeOption{.name = "out_type",
                                           .type = OptionType::choice,
                                           .default_text = "as_x",
                                           .words = kOutTypes,
                                           .doc = "type of y"};
inline constexpr std::array<std::string_view, 2> kSumRoundings{"round_first", "keep_f32"};
inline constexpr OptionSpec kSumRoundingOption{
    .name = "rounding",
    .type = OptionType::choice,
    .default_text = "round_first",
    .words = kSumRoundings,
    .doc = "whether the norm reads the sum as it is stored, or unrounded"};
inline constexpr TensorSpec kWeightTensor{.name = "w",
                                          .role = Role::input,
                                          .presence = Presence::optional,
                                          .shape = "H",
                                          .types = kReals,
                                          .doc = "x's type or f32; absent: 1"};
inline constexpr TensorSpec kNormOutput{.name = "y",
                                        .role = Role::output,
                                        .shape = "...,H",
                                        .types = kReals,
                                        .may_alias = "x",
                                        .doc = "x's type or f32 (out_type); with quant on demand"};

inline constexpr TensorSpec kExtraTensor{
    .name = "extra",
    .role = Role::input,
    .presence = Presence::optional,
    .shape = "...,H",
    .types = kReals,
    .doc = "added after residual: a second branch; x's type or f32"};
inline constexpr TensorSpec kRstdTensor{
    .name = "rstd",
    .role = Role::output,
    .presence = Presence::optional,
    .shape = "T",
    .types = kF32,
    .doc = "1 / sqrt(mean square or variance + eps) of each row"};

std::optional<View> optional_view(const Arguments& arguments, std::string_view name);
/// An option of a number or a word; none: the word.
std::optional<float> optional_real(const Arguments& arguments, std::string_view option);
std::vector<std::int64_t> shape_of(const View& view);
/// Refuses a value other than the default of an option that does nothing here: "OPTION=VALUE WHY".
void refuse_idle(const Arguments& arguments, std::string_view option, const std::string& why);
/// y of the option out_type. Throws if x has no modes.
OutputSpec norm_output(const Arguments& arguments);
/// rstd, for rows of y's shape.
OutputSpec rstd_output(const OutputSpec& y);
/// The options weight_bias, cast_before_weight and partial, and eps.
RowNormOptions rms_options(const Arguments& arguments);
SumRounding sum_rounding(const Arguments& arguments);

/// Contract, I 0.5 and 1.1: (log2(H) + 8) 2^-24 of |y| before its last rounding. Rounding to x's
/// type before the weight may land on the neighbour of a tie, which is one ulp of that type.
double rms_norm_error(const Arguments& arguments);

/// Half an ulp of the output plus `computed` 2^-24 of |ref|.
Tolerance rounded_once(Type output, double computed);
/// Bytes of all inputs (outputs) that are present.
std::int64_t bytes_of_inputs(const Arguments& arguments);
std::int64_t bytes_of_outputs(const Arguments& arguments);

/// Throws Error(user) where `indices` names a slot that `pool`, if both are there, does not have;
/// those below 0 name none.
void check_slots(const Arguments& arguments, std::span<const Array> inputs,
                 std::string_view indices, std::string_view pool);

/// Throws if cu_seqlens, where it is among the inputs, decreases: sequences would have tokens in
/// common, and a kernel would write them twice or leave some out; or if it leaves the `tokens` that
/// there are.
void check_sequences(const Arguments& arguments, std::span<const Array> inputs,
                     std::int64_t tokens);
/// Throws if two indices from 0 to `count` are the same: "NAME[i] and NAME[j] are X; WHAT".
void check_distinct_indices(const Arguments& arguments, const Array& indices, std::int64_t count,
                            std::string_view what);
/// The array of a name, if it is among the inputs.
const Array* find_input(std::span<const Array> inputs, std::string_view name);

/// A multiprocessor alone: the configuration of few rows, for traces without a device.
DeviceProperties traced_device();

}  // namespace tilewright
