// SPDX-License-Identifier: Apache-2.0
// Pictures of layouts.
#include "tilewright/layout_picture.h"
#include "tilewright/layout_text.h"

#include <gtest/gtest.h>

namespace tilewright {
namespace {

int count(const std::string& text, const std::string& part) {
  int result = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++result;
  }
  return result;
}

TEST(Picture, TextShowsTheIndexOfEachCoordinate) {
  EXPECT_EQ(draw_text(parse_layout("(2,(2,2)):(4,(1,2))")),
            "(2,(2,2)):(4,(1,2))\n"
            "  | 0 1 2 3\n"
            "--+--------\n"
            "0 | 0 1 2 3\n"
            "1 | 4 5 6 7\n");
  EXPECT_EQ(draw_text(make_identity_layout(Shape{2, 2})),
            "(2,2):(1@0,1@1)\n"
            "  |     0     1\n"
            "--+------------\n"
            "0 | (0,0) (0,1)\n"
            "1 | (1,0) (1,1)\n");
  EXPECT_EQ(draw_text(parse_composed("Sw<1,0,1> o 0 o (2,2):(2,1)")),
            "Sw<1,0,1> o 0 o (2,2):(2,1)\n"
            "  | 0 1\n"
            "--+----\n"
            "0 | 0 1\n"
            "1 | 3 2\n");
}

TEST(Picture, TextShowsThreadAndValue) {
  EXPECT_EQ(draw_text(make_layout_tv(Layout({2, 2}, {2, 1}), Layout({1, 2}, {1, 1}))),
            "((2,2),2):((4,1),2)\n"
            "  |    0    1    2    3\n"
            "--+--------------------\n"
            "0 | T0V0 T0V1 T1V0 T1V1\n"
            "1 | T2V0 T2V1 T3V0 T3V1\n");
}

TEST(Picture, SvgHasACellAnElement) {
  const std::string svg = draw_svg(parse_composed("Sw<2,0,2> o 0 o (4,4):(4,1)"));
  EXPECT_EQ(count(svg, "<rect "), 16);
  EXPECT_EQ(count(svg, "class=\"cell\""), 16);
  EXPECT_NE(svg.find("Sw&lt;2,0,2> o 0 o (4,4):(4,1)"), std::string::npos);
  EXPECT_EQ(svg.substr(0, 5), "<svg ");
  EXPECT_EQ(svg.substr(svg.size() - 7), "</svg>\n");
}

// A column of a 32 x 32 tile of 4-byte elements lies in one bank; the swizzle spreads it over all.
TEST(Picture, BankColoursShowConflicts) {
  const auto colours_of_first_column = [](const char* layout) {
    const std::string svg = draw_svg(parse_composed(layout), {CellColor::bank, 32});
    std::vector<std::string> colours;
    std::size_t at = 0;
    for (int cell = 0; cell < 1024; ++cell) {
      at = svg.find("fill=\"#", svg.find("<rect", at)) + 6;
      const std::string colour = svg.substr(at, svg.find('"', at) - at);
      const bool fresh = std::find(colours.begin(), colours.end(), colour) == colours.end();
      if (cell % 32 == 0 && fresh) colours.push_back(colour);
    }
    return colours.size();
  };
  EXPECT_EQ(colours_of_first_column("(32,32):(32,1)"), 1U);
  EXPECT_EQ(colours_of_first_column("Sw<5,0,5> o 0 o (32,32):(32,1)"), 32U);
}

TEST(Picture, RefusesWhatCannotBeDrawn) {
  const auto message = [](const char* layout) -> std::string {
    try {
      return draw_text(parse_layout(layout));
    } catch (const Error& e) {
      return e.message();
    }
  };
  EXPECT_EQ(message("(?,4):(4,1)"),
            "picture: (?,4):(4,1) has a dynamic shape; give static extents");
  EXPECT_EQ(
      message("(1024,1024):(1,1024)"),
      "picture: (1024,1024):(1,1024) has 1048576 elements, over the 16384 that a picture shows; "
      "draw a part of it");
  const LayoutTV beyond{IntTuple{2, 2}, Layout({2, 3}, {1, 2})};
  try {
    draw_text(beyond);
    ADD_FAILURE() << "not refused";
  } catch (const Error& e) {
    EXPECT_EQ(e.message(), "picture: value 2 of thread 0 is at 4, outside of the tile (2,2)");
  }
}

TEST(Picture, OfNoElementsIsEmpty) {
  EXPECT_EQ(draw_text(parse_layout("(0,4):(1,0)")), "(0,4):(1,0)\n  |\n--+\n");
}

}  // namespace
}  // namespace tilewright
