// SPDX-License-Identifier: Apache-2.0
// A layout as the flat list of its leaves: what the algebra's inner loops work on.
#pragma once

#include "tilewright/layout.h"

#include <cstdint>
#include <vector>

namespace tilewright {

/// One leaf of a layout.
struct Mode {
  Int extent;
  Int stride;  ///< the scale of a basis element
  BasisPath basis;
};
using Modes = std::vector<Mode>;

/// The leaves from left to right.
Modes modes_of(const Layout& layout);
/// Depth at most 1: a leaf for one mode, 1:0 for none.
Layout from_modes(const Modes& modes);
/// What coalesce does: drops extents of 1 and merges neighbours.
Modes coalesced(const Modes& modes);
/// As coalesced, and the same function beyond the size too: the last mode stays.
Modes coalesced_open(const Modes& modes);
/// What a complement does with gaps that no layout fills, such as the padding of rows.
enum class Gaps : std::uint8_t { skip, refuse };
Layout complement(const char* operation, const Layout& layout, const Shape& cotarget, Gaps gaps);
/// Throws Error(user) naming the operation if a leaf is a basis element.
void refuse_basis(const char* operation, const Layout& layout);

}  // namespace tilewright
