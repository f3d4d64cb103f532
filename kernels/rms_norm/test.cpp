// SPDX-License-Identifier: Apache-2.0
// rms_norm against its float64 reference: shapes, types, options, and the contract's hard inputs.
#include "kernels/rms_norm/rms_norm.h"
#include "operator_fixture.h"

#include <array>
#include <cmath>

namespace tilewright {
namespace {

using test::OperatorTest;
using test::Placement;

class RmsNorm : public OperatorTest {
 protected:
  const Operator& op = rms_norm_operator();

  /// y of one f32 row without weights.
  std::vector<double> normalised(std::vector<double> row, const test::Options& options = {}) {
    auto h = static_cast<std::int64_t>(row.size());
    return to_doubles(run(op, {make_array("x", f32, {1, h}, row)}, options).front());
  }
};

TEST_F(RmsNorm, MatchesTheReferenceOverWidths) {
  for (std::int64_t h : {1, 2, 7, 8, 64, 100, 129, 333, 1000, 2048, 3584, 4096, 5000}) {
    run(op, {random("x", bf16, {3, h}, 3), random("w", bf16, {h})});
  }
}

TEST_F(RmsNorm, MatchesTheReferenceOverTypes) {
  for (Type x : {bf16, f16, f32}) {
    for (Type w : {x, f32})
      run(op, {random("x", x, {5, 256}), random("w", w, {256})});
    run(op, {random("x", x, {5, 256})}, {{"out_type", "f32"}});
  }
}

TEST_F(RmsNorm, MatchesTheReferenceOverRowCounts) {
  for (std::int64_t rows : {1, 2, 5, 64, 131}) {
    for (std::int64_t h : {16, 128, 512})
      run(op, {random("x", bf16, {rows, h}), random("w", bf16, {h})});
  }
}

TEST_F(RmsNorm, IsRightInEveryConfiguration) {
  for (std::int64_t h : {100, 2048})
    run_candidates(op, {random("x", bf16, {3, h}), random("w", bf16, {h})});
}

TEST_F(RmsNorm, ReadsLongRowsTwice) {
  run(op, {random("x", bf16, {2, 70000}), random("w", bf16, {70000})});
  run(op, {random("x", f32, {1, 65537})});
}

/// Equal squares would be rounded the same way again and again: 124 units of 2^-24 without
/// compensation, of 28.
TEST_F(RmsNorm, SumsLongRowsOfEqualNumbers) {
  for (std::int64_t h : {1048575, 1048576}) {
    const std::vector<double> values(static_cast<std::size_t>(h), 1.92);
    run(op, {make_array("x", f32, {1, h}, values)});
  }
}

TEST_F(RmsNorm, KeepsInfinityInLongRows) {
  std::vector<double> values(65537, 1.0);
  values[7] = INFINITY;
  const std::vector<double> y = to_doubles(run(op, {make_array("x", f32, {1, 65537}, values)})[0]);
  for (std::size_t i = 0; i < y.size(); ++i)
    EXPECT_TRUE(i == 7 ? std::isnan(y[i]) : y[i] == 0) << i;
}

TEST_F(RmsNorm, TakesStridesAndAlignments) {
  for (std::int64_t padding : {1, 4, 8}) {
    for (std::int64_t offset : {0, 1, 2}) {
      run(op, {random("x", bf16, {9, 200}), random("w", bf16, {200})}, {},
          Placement{.row_padding = padding, .offset_elems = offset});
    }
  }
}

TEST_F(RmsNorm, FoldsOuterModes) {
  run(op, {random("x", f16, {2, 3, 64}), random("w", f16, {64})});
}

/// The heads of Q in a packed tensor [T, heads of Q, K and V, D], in place and out of it.
TEST_F(RmsNorm, TakesHeadsBetweenOthers) {
  constexpr std::int64_t kTokens = 5, kHeads = 3, kAll = 7;
  for (std::int64_t d : {64, 100, 7}) {
    const Array packed = random("x", bf16, {kTokens, kAll, d});
    const std::vector<double> numbers = to_doubles(packed);
    std::vector<double> heads;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      if (i / static_cast<std::size_t>(d) % kAll < kHeads) heads.push_back(numbers[i]);
    }
    const Array expected = run(op, {make_array("x", bf16, {kTokens, kHeads, d}, heads)}).front();
    Buffer memory(device, 1 << 16);
    memory.upload(packed.bytes);
    View x = make_view(memory.address(), bf16, std::array<std::int64_t, 3>{kTokens, kHeads, d});
    x.stride[0] = kAll * d;
    const View apart =
        make_view(memory.address() + 32768, bf16, std::array<std::int64_t, 2>{kTokens * kHeads, d});
    rms_norm(stream, {.x = x, .y = apart});
    rms_norm(stream, {.x = x, .y = x});
    stream.synchronize();
    Array written = expected, all = packed;
    memory.download(written.bytes, 32768);
    memory.download(all.bytes);
    EXPECT_EQ(written.bytes, expected.bytes) << d;
    std::vector<double> in_place;
    const std::vector<double> after = to_doubles(all);
    for (std::size_t i = 0; i < after.size(); ++i) {
      if (i / static_cast<std::size_t>(d) % kAll < kHeads) {
        in_place.push_back(after[i]);
      } else {
        EXPECT_EQ(after[i], numbers[i]) << i;
      }
    }
    EXPECT_EQ(in_place, to_doubles(expected)) << d;
  }
}

TEST_F(RmsNorm, TakesItsOptions) {
  std::vector<Array> inputs{random("x", bf16, {4, 512}), random("w", bf16, {512}, 0.1)};
  run(op, inputs, {{"weight_bias", "1"}, {"eps", "1e-5"}});
  run(op, inputs, {{"cast_before_weight", "true"}});
  run(op, inputs, {{"partial", "128"}});
}

TEST_F(RmsNorm, AnAbsentWeightCountsAsOne) {
  const Array x = random("x", bf16, {4, 512});
  const Array ones = make_array("w", f32, {512}, std::vector<double>(512, 1.0));
  for (const char* bias : {"1", "-0.25"}) {
    for (const char* cast : {"false", "true"}) {
      const test::Options options{
          {"weight_bias", bias}, {"cast_before_weight", cast}, {"out_type", "f32"}};
      EXPECT_EQ(run(op, {x}, options).front().bytes, run(op, {x, ones}, options).front().bytes);
    }
  }
}

TEST_F(RmsNorm, NormalisesInPlace) {
  Array x = random("x", bf16, {4, 256});
  Array expected = run(op, {x}).front();
  Buffer memory(device, static_cast<std::int64_t>(x.bytes.size()));
  memory.upload(x.bytes);
  std::int64_t shape[] = {4, 256};
  View view = make_view(memory.address(), bf16, shape);
  rms_norm(stream, {view, std::nullopt, view, std::nullopt});
  stream.synchronize();
  EXPECT_EQ(download<std::byte>(memory), expected.bytes);
}

TEST_F(RmsNorm, GivesARowTheSameBitsAloneAndAmongOthers) {
  Array all = random("x", bf16, {70, 1024}, 2);
  Array together = run(op, {all}).front();
  for (std::int64_t row : {0, 33, 69}) {
    Array one = make_array("x", bf16, {1, 1024});
    auto begin = all.bytes.begin() + row * 2048;
    one.bytes.assign(begin, begin + 2048);
    Array alone = run(op, {one}).front();
    EXPECT_TRUE(
        std::equal(alone.bytes.begin(), alone.bytes.end(), together.bytes.begin() + row * 2048))
        << "row " << row;
  }
}

TEST_F(RmsNorm, KeepsZerosAndTheirSigns) {
  std::vector<double> y = normalised({0.0, -0.0, 0.0, 0.0});
  EXPECT_EQ(y, (std::vector<double>{0.0, 0.0, 0.0, 0.0}));
  EXPECT_TRUE(std::signbit(y[1]));
}

TEST_F(RmsNorm, SpreadsNanOverItsRow) {
  for (double y : normalised({1.0, NAN, 2.0, 3.0}))
    EXPECT_TRUE(std::isnan(y));
}

TEST_F(RmsNorm, GivesZerosAndNanForInfinity) {
  std::vector<double> y = normalised({1.0, INFINITY, -2.0, 3.0});
  EXPECT_EQ(y[0], 0.0);
  EXPECT_TRUE(std::isnan(y[1]));
  EXPECT_EQ(y[2], 0.0);
}

TEST_F(RmsNorm, GivesZerosWhereTheSumOverflows) {
  for (double y : normalised({3e38, 3e38, 1.0, 2.0}))
    EXPECT_EQ(y, 0.0);
}

TEST_F(RmsNorm, KeepsSubnormalInputs) {
  std::vector<double> y = normalised({1e-40, -1e-40, 0, 0});
  EXPECT_NEAR(y[0], 1e-37, 1e-39);
  EXPECT_NEAR(y[1], -1e-37, 1e-39);
}

TEST_F(RmsNorm, GivesNanForZerosWithoutEps) {
  for (double y : normalised({0, 0, 0, 0}, {{"eps", "0"}}))
    EXPECT_TRUE(std::isnan(y));
}

TEST_F(RmsNorm, LaunchesNothingForNoRows) { run(op, {random("x", bf16, {0, 64})}); }

TEST_F(RmsNorm, RefusesAddressesThatNoKernelCanRead) {
  Buffer memory(device, 1024);
  const auto text = [&](std::uint64_t x) {
    const std::array<std::int64_t, 2> shape{4, 8};
    try {
      rms_norm(stream,
               {.x = make_view(x, f32, shape), .y = make_view(memory.address() + 512, f32, shape)});
      return std::string("accepted");
    } catch (const Error& error) {
      return error.message();
    }
  };
  EXPECT_EQ(text(0), "launch with f32[4,8]: its address is 0; give it memory of the device");
  EXPECT_EQ(
      text(memory.address() + 2),
      "launch with f32[4,8]: its address is no multiple of the element's 4 bytes; give it one "
      "that is");
}

TEST_F(RmsNorm, AllowsForProductsThatAreSubnormal) {
  std::vector<double> values = to_doubles(random("x", f32, {8, 256}));
  for (double& value : values)
    value *= 1e-40;
  run(op, {make_array("x", f32, {8, 256}, values), random("w", f32, {256}, 30)}, {{"eps", "1e-5"}});
}

TEST_F(RmsNorm, RefusesRowsThatAreNotContiguous) {
  Buffer memory(device, 8192);
  memory.fill(std::byte{0});
  const auto at = [&](std::uint64_t offset, std::int64_t last_stride) {
    View view = make_view(memory.address() + offset, bf16, std::array<std::int64_t, 2>{4, 8});
    view.stride = {32, last_stride};
    return view;
  };
  const auto text = [&](std::int64_t of_x, std::int64_t of_y) {
    try {
      rms_norm(stream, {.x = at(0, of_x), .y = at(4096, of_y)});
      return std::string("accepted");
    } catch (const Error& error) {
      return error.message();
    }
  };
  EXPECT_EQ(text(2, 1), "rms_norm: x bf16[4,8]:[32,2] has 2 as its last stride; it must be 1");
  EXPECT_EQ(text(1, 3), "rms_norm: y bf16[4,8]:[32,3] has 3 as its last stride; it must be 1");
  EXPECT_EQ(text(1, 1), "accepted");
}

TEST_F(RmsNorm, RefusesWhatItCannotNormalise) {
  EXPECT_EQ(refusal(op, {random("x", bf16, {4, 64}), random("w", bf16, {63})}),
            "rms_norm: w is bf16[63]; it must have 64 contiguous elements");
  EXPECT_EQ(refusal(op, {random("x", bf16, {4, 64})}, {{"partial", "65"}}),
            "rms_norm: partial=65; it must be 0 or at most the row's 64 elements");
  EXPECT_EQ(refusal(op, {random("x", bf16, {4, 64}), random("w", f16, {64})}),
            "rms_norm: w has type f16; it must be x's type bf16 or f32");
  EXPECT_EQ(refusal(op, {random("x", bf16, {4, 0})}),
            "rms_norm: x has rows of 0 elements; they must have 1 to 1048576");
}

}  // namespace
}  // namespace tilewright
