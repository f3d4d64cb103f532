// SPDX-License-Identifier: Apache-2.0
// SVG pictures of layouts.
#include "layout/fail.h"
#include "layout/picture.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace tilewright {
namespace {

// In SVG user units.
constexpr int kCellHeight = 24;
constexpr int kCharWidth = 7;
constexpr int kMargin = 36;

std::string escaped(const std::string& text) {
  std::string result;
  for (char c : text) {
    if (c == '<') {
      result += "&lt;";
    } else if (c == '&') {
      result += "&amp;";
    } else {
      result += c;
    }
  }
  return result;
}

/// A light colour of this hue in degrees, as every viewer of SVG knows it: #rrggbb.
std::string light(std::int64_t hue) {
  constexpr int kLow = 162, kHigh = 235;  // lightness 78 %, saturation 65 %
  auto part = [](std::int64_t degrees) {  // red is full within 60 degrees of its hue
    std::int64_t away = std::abs((degrees + 540) % 360 - 180);
    std::int64_t share = std::clamp<std::int64_t>(120 - away, 0, 60);
    return static_cast<int>(kLow + (kHigh - kLow) * share / 60);
  };
  char text[8];
  std::snprintf(text, sizeof text, "#%02x%02x%02x", part(hue), part(hue + 240), part(hue + 120));
  return text;
}

// Neighbouring keys get hues far apart (137 degrees is the golden angle).
std::string scattered(std::int64_t key) {
  const std::int64_t hue = ((key % 360) * 137 % 360 + 360) % 360;
  return light(hue);
}

// Keys from 0 to `count` run once around the colour circle.
std::string graded(std::int64_t key, std::int64_t count) {
  const std::int64_t hue = (key % count + count) % count * 300 / std::max<std::int64_t>(count, 1);
  return light(hue);
}

std::string number(int n) { return std::to_string(n); }

std::string label(int x, int y, const std::string& text, const char* kind) {
  return "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\" class=\"" + kind + "\">" +
         escaped(text) + "</text>\n";
}

template <class Color>
std::string svg(const Grid& grid, const std::string& legend, Color&& color) {
  std::size_t longest = 2;
  for (const Cell& cell : grid.cells) {
    longest = std::max(longest, cell.text.size());
  }
  const int width = static_cast<int>(longest) * kCharWidth + 8;
  const int total_width =
      std::max(grid.columns * width,
               static_cast<int>(std::max(grid.title.size(), legend.size())) * kCharWidth) +
      2 * kMargin;
  const int total_height = grid.rows * kCellHeight + 2 * kMargin + kCellHeight;
  std::string out = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + number(total_width) +
                    "\" height=\"" + number(total_height) + "\">\n<style>" +
                    "text{font:11px monospace;text-anchor:middle;dominant-baseline:middle}" +
                    ".title{text-anchor:start}.axis{fill:#777}" +
                    "rect{stroke:#555;stroke-width:.5}</style>\n" +
                    "<path fill=\"#fff\" d=\"M0 0h" + number(total_width) + "v" +
                    number(total_height) + "H0z\"/>\n";
  out += label(kMargin, 12, grid.title, "title");
  for (int column = 0; column < grid.columns; ++column) {
    out += label(kMargin + column * width + width / 2, kMargin - 8, number(column), "axis");
  }
  for (int row = 0; row < grid.rows; ++row) {
    const int y = kMargin + row * kCellHeight;
    out += label(kMargin / 2, y + kCellHeight / 2, number(row), "axis");
    for (int column = 0; column < grid.columns; ++column) {
      const Cell& cell = grid.at(row, column);
      const int x = kMargin + column * width;
      out += "<rect x=\"" + number(x) + "\" y=\"" + number(y) + "\" width=\"" + number(width) +
             "\" height=\"" + number(kCellHeight) + "\" fill=\"" +
             (cell.text.empty() ? "#fff" : color(cell.key)) + "\"/>\n";
      out += label(x + width / 2, y + kCellHeight / 2, cell.text, "cell");
    }
  }
  out += label(kMargin, total_height - 12, legend, "title");
  return out + "</svg>\n";
}

}  // namespace

std::string draw_svg(const ComposedLayout& layout, const SvgOptions& options) {
  const Grid grid = grid_of(layout);
  if (options.color == CellColor::bank) {
    if (options.element_bits < 1) {
      fail("picture: elements of " + std::to_string(options.element_bits) +
           " bits have no bank; give a width of at least 1");
    }
    constexpr std::int64_t kBanks = 32;  // of 4 bytes: every GPU since compute capability 2.0
    constexpr std::int64_t kBankBits = 32;
    return svg(grid,
               "colour: shared-memory bank (index * " + std::to_string(options.element_bits) +
                   " bits / 4 bytes mod 32)",
               [&options](std::int64_t index) {
                 return graded(index * options.element_bits / kBankBits, kBanks);
               });
  }
  std::int64_t most = 1;
  for (const Cell& cell : grid.cells) {
    most = std::max(most, cell.key + 1);
  }
  return svg(grid, "colour: position in memory",
             [most](std::int64_t index) { return graded(index, most); });
}

std::string draw_svg(const LayoutTV& tv) { return svg(grid_of(tv), "colour: thread", scattered); }

}  // namespace tilewright
