// SPDX-License-Identifier: Apache-2.0
// gather_rows and embedding against their references: types, widths, indices outside, shards.
#include "kernels/row_gather/row_gather.h"
#include "operator_fixture.h"

#include <cmath>

namespace tilewright {
namespace {

using test::OperatorTest;
using test::Placement;

class RowGather : public OperatorTest {
 protected:
  const Operator& gather = gather_rows_operator();
  const Operator& embed = embedding_operator();

  static Array ids(std::vector<double> values, Type type = s32) {
    auto count = static_cast<std::int64_t>(values.size());
    return make_array("ids", type, {count}, values);
  }

  /// Six tokens, two without a row, with indices outside of both tables.
  static std::vector<Array> added(Array table, Type type, Type index) {
    const std::int64_t h = table.shape[1];
    std::vector<double> tokens{3, -1, 8, 9, 0, 5}, types{0, 1, 1, 0, -1, 2};
    std::vector<double> positions{6, 1, 0, 4, 7, -3};
    return {std::move(table),
            make_array("ids", index, {6}, tokens),
            random("type_table", type, {2, h}, 1, 2),
            make_array("token_types", index, {6}, types),
            random("position_table", type, {7, h}, 1, 3),
            make_array("positions", index, {6}, positions)};
  }
};

TEST_F(RowGather, CopiesRowsOfEveryTypeAndWidth) {
  for (Type type : {bf16, f32, f64, u8, s32, e4m3}) {
    for (std::int64_t h : {1, 7, 8, 63, 100, 333, 2304})
      run(gather, {random("src", type, {9, h}), ids({3, 0, 8, 8, 1})});
  }
}

TEST_F(RowGather, IsRightInEveryConfiguration) {
  run_candidates(gather, {random("src", bf16, {9, 1032}), ids({3, -1, 8, 9, 0, 5})});
  run_candidates(embed, {random("table", bf16, {9, 1032}), ids({3, -1, 8, 9, 0, 5})},
                 {{"scale", "3"}});
}

TEST_F(RowGather, TakesIndicesOfBothTypes) {
  for (Type type : {s32, s64}) {
    run(gather, {random("src", f16, {9, 64}), ids({3, -1, 8, 9, 0}, type)});
    run(embed, {random("table", f16, {9, 64}), ids({3, -1, 8, 9, 0}, type)});
  }
}

TEST_F(RowGather, GivesZerosForIndicesOutside) {
  Array src = random("src", f32, {3, 4});
  std::vector<double> out =
      to_doubles(run(gather, {src, ids({-1, 3, -9e15, 9e15, 2}, s64)}).front());
  for (std::size_t i = 0; i < 16; ++i) {
    EXPECT_EQ(out[i], 0);
    EXPECT_FALSE(std::signbit(out[i]));
  }
  EXPECT_NE(out[16], 0);
}

TEST_F(RowGather, KeepsRowsOfIndicesOutsideThatItSkips) {
  for (Type type : {s32, s64}) {
    for (std::int64_t h : {1, 7, 96, 333, 2304}) {
      const std::vector<Array> inputs{random("src", bf16, {9, h}), ids({3, -1, 8, 9, 0}, type),
                                      random("dst", bf16, {5, h}, 1, 7)};
      run(gather, inputs, {{"missing", "skip"}});
      run(gather, inputs, {{"missing", "skip"}}, Placement{.row_padding = 3, .offset_elems = 1});
      run(gather, inputs);  // which overwrites them
    }
  }
  run_candidates(gather,
                 {random("src", u8, {9, 2064}), ids({-1, 8, 9, 0}), random("dst", u8, {4, 2064})},
                 {{"missing", "skip"}});
}

TEST_F(RowGather, KeepsAllRowsWhereTheTableIsEmpty) {
  run(gather, {random("src", f32, {0, 8}), ids({0, 1}), random("dst", f32, {2, 8})},
      {{"missing", "skip"}});
}

TEST_F(RowGather, TakesStridesAndAlignments) {
  for (std::int64_t padding : {1, 4, 8}) {
    for (std::int64_t offset : {0, 1, 2}) {
      run(gather, {random("src", bf16, {9, 96}), ids({5, 4, 3, 7})}, {},
          Placement{.row_padding = padding, .offset_elems = offset});
    }
  }
}

TEST_F(RowGather, ConvertsRowsThatAreNotAligned) {
  for (Type table : {bf16, e4m3}) {
    for (std::int64_t offset : {1, 2}) {
      run(embed, {ids({5, 4, -1, 7}), random("table", table, {9, 96})}, {{"out_type", "f32"}},
          Placement{.row_padding = 1, .offset_elems = offset});
    }
  }
}

TEST_F(RowGather, CopiesManyRows) {
  std::vector<double> many(300);
  for (std::size_t i = 0; i < many.size(); ++i)
    many[i] = static_cast<double>(i * 7 % 50);
  run(gather, {random("src", bf16, {50, 40}), ids(many)});
}

TEST_F(RowGather, SharesAVocabularyAmongRanks) {
  Array whole = random("table", bf16, {8, 16});
  Array tokens = ids({0, 3, 4, 7, -1, 8});
  constexpr std::ptrdiff_t kBytesOfRank = 128;
  std::vector<double> sum(96);
  for (int rank = 0; rank < 2; ++rank) {
    Array part = make_array("table", bf16, {4, 16});
    auto begin = whole.bytes.begin() + rank * kBytesOfRank;
    part.bytes.assign(begin, begin + kBytesOfRank);
    Array out = run(embed, {tokens, part}, {{"vocab_start", std::to_string(4 * rank)}}).front();
    std::vector<double> values = to_doubles(out);
    for (std::size_t i = 0; i < sum.size(); ++i)
      sum[i] += values[i];
  }
  EXPECT_EQ(sum, to_doubles(run(embed, {tokens, whole}).front()));
}

TEST_F(RowGather, FindsAddedTokensBehindTheOthers) {
  // Tokens 10 to 14 in rows 0 to 4, padding in 5 and 6, tokens 100 to 102 in rows 7 to 9.
  const test::Options options{
      {"vocab_start", "10"}, {"vocab_count", "5"}, {"added_start", "100"}, {"added_row", "7"}};
  const Array table = random("table", bf16, {10, 72});
  for (Type type : {s32, s64}) {
    const Array asked = ids({9, 10, 14, 15, 16, 17, 99, 100, 102, 103, -1}, type);
    run(embed, {asked, table}, options);
    run(embed, {asked, table}, {{"added_start", "2"}, {"added_row", "7"}, {"scale", "3"}});
    run(embed, {asked, table}, {{"vocab_start", "10"}, {"vocab_count", "5"}});
    test::Options two = options;
    two.emplace_back("added_count", "2");  // row 9 is padding, and the next rank's is token 102
    const std::vector<double> out = to_doubles(run(embed, {asked, table}, two).front());
    for (std::size_t i = 0; i < 72; ++i) {
      EXPECT_NE(out[i + 504], 0);  // of token 7
      EXPECT_EQ(out[i + 576], 0);
    }
  }
}

TEST_F(RowGather, CountsTokensWithoutARow) {
  for (std::int64_t h : {8, 2000}) {
    const std::vector<Array> out =
        run(embed, {ids({1, -1, 9, 3, 4, -7}), random("table", bf16, {4, h}),
                    make_array("bad_ids", u32, {1}, std::vector<double>{40})});
    for (const Array& array : out) {
      if (array.name == "bad_ids") {
        EXPECT_EQ(to_doubles(array).front(), 44);
      }
    }
  }
}

TEST_F(RowGather, ScalesAndConverts) {
  for (Type table : {bf16, f16, f32, e4m3}) {
    for (const char* out : {"bf16", "f16", "f32"}) {
      run(embed, {ids({1, 6, 2, -1}), random("table", table, {7, 72})}, {{"out_type", out}});
      run(embed, {ids({1, 6, 2, -1}), random("table", table, {7, 72})},
          {{"out_type", out}, {"scale", "-45.25"}});
      run(embed,
          {ids({1, 6, 2, -1}), random("table", table, {7, 72}), random("row_scale", f32, {7})},
          {{"out_type", out}});
    }
  }
}

TEST_F(RowGather, AddsRowsOfTypesAndPositions) {
  for (std::int64_t h : {1, 7, 72, 333, 2304}) {
    for (Type index : {s32, s64}) {
      const std::vector<Array> inputs = added(random("table", bf16, {9, h}), bf16, index);
      run(embed, inputs);
      std::vector<Array> one = inputs;
      remove(one, "position_table");
      remove(one, "positions");
      run(embed, one);
      one = inputs;
      remove(one, "type_table");
      remove(one, "token_types");
      run(embed, one, {{"vocab_start", "3"}});
    }
  }
  run_candidates(embed, added(random("table", bf16, {9, 1032}), bf16, s32));
}

TEST_F(RowGather, AddsRowsOfOtherTypes) {
  for (Type table : {bf16, f16, f32, e4m3}) {
    for (Type type : {bf16, f16, f32}) {
      for (const char* out : {"bf16", "f16", "f32"}) {
        std::vector<Array> inputs = added(random("table", table, {9, 72}), type, s64);
        run(embed, inputs, {{"out_type", out}});
        inputs.push_back(random("row_scale", f32, {9}));
        run(embed, inputs, {{"out_type", out}, {"scale", "-45.25"}});
      }
    }
  }
}

TEST_F(RowGather, AddsRowsThatAreNotAligned) {
  for (std::int64_t padding : {1, 4}) {
    for (std::int64_t offset : {0, 1, 2}) {
      run(embed, added(random("table", bf16, {9, 96}), f32, s32), {},
          Placement{.row_padding = padding, .offset_elems = offset});
    }
  }
}

TEST_F(RowGather, AddsTypesBeforePositions) {
  auto row = [](const char* name, double value) {
    return make_array(name, f32, {1, 1}, std::vector<double>{value});
  };
  auto zero = [](const char* name) { return make_array(name, s32, {1}, std::vector<double>{0}); };
  const Array out =
      run(embed, {row("table", 1), zero("ids"), row("type_table", 0x1p30), zero("token_types"),
                  row("position_table", -0x1p30), zero("positions")})
          .front();
  EXPECT_EQ(to_doubles(out).front(), 0);  // 1 + 2^30 is 2^30 in f32
}

TEST_F(RowGather, AddsNothingToMissingRows) {
  std::vector<double> nan(8, NAN);
  const Array out =
      run(embed,
          {random("table", f32, {2, 8}), ids({-1}), make_array("type_table", f32, {1, 8}, nan),
           make_array("token_types", s32, {1}, std::vector<double>{0}),
           make_array("position_table", f32, {1, 8}, nan),
           make_array("positions", s32, {1}, std::vector<double>{0})},
          {{"scale", "-2"}})
          .front();
  for (double element : to_doubles(out)) {
    EXPECT_EQ(element, 0);
    EXPECT_FALSE(std::signbit(element));
  }
}

TEST_F(RowGather, RefusesRowsThatItCannotAdd) {
  std::vector<Array> inputs = added(random("table", bf16, {9, 8}), bf16, s32);
  remove(inputs, "positions");
  EXPECT_EQ(refusal(embed, inputs),
            "embedding: position_table and positions go together; give both, or none");
  Buffer memory(device, 4096);
  auto at = [&](std::uint64_t offset, Type type, std::vector<std::int64_t> shape) {
    return make_view(memory.address() + offset, type, shape);
  };
  auto text = [&](const View& table, const View& indices) {
    RowGatherTensors tensors{at(0, s32, {4}), at(256, bf16, {4, 8}), {}, at(512, bf16, {4, 8})};
    tensors.positions = {table, indices};
    try {
      embedding(stream, tensors);
    } catch (const Error& error) {
      return error.message();
    }
    return std::string("accepted");
  };
  const View table = at(1024, bf16, {3, 8}), four = at(2048, s32, {4});
  EXPECT_EQ(text(at(1024, bf16, {3, 9}), four),
            "embedding: position_table is bf16[3,9]; it must have rows of 8 contiguous elements");
  EXPECT_EQ(text(at(1024, e4m3, {3, 8}), four),
            "embedding: position_table has type e4m3; it must be bf16, f16 or f32");
  EXPECT_EQ(text(table, at(2048, f32, {4})),
            "embedding: positions has type f32; it must be s32 or s64");
  EXPECT_EQ(text(table, at(2048, s32, {5})),
            "embedding: positions is s32[5]; it must have 4 contiguous elements");
  EXPECT_EQ(text(at(512, bf16, {3, 8}), four),
            "embedding: position_table and out overlap; they must be apart");
}

TEST_F(RowGather, RefusesToWriteOverWhatItMultipliesBy) {
  Buffer memory(device, 4096);
  const auto at = [&](int offset, Type type, std::vector<std::int64_t> shape) {
    return make_view(memory.address() + static_cast<std::uint64_t>(offset), type, shape);
  };
  const auto text = [&](const View& out, const View& bad_ids) {
    try {
      embedding(stream, {.ids = at(0, s32, {4}),
                         .table = at(1024, bf16, {3, 8}),
                         .row_scale = at(2048, f32, {3}),
                         .out = out,
                         .bad_ids = bad_ids});
      return std::string("accepted");
    } catch (const Error& error) {
      return error.message();
    }
  };
  EXPECT_EQ(text(at(2048, bf16, {4, 8}), at(3072, u32, {1})),
            "embedding: row_scale and out overlap; they must be apart");
  EXPECT_EQ(text(at(512, bf16, {4, 8}), at(2056, u32, {1})),
            "embedding: row_scale and bad_ids overlap; they must be apart");
}

TEST_F(RowGather, SaturatesEightBits) {
  std::vector<double> out = to_doubles(
      run(embed, {ids({1, 0}), random("table", e4m3, {2, 64})}, {{"scale", "1000"}}).front());
  EXPECT_EQ(*std::max_element(out.begin(), out.end()), 448);
}

TEST_F(RowGather, KeepsMissingRowsPositiveAndFreeOfNan) {
  std::vector<double> nan(8, NAN);
  Array table = make_array("table", f32, {1, 8}, nan);
  std::vector<double> out =
      to_doubles(run(embed, {ids({-1, 0}), table}, {{"scale", "-2"}}).front());
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(out[i], 0);
    EXPECT_FALSE(std::signbit(out[i]));
    EXPECT_TRUE(std::isnan(out[8 + i]));
  }
}

TEST_F(RowGather, LaunchesNothingForNoIndices) {
  run(gather, {random("src", bf16, {4, 8}), ids({})});
}

TEST_F(RowGather, GivesZerosFromAnEmptyTable) {
  run(gather, {random("src", bf16, {0, 8}), ids({0, 1})});
}

TEST_F(RowGather, RefusesWhatItCannotGather) {
  EXPECT_EQ(refusal(gather, {random("src", bf16, {4, 0}), ids({1})}),
            "gather_rows: rows have 0 elements; they must have some");
  EXPECT_EQ(refusal(gather, {random("src", bf16, {4, 8}), ids({1})}, {{"missing", "skip"}}),
            "gather_rows: missing=skip, but dst is not given; it has the rows that stay");
  EXPECT_EQ(refusal(embed, {ids({1}), random("table", e4m3, {4, 8}), random("row_scale", f32, {3})},
                    {{"out_type", "bf16"}}),
            "embedding: row_scale is f32[3]; it must have 4 contiguous elements");
  const std::vector<Array> four_rows{ids({1}), random("table", bf16, {4, 8})};
  EXPECT_EQ(refusal(embed, four_rows, {{"vocab_count", "5"}}),
            "embedding: vocab_count=5; the table has 4 rows");
  EXPECT_EQ(
      refusal(embed, four_rows, {{"added_start", "9"}, {"added_row", "3"}, {"added_count", "2"}}),
      "embedding: added_count=2; the table has 1 rows from added_row on");
  EXPECT_EQ(refusal(embed, four_rows, {{"added_count", "2"}}),
            "embedding: added_count=2 without added_start and added_row");
  EXPECT_EQ(refusal(embed, four_rows, {{"added_start", "9"}}),
            "embedding: added_start and added_row go together; give both, or none");
  EXPECT_EQ(
      refusal(embed, four_rows, {{"vocab_count", "3"}, {"added_start", "9"}, {"added_row", "2"}}),
      "embedding: added_row=2; it must be 3 to 4, behind the other tokens");
  Buffer memory(device, 4096);
  std::int64_t shape[] = {4, 8};
  std::int64_t count[] = {4};
  View a = make_view(memory.address(), f16, shape);
  View four = make_view(memory.address() + 2048, s32, count);
  auto text = [&](const View& src, const View& index, const View& dst) {
    try {
      gather_rows(stream, src, index, dst);
    } catch (const Error& error) {
      return error.message();
    }
    return std::string("accepted");
  };
  EXPECT_EQ(text(a, four, make_view(memory.address() + 1024, bf16, shape)),
            "gather_rows: src has type f16 and dst bf16; a gather does not convert");
  EXPECT_EQ(text(a, make_view(four.address, f32, count), a),
            "gather_rows: ids has type f32; it must be s32 or s64");
  EXPECT_EQ(text(a, four, a), "gather_rows: src and dst overlap; they must be apart");
}

}  // namespace
}  // namespace tilewright
