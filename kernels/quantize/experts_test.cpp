// SPDX-License-Identifier: Apache-2.0
// quantize and dequantize of experts' rows: those behind an expert's number stay as they are and
// unread, and each expert has scales in a layout of its own.
#include "kernels/quantize/experts_fixture.h"
#include "kernels/quantize/quantize.h"

#include <algorithm>
#include <array>
#include <string>

namespace tilewright {
namespace {

using test::kScalesOfGroups;
using test::Options;
using test::Placement;
using test::ScalesOfGroups;

constexpr std::array kAllFormats{"fp8_tensor", "fp8_token", "fp8_block", "fp8_block2d",
                                 "mxfp8",      "mxfp4",     "nvfp4"};
const std::vector<double> kCounts{3, 0, 7, 1};  // of 7 rows

class QuantizedExperts : public test::ExpertsTest {
 protected:
  static std::vector<Array> inputs_of(const Array& x, const std::string& format) {
    std::vector<Array> inputs{x};
    for (const Array& scale : scales_for(format))
      inputs.push_back(scale);
    return inputs;
  }

  /// q and scales; y of them is compared as well.
  std::vector<Array> there_and_back(const Array& x, const std::vector<double>& counts,
                                    const std::string& format, const Options& how = {},
                                    Placement placement = {}) {
    SCOPED_TRACE(format);
    Options options = how;
    options.emplace_back("format", format);
    std::vector<Array> codes =
        run_masked(quantize_operator(), inputs_of(x, format), counts, options, placement);
    std::vector<Array> back = codes;
    if (format == "nvfp4")
      back.push_back(make_array("decode_scale", f32, {1}, std::array{1 / 600.0}));
    Options expand{{"format", format}};
    for (const auto& [name, value] : how) {
      if (name == "scale_layout" || name == "group" || name == "ragged_tail")
        expand.emplace_back(name, value);
    }
    run_masked(dequantize_operator(), back, counts, expand, placement);
    return codes;
  }
};

TEST_F(QuantizedExperts, LeavesRowsAloneThatDoNotCount) {
  for (const char* format : kAllFormats) {
    for (Type type : {bf16, f32})
      there_and_back(rows(type, 7, 512, kCounts), kCounts, format);
  }
}

TEST_F(QuantizedExperts, HaveScalesInTheLayoutEach) {
  for (const ScalesOfGroups& each : kScalesOfGroups) {
    for (std::int64_t t : {7, 130}) {
      std::vector<double> counts = kCounts;
      counts[2] = static_cast<double>(t);
      counts[3] = static_cast<double>(t - 1);
      const Array x = rows(bf16, t, 640, counts);  // 5 groups of 128
      there_and_back(x, counts, each.format,
                     {{"scale_layout", each.layout}, {"scale_type", each.scale_type}});
    }
  }
}

// The blocks of scales of an expert begin at a multiple of 128 rows, which are 512 bytes of each
// four groups.
TEST_F(QuantizedExperts, BeginAtTilesOfTheSwizzle) {
  const std::vector<double> counts{130, 2};
  const std::vector<Array> codes = there_and_back(rows(bf16, 130, 128, counts), counts, "nvfp4",
                                                  {{"scale_layout", "swizzle_128x4"}});
  EXPECT_EQ(codes[1].shape, (std::vector<std::int64_t>{2, 2, 2, 32, 4, 4}));
}

TEST_F(QuantizedExperts, EqualEachExpertAlone) {
  for (const char* format : kAllFormats) {
    const Array all = rows(bf16, 7, 512, {7, 7});
    const std::vector<Array> together = there_and_back(all, {7, 7}, format);
    for (std::size_t e = 0; e < 2; ++e) {
      Array one = make_array("x", bf16, {7, 512});
      const auto begin = all.bytes.begin() + static_cast<std::ptrdiff_t>(e * 7168);
      one.bytes.assign(begin, begin + 7168);
      const std::vector<Array> alone =
          run(quantize_operator(), inputs_of(one, format), {{"format", format}});
      for (std::size_t i = 0; i < alone.size(); ++i) {
        const std::vector<std::byte>& bytes = alone[i].bytes;
        const bool shared = std::string(format) == "fp8_tensor" && i == 1;
        const auto at = static_cast<std::ptrdiff_t>(shared ? 0 : e * bytes.size());
        EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), together[i].bytes.begin() + at))
            << format << ' ' << alone[i].name;
      }
    }
  }
}

TEST_F(QuantizedExperts, ShareTheScaleThatIsFoundInRowsThatCount) {
  for (const std::vector<double>& counts : {kCounts, {0, 0, 0, 0}}) {
    for (std::int64_t h : {63, 512}) {
      run_masked(quantize_operator(), {rows(bf16, 7, h, counts)}, counts,
                 {{"format", "fp8_tensor"}});
    }
  }
}

TEST_F(QuantizedExperts, HaveTilesOfRowsThatCountInPart) {
  const std::vector<double> counts{0, 128, 130, 300};
  for (std::int64_t h : {100, 384})
    there_and_back(rows(bf16, 300, h, counts), counts, "fp8_block2d");
}

TEST_F(QuantizedExperts, TakeRaggedAndLongRows) {
  for (const char* format : {"fp8_block", "mxfp8", "mxfp4", "nvfp4"})
    there_and_back(rows(bf16, 7, 330, kCounts), kCounts, format, {{"ragged_tail", "true"}});
  const std::vector<double> counts{1, 0};
  there_and_back(rows(bf16, 2, 65544, counts), counts, "fp8_token");
}

TEST_F(QuantizedExperts, TakeAlignmentsAndRowsApart) {
  for (std::int64_t padding : {2, 16}) {
    for (std::int64_t offset : {0, 2, 8}) {
      for (const char* format : {"fp8_tensor", "fp8_token", "fp8_block2d", "mxfp4"})
        there_and_back(rows(bf16, 7, 256, kCounts), kCounts, format, {}, {padding, offset});
    }
  }
}

TEST_F(QuantizedExperts, AreRightInEveryConfiguration) {
  const std::vector<double> counts{5, 2};
  for (const char* format : {"fp8_token", "fp8_block2d", "mxfp4"}) {
    std::vector<Array> inputs{rows(bf16, 5, 640, counts), tokens(counts)};
    run_candidates(quantize_operator(), inputs, {{"format", format}});
  }
}

TEST_F(QuantizedExperts, CountClippedGroupsOfRowsThatCount) {
  Array x = random("x", bf16, {3, 5, 320}, 3);
  run_masked(quantize_operator(),
             {x, make_array("encode_scale", f32, {1}, std::array{1500.0}),
              make_array("saturated", u32, {1}, std::array{7.0})},
             {2, 0, 5}, {{"format", "nvfp4"}});
}

TEST_F(QuantizedExperts, MayHaveNoRows) {
  const std::vector<double> none{0, 0};
  for (const char* format : kAllFormats) {
    const std::vector<Array> given = inputs_of(random("x", bf16, {2, 0, 128}), format);
    run_masked(quantize_operator(), given, none, {{"format", format}});
    there_and_back(rows(bf16, 3, 128, none), none, format);
  }
  run_masked(quantize_operator(), {random("x", bf16, {2, 0, 128})}, none,
             {{"format", "fp8_tensor"}});
}

TEST_F(QuantizedExperts, ReadNothingOfRowsThatDoNotCount) {
  constexpr std::int64_t kExperts = 2, kRows = 4, kColumns = 64, kApart = 512;
  Buffer x(device, kExperts * kApart * 2), q(device, kExperts * kApart), n(device, 8),
      s(device, 32);
  const Array first = random("x", bf16, {1, kColumns});
  x.upload(first.bytes, kApart * 2);  // row 0 of expert 1 alone
  n.upload(tokens({0, 1}).bytes);
  q.fill(kUntouched);
  const std::array<std::int64_t, 3> wide{kExperts, kRows, kColumns}, stride{kApart, 96, 1};
  quantize(stream,
           {.x = make_view(x.address(), bf16, wide, stride),
            .scale = {},
            .encode_scale = {},
            .q = make_view(q.address(), e4m3, wide, stride),
            .scales = make_view(s.address(), f32, std::array<std::int64_t, 2>{2, 4}),
            .saturated = {},
            .tokens_per_expert = make_view(n.address(), s32, std::array<std::int64_t, 1>{2})});
  stream.synchronize();
  const std::vector<std::byte> written = download<std::byte>(q);
  const Array alone = run(quantize_operator(), {first}).front();
  EXPECT_TRUE(std::equal(alone.bytes.begin(), alone.bytes.end(), written.begin() + kApart));
  EXPECT_EQ(std::count(written.begin(), written.end(), kUntouched),
            static_cast<std::ptrdiff_t>(written.size() - alone.bytes.size()));
}

TEST_F(QuantizedExperts, AreRefusedWhereTheyDoNotFit) {
  const Operator& op = quantize_operator();
  const Array x = random("x", bf16, {2, 3, 64});
  EXPECT_EQ(refusal(op, {random("x", bf16, {6, 64}), tokens({1, 1})}),
            "quantize: x is bf16[6,64]; with experts it must have the modes [E, T, N]");
  EXPECT_EQ(refusal(op, {x, tokens({1, 1, 1})}),
            "quantize: tokens_per_expert is s32[3]; it must have 2 contiguous elements");
  EXPECT_EQ(refusal(op, {x, tokens({1, 4})}),
            "quantize: tokens_per_expert[1] is 4.000000; it must be 0 to the 3 rows of an expert");
  EXPECT_EQ(refusal(op, {x, tokens({-1, 3})}),
            "quantize: tokens_per_expert[0] is -1.000000; it must be 0 to the 3 rows of an "
            "expert");
  EXPECT_EQ(refusal(op, {random("x", bf16, {2, 3, 96}), tokens({1, 1})}, {{"format", "fp8_block"}}),
            "quantize: rows have 96 elements; fp8_block takes multiples of 128 without "
            "ragged_tail (of each expert)");
  const auto zeros = [](const char* name, Type type, std::vector<std::int64_t> shape) {
    return make_array(name, type, std::move(shape));
  };
  EXPECT_EQ(refusal(dequantize_operator(),
                    {zeros("q", e4m3, {2, 3, 64}), zeros("scales", f32, {2, 2}), tokens({1, 1})}),
            "dequantize: scales is f32[2]; it must have 3 groups of 1 element (of each expert)");
  EXPECT_EQ(refusal(dequantize_operator(),
                    {zeros("q", e4m3, {2, 3, 64}), zeros("scales", f32, {3, 3}), tokens({1, 1})}),
            "dequantize: scales is f32[3,3] and q e4m3[2,3,64]; both must have as many experts");
  EXPECT_EQ(refusal(dequantize_operator(),
                    {zeros("q", e4m3, {6, 64}), zeros("scales", f32, {6}), tokens({1, 1})}),
            "dequantize: q is e4m3[6,64]; with experts it must have the modes [E, T, N]");
}

}  // namespace
}  // namespace tilewright
