// SPDX-License-Identifier: Apache-2.0
// Accesses of 16 bytes to rows that begin at any element: two aligned words, shifted. Traced.
#pragma once

#include "tilewright/fragment.h"
#include "tilewright/tensor.h"
#include "tilewright/value.h"

#include <cstdint>

namespace tilewright::rows {

constexpr int kShiftedBytes = 16;

inline int shifted_elems(Type type) { return kShiftedBytes / bytes(type); }  ///< of an access

/// Columns of whole accesses that cover a row of `columns` wherever it begins in its first access.
std::int64_t shifted_columns(std::int64_t columns, Type type);

/// Memory that is read, and that nothing writes: from `first`, before `end`.
struct ReadMemory {
  Value first, end;
  /// Whether all of the aligned words that hold 16 bytes at `address` are inside.
  Value holds_words(const Value& address) const;
};

/// 16 bytes of elements at any address that is aligned to one. Where not `active`, undefined. Pre:
/// the memory holds_words(address) where active.
Fragment load_shifted(Type type, const Value& address, const Value& active);

/// Elements between the aligned word and `address`.
Value elems_before(Type type, const Value& address);

/// The 16 bytes at an aligned address.
Element aligned_access(Type type, const Value& address);

}  // namespace tilewright::rows
