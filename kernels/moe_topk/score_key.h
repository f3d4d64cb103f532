// SPDX-License-Identifier: Apache-2.0
// Scores as unsigned words in the order in which experts are chosen.
#pragma once

#include "tilewright/value.h"

#include <cstdint>

namespace tilewright::topk {

// kTaken < NaN < -infinity < ... < infinity. A key may hold its expert, too, if the scores have 16
// bits: these are f32 whose last 12 bits are 0, and there are at most 4096 experts.
constexpr std::uint32_t kTaken = 0;
constexpr std::uint32_t kLeastNumber = 0x2000;  // the keys of NaN are below it
constexpr std::uint32_t kMinusInfinity = 0x007fffff;

Value key_of(const Value& score);  ///< Pre: not -0, which equals 0
Value score_of(const Value& key);
Value is_number(const Value& key);

/// Unlike those of key_of(), such keys differ, and the lower expert's is the larger one. Pre: the
/// score is a bf16 or f16.
Value key_with_expert(const Value& score, const Value& expert);
Value expert_of(const Value& key);
Value score_beside_expert(const Value& key);

}  // namespace tilewright::topk
