// SPDX-License-Identifier: Apache-2.0
// Options of the operators of Kimi Delta Attention: q's factor, and the gate (GateOptions).
#pragma once

#include "tilewright/operator.h"

#include <array>
#include <string_view>

namespace tilewright::kda_schema {

inline constexpr std::array<std::string_view, 1> kNone{"none"};
inline constexpr std::array<std::string_view, 1> kAutoScale{"1/sqrt(K)"};
inline constexpr OptionSpec kScale{.name = "scale",
                                   .type = OptionType::real,
                                   .default_text = "1/sqrt(K)",
                                   .words = kAutoScale,
                                   .doc = "factor of q"};
inline constexpr OptionSpec kLowerBound{
    .name = "lower_bound",
    .type = OptionType::real,
    .default_text = "none",
    .words = kNone,
    .doc = "L of the safe gate L sigmoid(A u); none: the gate is -A softplus(u)"};
inline constexpr OptionSpec kSoftplusBeta{
    .name = "softplus_beta", .type = OptionType::real, .default_text = "1", .least = 0};
inline constexpr OptionSpec kSoftplusThreshold{
    .name = "softplus_threshold",
    .type = OptionType::real,
    .default_text = "20",
    .doc = "softplus(u) is u where softplus_beta u is greater"};

}  // namespace tilewright::kda_schema
