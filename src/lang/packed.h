// SPDX-License-Identifier: Apache-2.0
// Arithmetic on pairs that only some targets have instructions for.
#pragma once

#include "tilewright/packed.h"

#include <string_view>

namespace tilewright::lang {

/// u16x2, s16x2 and f32x2.
bool is_number_pair(Type type);

using Binary = Value (*)(const Arg&, const Arg&);
/// a op b half by half: `stem` is the instruction without its type, "" where no target has one.
Value binary_on_pairs(std::string_view stem, Binary half, const Value& a, const Value& b,
                      SourceLoc at);
Value fma_on_pairs(const Value& a, const Value& b, const Value& c, SourceLoc at);

}  // namespace tilewright::lang
