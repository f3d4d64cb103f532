// SPDX-License-Identifier: Apache-2.0
// pooling against its float64 reference: modes, masks, odd and long sequences, norms.
#include "kernels/pooling/pooling.h"
#include "operator_fixture.h"

#include <cmath>
#include <limits>

namespace tilewright {
namespace {

using test::OperatorTest;
using test::Placement;

class Pooling : public OperatorTest {
 protected:
  const Operator& op = pooling_operator();

  static Array bounds(std::vector<double> values) {
    return make_array("cu_seqlens", s32, {static_cast<std::int64_t>(values.size())}, values);
  }
  static Array lengths(std::vector<double> values) {
    return make_array("lengths", s32, {static_cast<std::int64_t>(values.size())}, values);
  }
  static std::vector<double> row(const Array& out, std::int64_t b) {
    const std::vector<double> all = to_doubles(out);
    return {all.begin() + b * out.shape[1], all.begin() + (b + 1) * out.shape[1]};
  }

  /// By a function call, which does not see the bounds or lengths of the rows of f32.
  Array pooled(const Array& hidden, const Array& sequences, const PoolingOptions& options) {
    const bool by_lengths = sequences.name == "lengths";
    const std::int64_t count = sequences.shape[0];
    Array out = make_array("out", f32, {by_lengths ? count : count - 1, hidden.shape[1]});
    Buffer from(device, static_cast<std::int64_t>(hidden.bytes.size()));
    Buffer numbers(device, static_cast<std::int64_t>(sequences.bytes.size()));
    Buffer to(device, static_cast<std::int64_t>(out.bytes.size()));
    from.upload(hidden.bytes);
    numbers.upload(sequences.bytes);
    PoolingTensors tensors{.hidden = make_view(from.address(), f32, hidden.shape),
                           .out = make_view(to.address(), f32, out.shape)};
    (by_lengths ? tensors.lengths : tensors.cu_seqlens) =
        make_view(numbers.address(), s32, sequences.shape);
    pooling(stream, tensors, options);
    stream.synchronize();
    to.download(out.bytes);
    return out;
  }
};

TEST_F(Pooling, TakesMeansLastAndFirstRowsOfEveryType) {
  for (const char* mode : {"mean", "last", "cls"}) {
    for (const char* normalize : {"false", "true"}) {
      for (const char* out : {"f32", "as_hidden"}) {
        for (Type type : {bf16, f16, f32}) {
          run(op, {random("hidden", type, {37, 72}), bounds({0, 5, 6, 37})},
              {{"mode", mode}, {"normalize", normalize}, {"out_type", out}});
        }
      }
    }
  }
}

TEST_F(Pooling, IsRightInEveryConfiguration) {
  run_candidates(op, {random("hidden", bf16, {150, 300}), bounds({0, 129, 150})},
                 {{"normalize", "true"}});
}

TEST_F(Pooling, TakesOddWidths) {
  for (std::int64_t h : {1, 7, 63, 257, 2304})
    run(op, {random("hidden", bf16, {9, h}), bounds({0, 9})}, {{"normalize", "true"}});
}

TEST_F(Pooling, TakesRowsThatRegistersCannotHold) {
  for (std::int64_t h : {32769, 32776, 131072}) {
    for (const char* mode : {"mean", "last"}) {
      for (const char* normalize : {"false", "true"}) {
        run(op, {random("hidden", bf16, {3, h}), bounds({0, 2, 3})},
            {{"mode", mode}, {"normalize", normalize}, {"out_type", "as_hidden"}});
      }
    }
    run(op, {random("hidden", f32, {3, h}), bounds({0, 3})}, {{"normalize", "true"}});
  }
}

/// Equal squares would be rounded the same way again and again.
TEST_F(Pooling, GivesUnitVectorsOfLongRows) {
  constexpr std::int64_t kColumns = 262143;
  const Array hidden = make_array("hidden", f32, {1, kColumns},
                                  std::vector<double>(static_cast<std::size_t>(kColumns), 1.1));
  const Array out = run(op, {hidden, bounds({0, 1})}, {{"normalize", "true"}}).front();
  double squares = 0;
  for (double x : row(out, 0))
    squares += x * x;
  EXPECT_NEAR(std::sqrt(squares), 1.0, 0x1p-20);
}

TEST_F(Pooling, CutsRowsBeforeTheNorm) {
  for (const char* mode : {"mean", "last"}) {
    for (const char* dims : {"1", "24", "100"}) {
      run(op, {random("hidden", f16, {12, 100}), bounds({0, 4, 12})},
          {{"mode", mode}, {"dims", dims}, {"normalize", "true"}});
    }
  }
}

TEST_F(Pooling, LeavesOutMaskedRowsAndWhatIsInThem) {
  std::vector<double> values(std::size_t{6} * 8, 1.0), keep{1, 0, 7, 0, 0, 0};
  for (std::size_t j = 0; j < 8; ++j)
    values[8 + j] = NAN;
  for (Type type : {u8, s32}) {
    const Array out = run(op, {make_array("hidden", f32, {6, 8}, values), bounds({0, 4, 6}),
                               make_array("mask", type, {6}, keep)})
                          .front();
    EXPECT_EQ(row(out, 0), std::vector<double>(8, 1.0));
    EXPECT_EQ(row(out, 1), std::vector<double>(8, 0.0)) << "no row is left";
  }
}

/// Up to eight rows are all loaded, and counted where they are the sequence's.
TEST_F(Pooling, TakesMeansOfFewRows) {
  for (std::int64_t t : {1, 3, 8, 9}) {
    const double end = static_cast<double>(t);
    for (Type type : {bf16, f16, f32}) {
      for (const char* out : {"f32", "as_hidden"}) {
        const Array hidden = random("hidden", type, {t, 300});
        run(op, {hidden, bounds({0, end})}, {{"out_type", out}});
        if (t == 1) continue;
        run(op, {hidden, bounds({0, end - 1, end})}, {{"out_type", out}, {"normalize", "true"}});
        run(op, {hidden, lengths({1, end - 1})}, {{"out_type", out}, {"dims", "77"}});
      }
    }
    run(op, {random("hidden", bf16, {t, 301}), bounds({0, end})}, {}, {.row_padding = 3});
    std::vector<double> keep(static_cast<std::size_t>(t), 1);
    keep[0] = 0;
    for (Type type : {u8, s32}) {
      run(op,
          {random("hidden", f32, {t, 8}), bounds({0, end}), make_array("mask", type, {t}, keep)});
    }
  }
}

TEST_F(Pooling, GivesASequenceOfFewRowsTheSameBitsWhereverItBegins) {
  const Array three = random("hidden", f32, {3, 40});
  const Array first = run(op, {three, bounds({0, 3})}).front();
  for (std::int64_t before = 1; before <= 5; ++before) {
    const Array others = random("hidden", f32, {before, 40}, 3, 7);
    Array all = make_array("hidden", f32, {before + 3, 40});
    all.bytes = others.bytes;
    all.bytes.insert(all.bytes.end(), three.bytes.begin(), three.bytes.end());
    const double start = static_cast<double>(before);
    const Array pooled = run(op, {all, bounds({0, start, start + 3})}).front();
    EXPECT_EQ(row(pooled, 1), row(first, 0)) << before;
  }
}

/// A running sum over the batch would lose the small sequence after the large one.
TEST_F(Pooling, KeepsSmallSequencesBesideLargeOnes) {
  std::vector<double> values(std::size_t{64} * 8, 1e4);
  for (std::size_t i = std::size_t{32} * 8; i < values.size(); ++i)
    values[i] = 1e-3;
  const Array out =
      run(op, {make_array("hidden", f32, {64, 8}, values), bounds({0, 32, 64})}).front();
  EXPECT_EQ(row(out, 1), std::vector<double>(8, static_cast<double>(1e-3f)));
}

/// f16 sums would overflow at 66 rows of 1000, f32 ones drift: 20000 times 0.1 is compensated.
TEST_F(Pooling, SumsLongSequencesExactly) {
  constexpr std::int64_t kRows = 20000;
  const Array hidden = make_array("hidden", f32, {kRows, 1},
                                  std::vector<double>(static_cast<std::size_t>(kRows), 0.1));
  const double mean = row(run(op, {hidden, bounds({0, kRows})}).front(), 0)[0];
  EXPECT_NEAR(mean, static_cast<double>(0.1f), 0.1 * 0x1p-22);
  const Array large =
      make_array("hidden", f16, {500, 8}, std::vector<double>(std::size_t{500} * 8, 1000));
  EXPECT_EQ(row(run(op, {large, bounds({0, 500})}, {{"out_type", "as_hidden"}}).front(), 0)[0],
            1000);
}

TEST_F(Pooling, GivesUnitVectors) {
  const Array out =
      run(op, {random("hidden", bf16, {40, 1000}), bounds({0, 7, 40})}, {{"normalize", "true"}})
          .front();
  for (std::int64_t b = 0; b < 2; ++b) {
    double squares = 0;
    for (double x : row(out, b))
      squares += x * x;
    EXPECT_NEAR(std::sqrt(squares), 1.0, 0x1p-20);
  }
}

TEST_F(Pooling, LooksForNoBoundsThatAreAbsent) {
  const Array hidden = random("hidden", bf16, {4, 8});
  const std::vector<Array> inputs{hidden};
  Arguments arguments(op.schema);
  arguments.set("hidden", make_view(1 << 20, bf16, hidden.shape));
  EXPECT_NO_THROW(op.check_contents(arguments, inputs));  // the plan says what is missing
  EXPECT_EQ(refusal(op, inputs),
            "pooling: cu_seqlens and lengths are absent; one of them must be given");
}

TEST_F(Pooling, AllowsForColumnsThatCancel) {
  std::vector<double> values = to_doubles(random("hidden", f32, {64, 8}));
  for (std::size_t i = 0; i < values.size() / 2; ++i)
    values[values.size() / 2 + i] = -values[i] * (1 + 1e-6);
  const Array hidden = make_array("hidden", f32, {64, 8}, values);
  for (const char* normalize : {"false", "true"})
    run(op, {hidden, bounds({0, 64})}, {{"normalize", normalize}});
}

TEST_F(Pooling, CountsHugeNormsAsInfinite) {
  const Array hidden = make_array("hidden", f32, {1, 4}, std::vector<double>(4, 1e20));
  const Array out = run(op, {hidden, bounds({0, 1})}, {{"normalize", "true"}}).front();
  EXPECT_EQ(row(out, 0), std::vector<double>(4, 0));
}

TEST_F(Pooling, CountsNormsAsAtLeastSomething) {
  for (const double x : {1e-20, 1e-14, 1e-11}) {
    const Array hidden = make_array("hidden", f32, {1, 4}, std::vector<double>(4, x));
    const Array out = run(op, {hidden, bounds({0, 1})}, {{"normalize", "true"}}).front();
    EXPECT_NEAR(row(out, 0)[0], x / std::max(2 * x, 1e-12), 1e-6 * x / 1e-12) << x;
  }
}

TEST_F(Pooling, KeepsZerosInfinitiesAndNan) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  std::vector<double> values(std::size_t{3} * 4, 0.0);
  values[4] = kInf;
  values[9] = NAN;
  const std::vector<Array> given{make_array("hidden", f32, {3, 4}, values), bounds({0, 1, 2, 3})};
  const Array plain = run(op, given).front();
  EXPECT_EQ(row(plain, 1)[0], kInf);
  const Array unit = run(op, given, {{"normalize", "true"}}).front();
  EXPECT_EQ(row(unit, 0), std::vector<double>(4, 0.0));
  for (double x : row(unit, 2))
    EXPECT_TRUE(std::isnan(x));
}

/// What was lost beside an infinite sum is not a number.
TEST_F(Pooling, KeepsInfinitiesOfLongSequences) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  std::vector<double> values(std::size_t{300} * 4, 1.0);
  values[0] = kInf;
  values[5] = -kInf;
  values[2] = kInf;
  values[250 * 4 + 2] = -kInf;
  const std::vector<double> means =
      row(run(op, {make_array("hidden", f32, {300, 4}, values), bounds({0, 300})}).front(), 0);
  EXPECT_EQ(means[0], kInf);
  EXPECT_EQ(means[1], -kInf);
  EXPECT_TRUE(std::isnan(means[2]));
  EXPECT_EQ(means[3], 1.0);
}

TEST_F(Pooling, TakesStridesAndAlignments) {
  for (const char* mode : {"mean", "cls"}) {
    for (std::int64_t padding : {1, 8}) {
      for (std::int64_t offset : {0, 1}) {
        run(op, {random("hidden", bf16, {9, 96}), bounds({0, 2, 9})},
            {{"mode", mode}, {"normalize", "true"}},
            Placement{.row_padding = padding, .offset_elems = offset});
      }
    }
  }
}

TEST_F(Pooling, GivesZerosForSequencesWithoutRows) {
  const Array hidden = random("hidden", f32, {3, 72});
  const std::vector<double> zeros(72, 0.0);
  for (PoolingMode mode : {PoolingMode::mean, PoolingMode::last, PoolingMode::cls}) {
    const Array out = pooled(hidden, bounds({0, 0, 3, 3}), {.mode = mode, .normalize = true});
    EXPECT_EQ(row(out, 0), zeros);
    EXPECT_NE(row(out, 1), zeros);
    EXPECT_EQ(row(out, 2), zeros);
  }
}

TEST_F(Pooling, TakesLengthsInPlaceOfStarts) {
  for (const char* mode : {"mean", "last", "cls"}) {
    for (const char* normalize : {"false", "true"}) {
      const test::Options options{
          {"mode", mode}, {"normalize", normalize}, {"out_type", "as_hidden"}};
      const Array hidden = random("hidden", bf16, {40, 72});
      const Array by_lengths = run(op, {hidden, lengths({5, 1, 31})}, options).front();
      EXPECT_EQ(by_lengths.bytes, run(op, {hidden, bounds({0, 5, 6, 37})}, options).front().bytes);
    }
  }
  run_candidates(op, {random("hidden", bf16, {150, 300}), lengths({129, 21})},
                 {{"normalize", "true"}});
}

/// More of them than a block has threads.
TEST_F(Pooling, AddsUpManyLengths) {
  std::vector<double> each;
  double rows = 0;
  for (int b = 0; b < 600; ++b) {
    each.push_back(1 + b % 3);
    rows += each.back();
  }
  const Array hidden = random("hidden", f32, {static_cast<std::int64_t>(rows), 8});
  for (const char* mode : {"mean", "last"})
    run(op, {hidden, lengths(each)}, {{"mode", mode}});
  run_schedules(op, {random("hidden", f32, {9, 2100}), lengths({4, 5})}, {{"mode", "cls"}});
}

/// Those below 0 are empty sequences.
TEST_F(Pooling, GivesZerosForLengthsBelowOne) {
  const Array hidden = random("hidden", f32, {4, 72});
  const std::vector<double> zeros(72, 0.0);
  for (PoolingMode mode : {PoolingMode::mean, PoolingMode::last, PoolingMode::cls}) {
    const Array out = pooled(hidden, lengths({-3, 3, 0, 1}), {.mode = mode});
    EXPECT_EQ(row(out, 0), zeros);
    EXPECT_NE(row(out, 1), zeros);
    EXPECT_EQ(row(out, 2), zeros);
    EXPECT_EQ(row(out, 3), row(hidden, 3));
  }
}

TEST_F(Pooling, LaunchesNothingForNoSequences) {
  run(op, {random("hidden", bf16, {9, 96}), bounds({0})}, {{"normalize", "true"}});
  run(op, {random("hidden", bf16, {9, 96}), lengths({})}, {{"normalize", "true"}});
  for (const char* out : {"f32", "as_hidden"}) {
    run(op, {random("hidden", bf16, {3, 8}), bounds({0})},
        {{"normalize", "true"}, {"out_type", out}});
  }
}

TEST_F(Pooling, RefusesWhatItCannotPool) {
  const Array hidden = random("hidden", bf16, {9, 96});
  EXPECT_EQ(refusal(op, {hidden, bounds({0, 9})}, {{"dims", "97"}}),
            "pooling: dims=97 and hidden is bf16[9,96]; it must be H at most");
  EXPECT_EQ(refusal(op, {hidden, bounds({0, 9}), random("mask", u8, {9})}, {{"mode", "last"}}),
            "pooling: mask is given; only the mode mean takes one");
  EXPECT_EQ(refusal(op, {hidden, bounds({0, 9}), random("mask", u8, {8})}),
            "pooling: mask is u8[8]; it must have 9 contiguous elements");
  EXPECT_EQ(refusal(op, {random("hidden", bf16, {9, 0}), bounds({0, 9})}),
            "pooling: hidden is bf16[9,0]; rows must have elements");
  EXPECT_EQ(refusal(op, {hidden, bounds({0, 10})}),
            "pooling: cu_seqlens[1] is 10; it must be 0 to 9, the tokens");
  EXPECT_EQ(refusal(op, {hidden, bounds({-1, 9})}),
            "pooling: cu_seqlens[0] is -1; it must be 0 to 9, the tokens");
  EXPECT_EQ(refusal(op, {hidden, bounds({0, 4, 4, 9})}),
            "pooling: cu_seqlens[1] and the next one are 4; sequence 1 must have rows");
  EXPECT_EQ(refusal(op, {hidden}),
            "pooling: cu_seqlens and lengths are absent; one of them must be given");
  EXPECT_EQ(refusal(op, {hidden, bounds({0, 9}), lengths({9})}),
            "pooling: cu_seqlens and lengths are both given; one of them must be given");
  EXPECT_EQ(refusal(op, {hidden, lengths({4, 0})}),
            "pooling: lengths[1] is 0; a sequence must have rows");
  EXPECT_EQ(refusal(op, {hidden, lengths({-1, 9})}),
            "pooling: lengths[0] is -1; a sequence must have rows");
  EXPECT_EQ(refusal(op, {hidden, lengths({4, 6})}),
            "pooling: lengths[1] is 6, which makes 10 rows; hidden has 9");
}

}  // namespace
}  // namespace tilewright
