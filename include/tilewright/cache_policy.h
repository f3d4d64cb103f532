// SPDX-License-Identifier: Apache-2.0
// What the L2 cache keeps: eviction policies for loads and stores, and prefetches.
#pragma once

#include "tilewright/tensor.h"

namespace tilewright {

/// What becomes of a line of the L2 cache (PTX ISA, cache eviction priority hints).
enum class Eviction : std::uint8_t {
  first,      ///< goes first: streams
  last,       ///< goes last: weights that every block reads again
  normal,     ///< as without a policy
  unchanged,  ///< keeps the priority that the line has
};

/// A policy for LoadOptions, StoreOptions and bulk copies (createpolicy, sm_80; b64): `fraction` of
/// the lines, picked by address, get `eviction`; the rest are unchanged. Pre: 0 < fraction <= 1.
Value cache_policy(Eviction eviction, double fraction = 1, SourceLoc at = SourceLoc::here());

enum class CacheLevel : std::uint8_t { l1, l2 };
/// Begins fetching the element's line from global memory.
void prefetch(const Element& element, CacheLevel level = CacheLevel::l2,
              SourceLoc at = SourceLoc::here());

}  // namespace tilewright
