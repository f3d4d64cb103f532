// SPDX-License-Identifier: Apache-2.0
// The grid of a layout, and its table of text.
#include "layout/fail.h"
#include "layout/modes.h"
#include "layout/picture.h"

#include <algorithm>

namespace tilewright {
namespace {

Grid empty_grid(std::string title, const Int& rows, const Int& columns) {
  if (!rows.is_static() || !columns.is_static()) {
    fail("picture: " + title + " has a dynamic shape; give static extents");
  }
  const Int cells = rows * columns;
  if (cells.value() > kMaxPictureCells) {
    fail("picture: " + title + " has " + to_string(cells) + " elements, over the " +
         std::to_string(kMaxPictureCells) + " that a picture shows; draw a part of it");
  }
  Grid grid{
      std::move(title), static_cast<int>(rows.value()), static_cast<int>(columns.value()), {}};
  grid.cells.resize(static_cast<std::size_t>(cells.value()));
  return grid;
}

std::string padded(const std::string& text, std::size_t width) {
  return std::string(width - std::min(width, text.size()), ' ') + text;
}

std::string table(const Grid& grid) {
  std::size_t width = std::to_string(std::max(grid.columns - 1, 0)).size();
  for (const Cell& cell : grid.cells) {
    width = std::max(width, cell.text.size());
  }
  const std::size_t margin = std::to_string(std::max(grid.rows - 1, 0)).size();
  std::string text = grid.title + '\n' + std::string(margin, ' ') + " |";
  for (int column = 0; column < grid.columns; ++column) {
    text += ' ' + padded(std::to_string(column), width);
  }
  text += '\n' + std::string(margin + 1, '-') + '+' +
          std::string((width + 1) * static_cast<std::size_t>(grid.columns), '-') + '\n';
  for (int row = 0; row < grid.rows; ++row) {
    text += padded(std::to_string(row), margin) + " |";
    for (int column = 0; column < grid.columns; ++column) {
      text += ' ' + padded(grid.at(row, column).text, width);
    }
    text += '\n';
  }
  return text;
}

}  // namespace

Grid grid_of(const ComposedLayout& layout) {
  const Int rows = layout.rank() > 0 ? size(layout.shape()[0]) : Int(1);
  const Int columns = rows.is_static(0) ? Int(0) : size(layout) / rows;
  Grid grid = empty_grid(to_string(layout), rows, columns);
  if (grid.cells.empty()) return grid;
  const bool coordinates = layout.is_plain() && !evaluate(layout.layout, 0).is_int();
  for (int row = 0; row < grid.rows; ++row) {
    for (int column = 0; column < grid.columns; ++column) {
      const Int linear = Int(column) * rows + row;
      Cell& cell = grid.at(row, column);
      if (coordinates) {
        cell = {to_string(evaluate(layout.layout, IntTuple(linear))), linear.value()};
      } else {
        const Int index = layout(IntTuple(linear));
        cell = {to_string(index), index.value()};
      }
    }
  }
  return grid;
}

Grid grid_of(const LayoutTV& tv) {
  const Int rows = size(tv.tiler[0]);
  Grid grid = empty_grid(to_string(tv.layout), rows, size(tv.tiler) / rows);
  const std::int64_t threads = size(tv.layout.shape()[0]).value();
  const std::int64_t values = size(tv.layout.shape()[1]).value();
  for (std::int64_t thread = 0; thread < threads; ++thread) {
    for (std::int64_t value = 0; value < values; ++value) {
      const std::int64_t at = tv.layout(thread, value).value();
      if (at < 0 || at >= static_cast<std::int64_t>(grid.cells.size())) {
        fail("picture: value " + std::to_string(value) + " of thread " + std::to_string(thread) +
             " is at " + std::to_string(at) + ", outside of the tile " + to_string(tv.tiler));
      }
      const std::int64_t row = at % rows.value();
      Cell& cell = grid.at(static_cast<int>(row), static_cast<int>(at / rows.value()));
      if (!cell.text.empty()) {
        cell.text += '+';  // held by more threads than one
        continue;
      }
      cell = {"T" + std::to_string(thread) + "V" + std::to_string(value), thread};
    }
  }
  return grid;
}

std::string draw_text(const ComposedLayout& layout) { return table(grid_of(layout)); }
std::string draw_text(const LayoutTV& tv) { return table(grid_of(tv)); }

}  // namespace tilewright
