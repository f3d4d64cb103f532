// SPDX-License-Identifier: Apache-2.0
// Widening of packed words of ue8m0.
#pragma once

#include "tilewright/value.h"

#include <vector>

namespace tilewright::lang {

/// The low `count` elements of a word as f32; exact.
std::vector<Value> widen_ue8m0(const Value& word, int count, SourceLoc at);

}  // namespace tilewright::lang
