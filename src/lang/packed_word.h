// SPDX-License-Identifier: Apache-2.0
// Words of packed elements: put together and taken apart, by pairs where an instruction does so.
#pragma once

#include "tilewright/value.h"

#include <span>
#include <string_view>
#include <vector>

namespace tilewright::lang {

/// Whether the trace's target has the instruction.
bool has_instruction(std::string_view op, SourceLoc at);

/// Low bytes of up to four u32, the rest 0.
Value pack_bytes(std::span<const Value> codes);
/// A word of f32 values, the rest 0: `op` makes a pair of the type of two.
Value narrow_pairs(std::string_view op, Type to, std::span<const Value> wide, SourceLoc at);
/// The low `count` elements of a word, as pairs (u32) of 16 bits: `op` makes one of a pair of the
/// type.
std::vector<Value> widen_pairs(std::string_view op, Type from, const Value& word, int count,
                               SourceLoc at);
/// The first `count` of the two f16, or bf16, of a pair as f32.
std::vector<Value> f16_pair_to_f32(const Value& pair, int count, SourceLoc at);
std::vector<Value> bf16_pair_to_f32(const Value& pair, int count);

}  // namespace tilewright::lang
