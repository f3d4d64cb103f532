// SPDX-License-Identifier: Apache-2.0
// Axes, lines and their names.
#include "cli/plot.h"

#include "cli/text.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace tilewright::cli {
namespace {

// Lengths are pixels.
constexpr double kWidth = 720, kHeight = 420, kLeft = 70, kTop = 40, kBottom = 50;
constexpr double kNames = 20;  // height of a line's name

/// Okabe and Ito's colors, which also those tell apart who do not see all of them.
constexpr std::array kColors{"#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"};

std::string escaped(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if (c == '<') {
      safe += "&lt;";
    } else if (c == '&') {
      safe += "&amp;";
    } else {
      safe += c;
    }
  }
  return safe;
}

std::string label(double x, double y, const char* anchor, const std::string& text) {
  return "<text x=\"" + fixed(x, 1) + "\" y=\"" + fixed(y, 1) + "\" text-anchor=\"" + anchor +
         "\">" + escaped(text) + "</text>\n";
}

std::string rule(double x1, double y1, double x2, double y2) {
  return "<line x1=\"" + fixed(x1, 1) + "\" y1=\"" + fixed(y1, 1) + "\" x2=\"" + fixed(x2, 1) +
         "\" y2=\"" + fixed(y2, 1) + "\" stroke=\"#ccc\"/>\n";
}

class Axes {
 public:
  explicit Axes(const Plot& plot) {
    double low = 1e300, high = 0, top = 0;
    for (const Line& line : plot.lines) {
      for (const auto& [x, y] : line.points) {
        low = std::min(low, x);
        high = std::max(high, x);
        top = std::max(top, y);
      }
    }
    first_ = std::floor(std::log2(low));
    last_ = std::max(std::ceil(std::log2(high)), first_ + 1);
    const double rough = std::max(top, 1e-9) / 5;
    step_ = std::pow(10, std::floor(std::log10(rough)));
    for (const double factor : {2.0, 2.5, 2.0}) {
      if (step_ < rough) step_ *= factor;
    }
    top_ = step_ * std::ceil(std::max(top, 1e-9) / step_);
  }

  double x(double value) const {
    return kLeft + (std::log2(value) - first_) / (last_ - first_) * (kWidth - 2 * kLeft);
  }
  double y(double value) const { return kHeight - kBottom - value / top_ * plot_height(); }

  std::string grid() const {
    std::string text;
    for (int i = 0; i <= static_cast<int>(last_ - first_); ++i) {
      const double power = std::exp2(first_ + i), at = x(power);
      text += rule(at, kTop, at, kHeight - kBottom) +
              label(at, kHeight - kBottom + 16, "middle", number_text(power));
    }
    for (int i = 0; i <= static_cast<int>(std::round(top_ / step_)); ++i) {
      const double value = i * step_;
      text += rule(kLeft, y(value), kWidth - kLeft, y(value)) +
              label(kLeft - 6, y(value) + 4, "end", number_text(std::round(value * 1e6) / 1e6));
    }
    return text;
  }

 private:
  static double plot_height() { return kHeight - kTop - kBottom; }
  double first_ = 0, last_ = 1;  // powers of two
  double step_ = 1, top_ = 1;
};

const char* stroke_text(Stroke stroke) {
  switch (stroke) {
    case Stroke::dashed:
      return " stroke-dasharray=\"6 4\"";
    case Stroke::dotted:
      return " stroke-dasharray=\"2 3\"";
    case Stroke::solid:
      break;
  }
  return " stroke-width=\"2\"";
}

std::string line_text(const Line& line, const Axes& axes) {
  const std::string color = kColors[static_cast<std::size_t>(line.color) % kColors.size()];
  std::string path, dots;
  for (const auto& [x, y] : line.points) {
    path += (path.empty() ? "" : " ") + fixed(axes.x(x), 1) + "," + fixed(axes.y(y), 1);
    if (line.stroke == Stroke::dashed) continue;
    dots += "<circle cx=\"" + fixed(axes.x(x), 1) + "\" cy=\"" + fixed(axes.y(y), 1) +
            "\" r=\"3\" fill=\"" + color + "\"/>\n";
  }
  return "<polyline points=\"" + path + "\" fill=\"none\" stroke=\"" + color + "\"" +
         stroke_text(line.stroke) + "/>\n" + dots;
}

std::string name_text(const Line& line, double y) {
  const std::string color = kColors[static_cast<std::size_t>(line.color) % kColors.size()];
  return "<line x1=\"" + fixed(kLeft, 1) + "\" y1=\"" + fixed(y - 4, 1) + "\" x2=\"" +
         fixed(kLeft + 30, 1) + "\" y2=\"" + fixed(y - 4, 1) + "\" stroke=\"" + color + "\"" +
         stroke_text(line.stroke) + "/>\n" + label(kLeft + 38, y, "start", line.name);
}

}  // namespace

std::string draw_plot(const Plot& plot) {
  const Axes axes(plot);
  const double height = kHeight + kNames * static_cast<double>(plot.lines.size()) + 10;
  std::string text = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + fixed(kWidth, 0) +
                     "\" height=\"" + fixed(height, 0) +
                     "\" font-family=\"sans-serif\" font-size=\"12\">\n"
                     "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
  text += axes.grid();
  for (const Line& line : plot.lines)
    text += line_text(line, axes);
  text += label(kWidth / 2, 20, "middle", plot.title) +
          label(kWidth / 2, kHeight - 14, "middle", plot.x_title) +
          label(kLeft, kTop - 8, "middle", plot.y_title);
  double y = kHeight + 10;
  for (const Line& line : plot.lines) {
    text += name_text(line, y);
    y += kNames;
  }
  return text + "</svg>\n";
}

}  // namespace tilewright::cli
