// SPDX-License-Identifier: Apache-2.0
// The algebra on chosen layouts: results in CuTe's notation, and the texts of refusals.
#include "layout/value_of.h"

#include <gtest/gtest.h>

namespace tilewright {
namespace {

using test::value_of;

struct Row {
  const char* name;
  const char* expression;
  const char* expected;
};

void check(std::initializer_list<Row> rows) {
  for (const Row& row : rows) {
    EXPECT_EQ(value_of(row.expression), row.expected) << row.name << ": " << row.expression;
  }
}

TEST(Composition, GivesTheFunctionOfBoth) {
  check({
      {"across two modes", "composition((6,2):(8,2), (4,3):(3,1))", "((2,2),3):((24,2),8)"},
      {"a tiler mode by mode", "composition((8,8,1):(1,8,64), <2:1,2:1,_>)", "(2,2,1):(1,8,64)"},
      {"stride 0 repeats", "composition((6,2):(8,2), 4:0)", "4:0"},
      {"beyond the end the last mode goes on", "composition((2,1):(1,8), 4:1)", "(2,2):(1,8)"},
      {"negative strides", "composition((4,2):(1,10), 8:-1)", "(4,2):(-1,-10)"},
      {"basis strides pick modes", "composition((4,8):(8,1), (2,2):(1@1,1@0))", "(2,2):(1,8)"},
      {"dynamic extent with a divisor", "composition((?{div=16},8):(1,3), 8:1)", "8:1"},
  });
}

TEST(Composition, RefusesWhatNoLayoutExpresses) {
  check({
      {"a carry between modes", "composition((6,2):(1,7), (3,2):(2,3))",
       "error: composition: (6,2):(1,7) o (3,2):(2,3): the modes of (3,2):(2,3) together reach 7 "
       "steps "
       "into the mode 6:1 and carry into the next, which no layout of that shape expresses; "
       "compose "
       "with a layout whose modes do not add up there"},
      {"a stride across the end of a mode", "composition((4,8):(2,1), (2,5):(1,5))",
       "error: composition: (4,8):(2,1) o (2,5):(1,5): the stride 5 is neither less than nor a "
       "multiple of the extent of the mode 4:2; use a stride that divides or is divided by it"},
      {"an extent that does not fill a mode", "composition((4,8):(2,1), 6:1)",
       "error: composition: (4,8):(2,1) o 6:1: the extent 6 is no multiple of the 4 steps of "
       "stride 1 "
       "that the mode 4:2 has room for; use extents and strides that divide"},
      {"steps that do not end with a mode", "composition((8,2):(1,10), 6:3)",
       "error: composition: (8,2):(1,10) o 6:3: steps of stride 3 do not end where the mode 8:1 "
       "does, "
       "and the next mode starts off by the rest; use extents and strides that divide"},
      {"an unknown dynamic extent", "composition((?,8):(1,3), 8:1)",
       "error: composition: (?,8):(1,3) o 8:1: the extent 8 is no multiple of the ? steps of "
       "stride 1 "
       "that the mode ?:1 has room for; give the dynamic one a divisor, or make it static"},
  });
}

}  // namespace
}  // namespace tilewright
