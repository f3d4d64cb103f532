// SPDX-License-Identifier: Apache-2.0
// CuTe's notation: reading, printing, expressions, and text that is none.
#include "layout/value_of.h"
#include "tilewright/layout_text.h"

#include <gtest/gtest.h>
#include <random>

namespace tilewright {
namespace {

using test::value_of;

TEST(Text, PrintsWhatItReads) {
  for (const char* text :
       {"8:1", "((2,4),8):((1,2),8)", "(4):(-1)", "():()", "(?,?{div=16}):(?{div=16},1)",
        "(4,(2,3)):(1@0,(1@0@1,2@1@1))", "(8,64):(64,1)"}) {
    EXPECT_EQ(to_string(parse_layout(text)), text);
  }
  for (const char* text : {"_", "(1,(_,3))", "7", "3@2", "()"}) {
    EXPECT_EQ(to_string(parse_int_tuple(text)), text);
  }
  for (const char* text : {"<4:1,_>", "<<2:1,_>,3:1>", "(4,2):(1,8)"}) {
    EXPECT_EQ(to_string(parse_tiler(text)), text);
  }
  EXPECT_EQ(to_string(parse_swizzle("Sw<3,4,-3>")), "Sw<3,4,-3>");
  EXPECT_EQ(to_string(parse_composed("Sw<3,4,3> o 8 o (8,64):(64,1)")),
            "Sw<3,4,3> o 8 o (8,64):(64,1)");
}

TEST(Text, ReadsCutesOwnPrint) {
  EXPECT_EQ(to_string(parse_layout(" ( _4 , (_2,8) ) : (_1,(_4, 8)) ")), "(4,(2,8)):(1,(4,8))");
  EXPECT_EQ(to_string(parse_tiler("(4,_)")), "<4:1,_>");
  EXPECT_EQ(to_string(parse_layout("_4:_-1")), "4:-1");
  EXPECT_EQ(to_string(parse_layout("(4,8):(E<0>,E<1,0>)")), "(4,8):(1@0,1@0@1)");
  EXPECT_EQ(value_of("E<0,1>"), "1@1@0");
  EXPECT_EQ(value_of("slice_and_offset(_, 4:1)"), "4:1 @ 0");
  EXPECT_EQ(value_of("4:1 @ 300"), "4:1 @ 300") << "an offset, not a basis element";
  const IntTuple e = parse_int_tuple("2@1@0");
  EXPECT_EQ(e, basis({0, 1}, 2)) << "the innermost mode comes first";
  const Int x = parse_int_tuple("?{div=16,min=32,max=100}").value();
  EXPECT_EQ(x.divisor(), 16);
  EXPECT_EQ(x.min(), 32);
  EXPECT_EQ(x.max(), 96);
}

struct TextRow {
  const char* name;
  const char* text;
  const char* expected;
};

TEST(Text, ErrorsNameTheColumn) {
  const TextRow rows[] = {
      {"no stride", "(4,8)(", "error: cannot read '(4,8)(': expected an integer at column 7"},
      {"an open bracket", "(4,8:1", "error: cannot read '(4,8:1': expected ',' or ')' at column 5"},
      {"too much", "8:1 x", "error: cannot read '8:1 x': expected the end of the text at column 5"},
      {"a huge integer", "99999999999999999999:1",
       "error: cannot read '99999999999999999999:1': expected an integer that fits 64 bits at "
       "column "
       "1"},
      {"an unknown fact", "?{mod=3}",
       "error: cannot read '?{mod=3}': expected div=, min= or max= at column 6"},
      {"profiles", "(4,8):(1,(2,3))",
       "error: layout: the shape (4,8) and the stride (1,(2,3)) have different profiles; give one "
       "stride a leaf of the shape"},
      {"a negative extent", "(4,-8):(1,4)",
       "error: layout: the extent -8 is negative; extents are at least 0"},
      {"no function", "compose(8:1)",
       "error: unknown function 'compose'; known are append, blocked_product, ceil_div, coalesce, "
       "compact_col_major, compact_order, compact_row_major, compatible, complement, "
       "composed_layout_eval, composition, composition_swizzle, congruent, coshape, cosize, "
       "crd2crd, "
       "crd2idx, depth, dice, domain_distribute, domain_offset, downcast, elem_scale, evaluate, "
       "evenly_divides, filter, filter_zeros, flat_divide, flat_product, flatten, get, group, "
       "idx2crd, inner_product, left_inverse, local_partition, local_tile, logical_divide, "
       "logical_product, make_basis_like, make_identity_layout, make_layout, make_layout_like, "
       "make_layout_tv, make_ordered_layout, make_row_major, make_swizzle, max_alignment, "
       "max_common_layout, max_common_vector, nullspace, prepend, product, product_each, "
       "raked_product, rank, recast_layout, recast_layout_swizzle, repeat_like, replace, "
       "right_inverse, round_up, select, shape, shape_div, size, slice, slice_and_offset, stride, "
       "sum, swizzle_apply, take, tile_to_shape, tile_unzip, tiled_divide, tiled_product, "
       "unflatten, "
       "unwrap, upcast, weakly_congruent, zip, zipped_divide, zipped_product"},
      {"too few arguments", "composition(8:1)",
       "error: composition: 1 arguments; give (layout or swizzle, tiler or swizzle)"},
      {"the wrong argument", "coalesce(8)",
       "error: coalesce: argument 1 is 8; give a layout such as (4,8):(1,4)"},
      {"no swizzle", "Sw<3,4,1>",
       "error: swizzle: Sw<3,4,1> is none; bits and base must be at least 0, |shift| at least "
       "bits, "
       "and base + |shift| + bits at most 62"},
  };
  for (const TextRow& row : rows) {
    EXPECT_EQ(value_of(row.text), row.expected) << row.name;
  }
}

TEST(Text, ExpressionsNest) {
  const TextRow rows[] = {
      {"a call in a call", "coalesce(composition((6,2):(8,2), (4,3):(3,1)))", "(2,2,3):(24,2,8)"},
      {"a layout at a coordinate", "(4,8):(1,4)(2,3)", "14"},
      {"at a linear one", "(4,8):(8,1)(5)", "9"},
      {"a slice", "(4,8):(1,4)(2,_)", "(8):(4)"},
      {"a slice of a call's result", "tiled_divide((8,6):(1,8), <4,3>)((0,0),_,_)", "(2,2):(4,24)"},
      {"behind a swizzle", "composition(Sw<3,3,3>, (8,64):(64,1))(3,17)", "201"},
      {"an identity layout", "make_identity_layout((4,8))(2,5)", "(2,5)"},
      {"a thread-value layout", "make_layout_tv((2,2):(2,1), (2,1):(1,1))",
       "(4,2), ((2,2),2):((4,2),1)"},
      {"a tile", "local_tile((8,6):(1,8), (4,3), (1,1))", "(4,3):(1,8) @ 28"},
      {"a tile of an operand without N", "local_tile((8,6):(1,8), (4,5,3), (1,7,_), (1,_,1))",
       "(4,3,2):(1,8,24) @ 4"},
      {"a product behind a swizzle", "blocked_product(Sw<1,0,1> o 0 o (2,2):(2,1), (1,3):(1,1))",
       "Sw<1,0,1> o 0 o ((2,1),(2,3)):((2,4),(1,4))"},
      {"a partition", "local_partition((8,6):(1,8), (2,3):(3,1), 5)", "(4,2):(2,24) @ 17"},
      {"a truth", "compatible((4,8), (4,(2,4)))", "true"},
  };
  for (const TextRow& row : rows) {
    EXPECT_EQ(value_of(row.text), row.expected) << row.name << ": " << row.text;
  }
}

TEST(Text, DeepNestingIsRefused) {
  EXPECT_NE(value_of(std::string(100'000, '(')).find("nesting of at most 64 brackets"),
            std::string::npos);
  std::string calls;
  for (int i = 0; i < 100'000; ++i) {
    calls += "size(";
  }
  EXPECT_NE(value_of(calls).find("at most 64 nested calls"), std::string::npos);
}

// Whatever the bytes: a value, or an Error of the user's.
TEST(Text, RandomBytesNeverCrash) {
  constexpr std::uint32_t kSeed = 7;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  std::mt19937 engine(kSeed);
  const std::string alphabet = "0123456789(),:<>_?{}=@-o Swdivmnax";
  const std::vector<std::string> words = {
      "composition(", "size(",       "Sw<3,4,3>",    " o 0 o ",  "(4,8):(1,4)",    "8:1",
      "<4,_>",        "complement(", "slice((_,1),", "?{div=4}", "tile_to_shape(", "zip("};
  int values = 0;
  for (int round = 0; round < 10'000; ++round) {
    std::string text;
    for (std::size_t i = engine() % 12; i > 0; --i) {
      const std::size_t kind = engine() % 8;
      if (kind == 0) {
        text += static_cast<char>(engine() % 256);
      } else if (kind < 4) {
        text += words[engine() % words.size()];
      } else {
        text += alphabet[engine() % alphabet.size()];
      }
    }
    try {
      evaluate_layout_expression(text);
      ++values;
    } catch (const Error& e) {
      ASSERT_EQ(e.kind(), ErrorKind::user) << text;
    }
  }
  EXPECT_GT(values, 50) << "the texts are too wild to test more than the first character";
}

}  // namespace
}  // namespace tilewright
