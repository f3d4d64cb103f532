// SPDX-License-Identifier: Apache-2.0
// Draws layouts: tables of text, and SVG coloured by index, by shared-memory bank or by thread.
#pragma once

#include "tilewright/swizzle.h"

#include <cstdint>
#include <string>

namespace tilewright {

/// Pictures have at most this many cells.
inline constexpr std::int64_t kMaxPictureCells = 16384;

/// One line a row, the index (or coordinate) of each (row, column): mode 0 runs down, the other
/// modes run across. Throws Error(user) if the layout is dynamic or has over kMaxPictureCells
/// elements.
std::string draw_text(const ComposedLayout& layout);
/// The tile, each element with the thread and value that hold it: "T3V1".
std::string draw_text(const LayoutTV& tv);

enum class CellColor : std::uint8_t {
  index,  ///< by the position in memory
  bank,   ///< by the shared-memory bank of 4 bytes that the element starts in
};
struct SvgOptions {
  CellColor color = CellColor::index;
  int element_bits = 32;  ///< for CellColor::bank
};
std::string draw_svg(const ComposedLayout& layout, const SvgOptions& options = {});
/// Coloured by thread.
std::string draw_svg(const LayoutTV& tv);

}  // namespace tilewright
