// SPDX-License-Identifier: Apache-2.0
// What kda_decode and kda_prefill have in common on the command line and in bindings.
#pragma once

#include "kernels/kda/option_specs.h"
#include "kernels/kda_decode/kda_decode.h"
#include "kernels/rows/row_schema.h"

#include <array>
#include <vector>

namespace tilewright::kda_schema {

inline constexpr std::array kBf16{bf16};
inline constexpr std::array kGateTypes{bf16, f32};
inline constexpr std::array kIndices{s32, s64};
inline constexpr std::array kS32{s32};

inline constexpr TensorSpec kQ{
    .name = "q", .role = Role::input, .shape = "N,T,H,K", .types = kBf16};
inline constexpr TensorSpec kK{
    .name = "k", .role = Role::input, .shape = "N,T,H,K", .types = kBf16};
inline constexpr TensorSpec kV{
    .name = "v", .role = Role::input, .shape = "N,T,HV,V", .types = kBf16};
inline constexpr TensorSpec kA{.name = "a",
                               .role = Role::input,
                               .shape = "N,T,HV,K",
                               .types = kGateTypes,
                               .doc =
                                   "input of the decay gate; the log decay if there is neither "
                                   "A_log nor lower_bound (in chunks "
                                   "its sums over successive tokens are at most 2.7)"};
inline constexpr TensorSpec kB{.name = "b",
                               .role = Role::input,
                               .shape = "N,T,HV",
                               .types = kBf16,
                               .doc = "beta before the sigmoid"};
inline constexpr TensorSpec kALog{.name = "A_log",
                                  .role = Role::input,
                                  .presence = Presence::optional,
                                  .shape = "*",
                                  .types = kF32,
                                  .doc = "HV elements: log of the rate of the decay; absent: 0"};
inline constexpr TensorSpec kDtBias{.name = "dt_bias",
                                    .role = Role::input,
                                    .presence = Presence::optional,
                                    .shape = "*",
                                    .types = kF32,
                                    .doc = "[HV,K] or [HV K]: added to a"};
inline constexpr TensorSpec kOut{
    .name = "out", .role = Role::output, .shape = "N,T,HV,V", .types = kBf16};
inline constexpr std::array<std::string_view, 2> kLayouts{"vk", "kv"};
inline constexpr OptionSpec kStateLayout{.name = "state_layout",
                                         .type = OptionType::choice,
                                         .default_text = "vk",
                                         .words = kLayouts,
                                         .doc = "order of the state's last two modes"};
inline constexpr OptionSpec kNegEigval{.name = "neg_eigval",
                                       .type = OptionType::boolean,
                                       .default_text = "false",
                                       .doc = "beta is 2 sigmoid(b)"};

inline constexpr OptionSpec kChunk{
    .name = "chunk",
    .type = OptionType::integer,
    .default_text = "64",
    .least = 1,
    .doc = "the most tokens to take at once: 64, 32, 16, or one by one"};

KdaDecodeOptions options_of(const Arguments& arguments);
int chunk_of(const Arguments& arguments);
/// The tensors that both operators have; `out` only where it is given.
KdaDecodeTensors common_tensors(const Arguments& arguments);
/// Contract, K 3: the states of N requests in and out, everything else once.
std::int64_t bytes_of(const KdaDecodeTensors& tensors);
/// The shapes that the schema leaves open; request n has slot n, packed tokens are one
/// sequence, and log decays are not positive.
void fill(const Problem& problem, std::vector<Array>& inputs);

}  // namespace tilewright::kda_schema
