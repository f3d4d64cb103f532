// SPDX-License-Identifier: Apache-2.0
// Conversion of words of eight 4-bit integers.
#pragma once

#include "tilewright/value.h"

#include <span>
#include <vector>

namespace tilewright::lang {

inline bool is_nibble(Type type) { return type == u4 || type == s4; }

/// The low `count` elements of a word as f16x2 pairs (as u32), as f32, or as s32.
std::vector<Value> nibbles_to_halves(Type from, const Value& word, int count, SourceLoc at);
std::vector<Value> nibbles_to_f32(Type from, const Value& word, int count);
std::vector<Value> nibbles_to_s32(Type from, const Value& word, int count);
/// A word of up to eight s32, each the nearest that the type has; the rest 0.
Value narrow_nibbles(Type to, std::span<const Value> wide, SourceLoc at);

}  // namespace tilewright::lang
