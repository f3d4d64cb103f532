// SPDX-License-Identifier: Apache-2.0
// Tuples and layouts handled as lists of modes, profiles, shape arithmetic, and recasts.
#include "layout/value_of.h"

#include <gtest/gtest.h>

namespace tilewright {
namespace {

using test::value_of;

struct ModesRow {
  const char* expression;
  const char* expected;
};

void check_modes(std::initializer_list<ModesRow> rows) {
  for (const ModesRow& row : rows) {
    EXPECT_EQ(value_of(row.expression), row.expected) << row.expression;
  }
}

TEST(Modes, AreListedGroupedAndReplaced) {
  check_modes({
      {"flatten((1,(2,(3,4))))", "(1,2,3,4)"},
      {"flatten(((2,4),8):((1,2),8))", "(2,4,8):(1,2,8)"},
      {"unflatten((1,2,3), (0,(0,0)))", "(1,(2,3))"},
      {"group((2,3,4):(1,2,6), 0, 2)", "((2,3),4):((1,2),6)"},
      {"take((2,3,4):(1,2,6), 1, 3)", "(3,4):(2,6)"},
      {"select((2,3,4):(1,2,6), 2, 0)", "(4,2):(6,1)"},
      {"append((2,3):(1,2), 4:6)", "(2,3,4):(1,2,6)"},
      {"prepend(2:1, 4:6)", "(4,2):(6,1)"},
      {"replace((2,3):(1,2), 1, 5:7)", "(2,5):(1,7)"},
      {"get(((2,4),8):((1,2),8), 0)", "(2,4):(1,2)"},
      {"zip(((1,2),(3,4)))", "((1,3),(2,4))"},
      {"zip((2,3):(1,2), (4,5):(6,24))", "((2,4),(3,5)):((1,6),(2,24))"},
      {"unwrap((((4))))", "4"},
      {"repeat_like((1,(2,3)), 7)", "(7,(7,7))"},
      {"dice((_,3), (4,8):(1,4))", "(8):(4)"},
      {"domain_offset((1,2), (4,8):(1,4))", "(4,8):(1,4) @ 9"},
      {"domain_distribute((15,14), 6)", "(3,2):(1,15)"},
  });
}

TEST(Modes, OutOfRangeIsAnError) {
  check_modes({
      {"get((2,3):(1,2), 2)", "error: mode 2 of (2,3) does not exist; it has rank 2"},
      {"take((2,3):(1,2), 1, 3)",
       "error: take: modes 1 to 3 are not within (2,3), which has rank 2"},
      {"unflatten((1,2), (0,(0,0)))",
       "error: unflatten: (1,2) does not have as many modes as (0,(0,0)) has leaves"},
      {"slice((1,_,_), (2,3):(1,2))",
       "error: slice: the coordinate (1,_,_) does not fit (2,3); give one entry a mode"},
      {"crd2idx((1,2,3), (2,3):(1,2))",
       "error: crd2idx: the coordinate (1,2,3) does not fit the shape (2,3); give one number, or "
       "one "
       "entry a mode"},
      {"zip(((1,2),3))", "error: zip: the modes of ((1,2),3) differ in rank"},
  });
}

TEST(Profiles, Compare) {
  check_modes({
      {"congruent((1,(2,3)), (4,(5,6)))", "true"},
      {"congruent((1,(2,3)), (4,5))", "false"},
      {"weakly_congruent((1,2), (4,(5,6)))", "true"},
      {"weakly_congruent((4,(5,6)), (1,2))", "false"},
      {"compatible((4,8), (4,(2,4)))", "true"},
      {"compatible((4,(2,4)), (4,8))", "false"},
      {"compatible(32, (4,(2,4)))", "true"},
      {"compatible((4,8), (4,9))", "false"},
      {"evenly_divides((8,6), (4,3))", "true"},
      {"evenly_divides((8,6), (4,4))", "false"},
      {"depth((1,(2,(3,4))))", "3"},
      {"rank((1,(2,(3,4))))", "2"},
  });
}

TEST(Shapes, DivideModeByMode) {
  check_modes({
      {"shape_div((3,4), 6)", "(1,2)"},
      {"shape_div((2,3), 4)", "error: shape_div: neither of 3 and 2 divides the other"},
      {"shape_div(?, 4)",
       "error: shape_div: neither of ? and 4 is known to divide the other; give a divisor or make "
       "it "
       "static"},
      {"shape_div((12,8), (4,2))", "(3,4)"},
      {"ceil_div((10,7), (4,3))", "(3,3)"},
      {"ceil_div((3,12), 8)", "(1,4)"},
      {"round_up((10,7), (4,3))", "(12,9)"},
      {"elem_scale((2,3), ((2,2),5))", "(8,15)"},
      {"product_each(((2,3),4))", "(6,4)"},
      {"sum((1,(2,3)))", "6"},
      {"compact_row_major((2,3,4))", "(12,4,1)"},
      {"compact_order((2,3,4), (1,0,2))", "(3,1,6)"},
      {"crd2crd((1,2), (3,4), (6,2))", "(1,2)"},
      {"crd2crd(7, (3,4), (6,2))", "(1,1)"},
      {"idx2crd(39, (4,6))", "(3,9)"},
  });
}

TEST(Complement, RefusesOverlapsAndLeavesOutGapsThatNothingFills) {
  check_modes({
      {"complement((2,2):(1,6), 24)", "(3,2):(2,12)"},
      {"complement((4,2):(1,6), 24)", "2:12"},
      {"complement((3,2):(1,11), 44)", "(3,2):(3,22)"},
      {"logical_divide(24:1, (4,2):(1,6))",
       "error: logical_divide: the stride 6 in (4,2):(1,6) is no multiple of 4, where the modes "
       "below it end, so no layout fills the gap; pad the modes below it"},
      {"logical_product((3,2,2):(1,5,19), 3:1)", "((3,2,2),3):((1,5,19),38)"},
      {"tile_to_shape((4,8):(9,1), (8,16))", "((4,2),(8,2)):((9,36),(1,72))"},
      {"complement(4:-1, 8)",
       "error: complement: 4:-1 overlaps itself or runs backwards (the mode 4:-1 starts before "
       "index "
       "1); only an injective layout with positive strides has a complement"},
      {"complement((4,4):(?,?), 64)",
       "error: complement: (4,4):(?,?) has the dynamic stride ? among several modes; make its "
       "strides "
       "static"},
      {"complement(4:?{div=4}, 64)", "(?{div=4},?):(1,?{div=16})"},
  });
}

TEST(Inverse, RefusesWhatHasNone) {
  check_modes({
      {"left_inverse(4:-1)",
       "error: left_inverse: 4:-1 has the stride -1; only static strides that are not negative "
       "have "
       "an inverse"},
      {"left_inverse((4,4):(2,3))",
       "error: left_inverse: the stride 3 in (4,4):(2,3) is no multiple of 8, where the modes "
       "below it "
       "end; only such a layout has an inverse that is a layout"},
      {"right_inverse(make_identity_layout((4,8)))",
       "error: right_inverse: (4,8):(1@0,1@1) has basis strides; use a layout with integer "
       "strides"},
  });
}

TEST(Recast, KeepsTheBytesOrRefuses) {
  check_modes({
      {"downcast((1,2):(1,1), 4)", "(1,8):(4,1)"},
      {"downcast(8:2, 4)",
       "error: downcast: 8:2 by 4: no mode has stride 1, so the parts of an element have no mode "
       "to go "
       "to; append a mode of stride 1"},
      {"upcast(5:1, 4)",
       "error: upcast: 5:1 by 4: the extent 5 of stride 1 is no multiple of 4, so an element would "
       "be "
       "cut; use an extent or divisor that is"},
      {"upcast((8,4):(1,?), 4)",
       "error: upcast: (8,4):(1,?) by 4: the stride ? is not known to be a multiple of 4; give the "
       "dynamic stride that divisor"},
      {"upcast((8,4):(1,?{div=8}), 4)", "(2,4):(1,?{div=2})"},
      {"upcast(4:3, 2)",
       "error: upcast: 4:3 by 2: the stride 3 neither divides nor is divided by 2; use a stride "
       "that "
       "does"},
      {"recast_layout(24, 16, 48:1)", "32:1"},
      {"recast_layout(32, 16, Sw<3,3,3> o 0 o (8,64):(64,1))", "Sw<3,2,3> o 0 o (8,32):(32,1)"},
      {"recast_layout(8, 16, Sw<3,3,3>)", "Sw<3,4,3>"},
      {"recast_layout(64, 16, Sw<3,1,3>)", "Sw<2,0,3>"},
      {"recast_layout(48, 16, Sw<3,3,3>)",
       "error: recast_layout: a swizzle cannot be recast by 3; use element widths that differ by a "
       "power of two"},
      {"max_alignment((8,4):(1,16))", "8"},
  });
}

TEST(Swizzles, MergeMoveAndRefuse) {
  check_modes({
      {"make_swizzle(448, 56)", "Sw<3,3,3>"},
      {"composition(Sw<1,0,3>, Sw<1,1,3>)", "Sw<2,0,3>"},
      {"composition(Sw<3,3,3>, Sw<3,4,2>)",
       "error: swizzle: Sw<3,4,2> is none; bits and base must be at least 0, |shift| at least "
       "bits, "
       "and base + |shift| + bits at most 62"},
      {"composition(Sw<2,3,3>, Sw<2,3,4>)",
       "error: composition: Sw<2,3,3> o Sw<2,3,4>: only swizzles of the same shift merge into one"},
      {"composition((8,8):(8,1), Sw<1,0,3>)", "Sw<1,0,-3> o 0 o (8,8):(8,1)"},
      {"composition((6,8):(8,1), Sw<1,0,3>)",
       "error: composition: (6,8):(8,1) o Sw<1,0,3>: the layout is no permutation of index bits; "
       "use "
       "power-of-two extents and strides"},
      {"tiled_divide(Sw<3,3,3> o 0 o (64,64):(64,1), <8,64>)",
       "Sw<3,3,3> o 0 o ((8,64),8,1):((64,1),512,0)"},
      {"slice((3,_), Sw<3,3,3> o 0 o (8,64):(64,1))", "Sw<3,3,3> o 192 o (64):(1)"},
      {"cosize(Sw<1,0,1> o 0 o 3:1)", "4"},
      {"max_common_vector(Sw<3,3,3> o 0 o (8,64):(64,1), (8,64):(64,1))", "8"},
  });
}

}  // namespace
}  // namespace tilewright
