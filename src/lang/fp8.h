// SPDX-License-Identifier: Apache-2.0
// Conversion of packed words of fp8 elements.
#pragma once

#include "lang/tracer.h"
#include "tilewright/type.h"

#include <cstdint>
#include <span>

namespace tilewright::lang {

inline bool is_fp8(Type type) { return type == e4m3 || type == e5m2; }

/// One to four f32 registers from the low elements of a word.
void widen_fp8(Tracer& tracer, Type from, std::uint32_t word, std::span<const std::uint32_t> wide,
               SourceLoc at);
/// A word of one to four f32 registers: nearest even, saturating, NaN kept; the rest is 0.
void narrow_fp8(Tracer& tracer, Type to, std::uint32_t word, std::span<const std::uint32_t> wide,
                SourceLoc at);

}  // namespace tilewright::lang
