// SPDX-License-Identifier: Apache-2.0
// A layout as a grid of cells, which the text and the SVG picture share.
#pragma once

#include "tilewright/layout_picture.h"

#include <string>
#include <vector>

namespace tilewright {

struct Cell {
  std::string text;    ///< the index, or thread and value
  std::int64_t key{};  ///< what colours go by: index or thread
};

/// Cells by row, then column.
struct Grid {
  std::string title;
  int rows = 0;
  int columns = 0;
  std::vector<Cell> cells;

  Cell& at(int row, int column) {
    return cells[static_cast<std::size_t>(row) * static_cast<std::size_t>(columns) +
                 static_cast<std::size_t>(column)];
  }
  const Cell& at(int row, int column) const { return const_cast<Grid*>(this)->at(row, column); }
};

Grid grid_of(const ComposedLayout& layout);
Grid grid_of(const LayoutTV& tv);

}  // namespace tilewright
