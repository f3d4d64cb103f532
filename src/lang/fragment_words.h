// SPDX-License-Identifier: Apache-2.0
// The registers of a fragment as values, for conversions of whole words.
#pragma once

#include "tilewright/fragment.h"

#include <functional>
#include <span>
#include <vector>

namespace tilewright::lang {

/// A register of the fragment as it is now, of type `type`: valid until it is written.
Value register_value(const Fragment& fragment, int index, Type type);
/// Makes a register of the fragment hold the value.
void put_register(const Fragment& fragment, int index, const Value& value, SourceLoc at);

/// A fragment of packed elements: each word made from the elements of `wide`, a register each.
Fragment narrow_by_words(Type to, const Fragment& wide,
                         const std::function<Value(std::span<const Value>)>& narrow, SourceLoc at);
/// A fragment of wider elements, of `to`: `widen(word, count)` gives the registers for a word.
Fragment widen_by_words(
    Type to, const Fragment& packed,
    const std::function<std::vector<Value>(const Value& word, int count)>& widen, SourceLoc at);

}  // namespace tilewright::lang
