// SPDX-License-Identifier: Apache-2.0
// Lines over a logarithmic axis as SVG.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tilewright::cli {

enum class Stroke : std::uint8_t { solid, dashed, dotted };

struct Line {
  std::string name;
  Stroke stroke = Stroke::solid;
  int color = 0;  ///< lines of one number have one color
  std::vector<std::pair<double, double>> points =
      {};  ///< ascending x, greater than 0; y at least 0
};

struct Plot {
  std::string title, x_title, y_title;
  std::vector<Line> lines;
};
/// x in powers of two, y from 0. Pre: some line has a point.
std::string draw_plot(const Plot& plot);

}  // namespace tilewright::cli
