// SPDX-License-Identifier: Apache-2.0
// mxfp8, mxfp4 and nvfp4 against the host's exact codes, and where scale layouts have their bytes.
#include "kernels/quantize/quantize.h"
#include "operator_fixture.h"

#include <bit>
#include <cmath>

namespace tilewright {
namespace {

using test::OperatorTest;
using test::Options;
using test::Placement;

class QuantFormats : public OperatorTest {
 protected:
  const Operator& op = quantize_operator();
  const Operator& back = dequantize_operator();

  static Array one(const char* name, double number) {
    std::vector<double> value{number};
    return make_array(name, f32, {1}, value);
  }
  static std::vector<int> bytes_of(const Array& array) {
    std::vector<int> out;
    for (std::byte b : array.bytes)
      out.push_back(std::to_integer<int>(b));
    return out;
  }
  /// A row of one group that begins with `values`.
  static Array group_of(std::vector<double> values, std::int64_t elems) {
    values.resize(static_cast<std::size_t>(elems));
    return make_array("x", f32, {1, elems}, values);
  }
  struct Result {
    int scale, code;  ///< of the first element
    double back;
  };
  Result first(const std::vector<double>& values, const Options& options) {
    std::vector<Array> out = run(op, {group_of(values, 32)}, options);
    Array y = run(back, out, {{"format", options[0].second}, {"out_type", "f32"}}).front();
    const int byte = bytes_of(out[0]).front();
    return {bytes_of(out[1]).front(), out[0].type == e2m1 ? byte & 15 : byte, to_doubles(y)[0]};
  }
  std::vector<Array> nvfp4(const std::vector<double>& values, double encode_scale) {
    return run(op, {group_of(values, 16), one("encode_scale", encode_scale)},
               {{"format", "nvfp4"}});
  }
};

// The contract's table: scale code, code of the first element, dequantised.
TEST_F(QuantFormats, FollowTheScaleRulesOfTheContract) {
  struct Row {
    const char* format;
    double amax;
    const char* rule;
    int scale, code;
    double back;
  };
  const Row table[] = {
      {"mxfp4", 6.0, "floor", 127, 7, 6},        {"mxfp4", 6.0, "ceil", 127, 7, 6},
      {"mxfp4", 6.0, "even", 127, 7, 6},         {"mxfp4", 6.5, "floor", 127, 7, 6},
      {"mxfp4", 6.5, "ceil", 128, 5, 6},         {"mxfp4", 6.5, "even", 127, 7, 6},
      {"mxfp4", 7.0, "floor", 127, 7, 6},        {"mxfp4", 7.0, "ceil", 128, 6, 8},
      {"mxfp4", 7.0, "even", 128, 6, 8},         {"mxfp4", 7.5, "floor", 127, 7, 6},
      {"mxfp4", 7.5, "ceil", 128, 6, 8},         {"mxfp4", 7.5, "even", 128, 6, 8},
      {"mxfp4", 5.0, "floor", 127, 6, 4},        {"mxfp4", 5.0, "ceil", 127, 6, 4},
      {"mxfp4", 0.0, "even", 0, 0, 0},           {"mxfp4", 0.0, "ceil", 0, 0, 0},
      {"mxfp8", 448.0, "floor", 127, 0x7e, 448}, {"mxfp8", 448.0, "ceil", 127, 0x7e, 448},
      {"mxfp8", 448.0, "even", 127, 0x7e, 448},  {"mxfp8", 449.0, "floor", 127, 0x7e, 448},
      {"mxfp8", 449.0, "ceil", 128, 0x76, 448},  {"mxfp8", 449.0, "even", 127, 0x7e, 448},
      {"mxfp8", 600.0, "floor", 128, 0x79, 576}, {"mxfp8", 600.0, "ceil", 128, 0x79, 576},
      {"mxfp8", 957.0, "floor", 128, 0x7e, 896}, {"mxfp8", 957.0, "ceil", 129, 0x77, 960},
      {"mxfp8", 957.0, "even", 128, 0x7e, 896},  {"mxfp8", 1.0, "floor", 119, 0x78, 1},
      {"mxfp8", 1.0, "ceil", 119, 0x78, 1},      {"mxfp8", 7e-43, "even", 0, 0, 0},
      {"mxfp8", 7e-43, "ceil", 0, 0, 0},
  };
  for (const Row& row : table) {
    SCOPED_TRACE(std::string(row.format) + " " + row.rule + " " + std::to_string(row.amax));
    Result result = first({row.amax}, {{"format", row.format}, {"scale_rule", row.rule}});
    EXPECT_EQ(result.scale, row.scale);
    EXPECT_EQ(result.code, row.code);
    EXPECT_EQ(result.back, row.back);
  }
}

TEST_F(QuantFormats, GiveExactCodesOverTypesRulesAndElements) {
  for (Type type : {bf16, f16, f32}) {
    for (const char* rule : {"ceil", "floor", "even"}) {
      const Array x = random("x", type, {7, 96}, 100);
      run(op, {x}, {{"format", "mxfp4"}, {"scale_rule", rule}});
      for (const char* element : {"e4m3", "e5m2"})
        run(op, {x}, {{"format", "mxfp8"}, {"scale_rule", rule}, {"element", element}});
    }
    for (const char* exact : {"true", "false"}) {
      run(op, {random("x", type, {7, 80}, 3), one("encode_scale", 300)},
          {{"format", "nvfp4"}, {"exact", exact}});
    }
  }
}

/// Groups whose largest magnitudes are beside each power of two times the largest number of an
/// element, and beside powers of two: where a scale steps.
TEST_F(QuantFormats, StepScalesWhereTheQuotientsDo) {
  std::vector<double> values;
  for (int k = -149; k < 128; k += 3) {
    for (float start : {1.0f, 1.5f, 1.75f, 1.875f, 1.9375f}) {
      float value = std::ldexp(start, k);
      for (float beside : {std::nextafter(value, 0.0f), value, std::nextafter(value, INFINITY),
                           std::nextafter(value * 1.0000002f, INFINITY)}) {
        if (!std::isfinite(beside)) continue;
        values.push_back(static_cast<double>(beside));
        values.resize(values.size() + 31);
      }
    }
  }
  const Array x = make_array("x", f32, {static_cast<std::int64_t>(values.size() / 32), 32}, values);
  for (const char* rule : {"ceil", "floor", "even"}) {
    run(op, {x}, {{"format", "mxfp4"}, {"scale_rule", rule}});
    run(op, {x}, {{"format", "mxfp8"}, {"scale_rule", rule}});
    run(op, {x}, {{"format", "mxfp8"}, {"scale_rule", rule}, {"element", "e5m2"}});
  }
}

TEST_F(QuantFormats, ConvertEveryBf16) {
  Array x = make_array("x", bf16, {64, 1024});
  for (std::size_t i = 0; i < 65536; ++i) {  // neighbours differ in the low mantissa bits
    const std::size_t bits = i >> 5 | (i & 31) << 11;
    x.bytes[2 * i] = static_cast<std::byte>(bits & 255);
    x.bytes[2 * i + 1] = static_cast<std::byte>(bits >> 8);
  }
  run(op, {x, one("encode_scale", 26.88)}, {{"format", "nvfp4"}});
  for (std::size_t i = 0; i < 65536; ++i) {  // neighbours are near in value
    x.bytes[2 * i] = static_cast<std::byte>(i & 255);
    x.bytes[2 * i + 1] = static_cast<std::byte>(i >> 8);
  }
  run(op, {x, one("encode_scale", 26.88)}, {{"format", "nvfp4"}});
  run(op, {x}, {{"format", "mxfp4"}});
  run(op, {x}, {{"format", "mxfp8"}});
}

// Every boundary of e2m1 times every scale of e4m3, and the numbers of f32 beside it: a product
// with a reciprocal decides as the rounded quotient does.
TEST_F(QuantFormats, DivideByNvfp4ScalesExactlyAtEveryTie) {
  const float boundaries[] = {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f};
  std::vector<double> values;
  for (std::uint64_t code = 1; code < 0x7f; ++code) {
    const auto scale = static_cast<float>(decode(e4m3, code));
    values.push_back(static_cast<double>(scale * 6.0f));
    for (float boundary : boundaries) {
      const float tie = boundary * scale;
      values.push_back(static_cast<double>(tie));
      values.push_back(-static_cast<double>(boundary < 2 ? std::nextafter(tie, 0.0f)
                                                         : std::nextafter(tie, INFINITY)));
    }
    values.push_back(static_cast<double>(std::nextafter(1.75f * scale, INFINITY)));
  }
  const Array x = make_array("x", f32, {126, 16}, values);
  run(op, {x, one("encode_scale", 1)}, {{"format", "nvfp4"}});
}

// The 8 significands of scales, and several hundred numbers of f32 around each boundary.
TEST_F(QuantFormats, DivideByNvfp4ScalesExactlyBesideTies) {
  constexpr int kEachSide = 450;
  std::vector<double> values;
  const auto push = [&](float scale, float value) {  // the group's largest magnitude comes first
    if (values.size() % 16 == 0) values.push_back(static_cast<double>(scale * 6.0f));
    values.push_back(static_cast<double>(value));
  };
  for (std::uint64_t code = 0x38; code < 0x40; ++code) {
    const auto scale = static_cast<float>(decode(e4m3, code));
    for (float boundary : {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f}) {
      const auto tie = static_cast<std::int32_t>(std::bit_cast<std::uint32_t>(boundary * scale));
      for (std::int32_t i = -kEachSide; i < kEachSide; ++i) {
        const float value = std::bit_cast<float>(static_cast<std::uint32_t>(tie + i));
        push(scale, i % 2 == 0 ? value : -value);
      }
    }
    while (values.size() % 16 != 0)
      values.push_back(0);
  }
  const auto rows = static_cast<std::int64_t>(values.size() / 16);
  run(op, {make_array("x", f32, {rows, 16}, values), one("encode_scale", 1)},
      {{"format", "nvfp4"}});
}

// Largest magnitudes around 6 2^-126, from which on their sixths are normal, and below: what is
// lost of a subnormal sixth is seen under encode scales beyond 2^116 alone.
TEST_F(QuantFormats, RoundSubnormalSixthsAsADivisionDoes) {
  std::vector<double> values;
  for (double units : {0.0, 1.0, 2.0, 3.0, 4.0, 8.0, 9.0, 10.0, 15.0, 21.0, 8191.0, 8193.0,
                       12582909.0, 25165821.0, 50331630.0, 50331642.0, 50331648.0, 50331654.0}) {
    values.push_back(-std::ldexp(units, -149));
    values.push_back(std::ldexp(units, -150));
    values.resize(values.size() + 14);
  }
  const Array x = make_array("x", f32, {static_cast<std::int64_t>(values.size() / 16), 16}, values);
  for (double scale : {0x1p100, 0x1p116, 0x1.8p120, 0x1.fffffep127})
    run(op, {x, one("encode_scale", scale)}, {{"format", "nvfp4"}});
}

// The contract's worked groups of a tensor whose largest magnitude is 100.
TEST_F(QuantFormats, GiveTheContractsNvfp4Groups) {
  const double g = 26.88;
  std::vector<Array> out = nvfp4({3, 1, 0.8, -2.5, 0.1}, g);
  EXPECT_EQ(bytes_of(out[1]), std::vector<int>{0x55});
  EXPECT_EQ(bytes_of(out[0]), (std::vector<int>{0x47, 0xf3, 0, 0, 0, 0, 0, 0}));
  out = nvfp4({0.01, 0.004}, g);
  EXPECT_EQ(bytes_of(out[1]), std::vector<int>{0x13});
  EXPECT_EQ(bytes_of(out[0])[0], 0x57);
  out = nvfp4({0.0001, -0.0001}, g);
  EXPECT_EQ(bytes_of(out[1]), std::vector<int>{0});
  EXPECT_EQ(bytes_of(out[0])[0], 0x80);
  out = nvfp4({100, -50, 17}, g);
  EXPECT_EQ(bytes_of(out[1]), std::vector<int>{0x7e});
  EXPECT_EQ(bytes_of(out[0])[0], 0xd7);
  EXPECT_EQ(bytes_of(out[0])[1], 2);
  Array y = run(back, {out[0], out[1], one("decode_scale", 1 / g)},
                {{"format", "nvfp4"}, {"out_type", "f32"}})
                .front();
  EXPECT_NEAR(to_doubles(y)[1], -50, 1e-5);
}

TEST_F(QuantFormats, SaturateWhereTheEncodeScaleIsStale) {
  std::vector<Array> out = nvfp4({1e30, -1e30, 1e-36, -0.0}, 1e38);  // products are infinite
  EXPECT_EQ(bytes_of(out[1]), std::vector<int>{0x7e});
  EXPECT_EQ(bytes_of(out[0])[0], 0xf7);
  EXPECT_EQ(bytes_of(out[0])[1], 0x80);
}

TEST_F(QuantFormats, MarkGroupsThatAreNotFiniteByTheirScale) {
  for (double bad : {static_cast<double>(NAN), -static_cast<double>(INFINITY)}) {
    std::vector<double> values(64, -1.5);
    values[33] = bad;
    Array x = make_array("x", bf16, {1, 64}, values);
    for (const char* format : {"mxfp8", "mxfp4"}) {
      std::vector<Array> out = run(op, {x}, {{"format", format}});
      EXPECT_EQ(bytes_of(out[1])[1], 255);
      EXPECT_NE(bytes_of(out[1])[0], 255);
      EXPECT_EQ(bytes_of(out[0]).back(), 0);
      Array y = run(back, out, {{"format", format}}).front();
      EXPECT_EQ(to_doubles(y)[0], -1.5);
      EXPECT_TRUE(std::isnan(to_doubles(y)[63]));
    }
    std::vector<Array> out = run(op, {x, one("encode_scale", 100)}, {{"format", "nvfp4"}});
    EXPECT_EQ(bytes_of(out[1])[2], 0x7f);
    EXPECT_EQ(bytes_of(out[0])[16], 0);
  }
}

TEST_F(QuantFormats, PadEveryLayoutOfScales) {
  for (const char* layout : {"packed_ue8m0", "swizzle_128x4", "swizzle_8x4"}) {
    for (auto [t, h] : {std::pair{1, 32}, {4, 160}, {130, 96}, {33, 256}}) {
      Array x = random("x", bf16, {t, h}, 5);
      std::vector<Array> out = run(op, {x}, {{"format", "mxfp8"}, {"scale_layout", layout}});
      run(back, out, {{"format", "mxfp8"}, {"scale_layout", layout}});
      run(op, {x}, {{"format", "mxfp4"}, {"scale_layout", layout}});
      if (std::string(layout) == "packed_ue8m0") continue;
      out = run(op, {x, one("encode_scale", 99)}, {{"format", "nvfp4"}, {"scale_layout", layout}});
      run(back, {out[0], out[1], one("decode_scale", 0.0101)},
          {{"format", "nvfp4"}, {"scale_layout", layout}});
    }
  }
  for (std::int64_t rows : {1, 4, 130}) {
    Array x = random("x", bf16, {rows, 640}, 5);
    for (auto [type, layout] : {std::pair{"f32", "column_tma"}, {"ue8m0", "packed_ue8m0"}}) {
      std::vector<Array> out =
          run(op, {x}, {{"format", "fp8_block"}, {"scale_type", type}, {"scale_layout", layout}});
      run(back, out, {{"format", "fp8_block"}, {"scale_layout", layout}});
    }
  }
}

TEST_F(QuantFormats, SwizzleAsTheContractsOffsets) {
  std::vector<double> values(std::size_t{131} * 192, 1.0);
  for (std::size_t i : {130U * 6 + 5, 127U * 6 + 3, 32U * 6})
    values[32 * i] = 1000;
  std::vector<Array> out = run(op, {make_array("x", bf16, {131, 192}, values)},
                               {{"format", "mxfp8"}, {"scale_layout", "swizzle_128x4"}});
  const std::vector<int> scales = bytes_of(out[1]);
  for (std::size_t at : {4U, 511U, 1569U})
    EXPECT_EQ(scales[at], 129) << at;
  EXPECT_EQ(scales[0], 119);
  EXPECT_EQ(scales[512 + 2], 0) << "padding";
}

TEST_F(QuantFormats, TakeStridesAndAlignments) {
  for (std::int64_t padding : {2, 6, 32}) {
    for (std::int64_t offset : {0, 2, 4, 16}) {
      Placement placement{.row_padding = padding, .offset_elems = offset};
      Array x = random("x", bf16, {5, 64});
      run(op, {x}, {{"format", "mxfp8"}}, placement);
      std::vector<Array> out = run(op, {x}, {{"format", "mxfp4"}}, placement);
      run(back, out, {{"format", "mxfp4"}}, placement);
    }
  }
}

TEST_F(QuantFormats, AreRightInEveryConfiguration) {
  Array x = random("x", bf16, {5, 96}, 4);
  run_candidates(op, {x}, {{"format", "mxfp4"}, {"scale_layout", "swizzle_8x4"}});
  std::vector<Array> out = run(op, {x}, {{"format", "mxfp4"}});
  run_candidates(back, out, {{"format", "mxfp4"}});
}

TEST_F(QuantFormats, ExpandEveryCodeWithEveryScale) {
  Array q = make_array("q", e2m1, {256, 32});
  for (std::size_t i = 0; i < q.bytes.size(); ++i)
    q.bytes[i] = static_cast<std::byte>(i % 16 * 0x21 + 0x10);
  for (const char* format : {"mxfp4", "nvfp4"}) {
    const bool mx = std::string(format) == "mxfp4";
    Array scales = make_array("scales", mx ? ue8m0 : e4m3, {256, mx ? 1 : 2});
    for (std::size_t i = 0; i < scales.bytes.size(); ++i)
      scales.bytes[i] = static_cast<std::byte>(i);
    std::vector<Array> inputs{q, scales};
    if (!mx) inputs.push_back(one("decode_scale", 0x1.234p-5));
    for (const char* out : {"bf16", "f32"})
      run(back, inputs, {{"format", format}, {"out_type", out}});
  }
}

TEST_F(QuantFormats, LaunchNothingForNoRows) {
  run(op, {random("x", bf16, {0, 64})}, {{"format", "mxfp4"}, {"scale_layout", "swizzle_128x4"}});
}

TEST_F(QuantFormats, RefuseWhatTheyCannotQuantise) {
  Array x = random("x", bf16, {4, 64});
  EXPECT_EQ(refusal(op, {random("x", bf16, {4, 48})}, {{"format", "mxfp8"}}),
            "quantize: rows have 48 elements; mxfp8 takes multiples of 32 without ragged_tail");
  EXPECT_EQ(refusal(op, {x}, {{"format", "nvfp4"}}),
            "quantize: encode_scale is absent; nvfp4 takes one f32 number");
  EXPECT_EQ(refusal(op, {x, make_array("encode_scale", bf16, {1}, std::array{1.0})},
                    {{"format", "nvfp4"}}),
            "quantize: 'encode_scale' is bf16[1]; its type must be one of f32");
  EXPECT_EQ(refusal(op, {x, one("encode_scale", -3)}, {{"format", "nvfp4"}}),
            "quantize: encode_scale is -3; it must be above 0");
  EXPECT_EQ(refusal(op, {x, one("encode_scale", 1)}, {{"format", "mxfp4"}}),
            "quantize: encode_scale is given; only nvfp4 takes one");
  EXPECT_EQ(refusal(op, {x}, {{"format", "mxfp4"}, {"scale_layout", "column_tma"}}),
            "quantize: scale_layout=column_tma with mxfp4 and scales of ue8m0; column_tma takes "
            "fp8_block with f32, packed_ue8m0 groups with ue8m0, the swizzles mxfp8, mxfp4 and "
            "nvfp4");
  EXPECT_EQ(refusal(op, {x}, {{"element", "e5m2"}}),
            "quantize: element=e5m2 with fp8_token; it is for mxfp8");
  EXPECT_EQ(refusal(back, {random("q", e2m1, {4, 64}), random("scales", f32, {4, 2})},
                    {{"format", "mxfp4"}}),
            "dequantize: scales has type f32; it must be ue8m0");
  Array scales = make_array("scales", ue8m0, {1, 1, 32, 4});
  EXPECT_EQ(refusal(back, {random("q", e2m1, {4, 64}), scales},
                    {{"format", "mxfp4"}, {"scale_layout", "swizzle_128x4"}}),
            "dequantize: scales is ue8m0[1,1,32,4]; with swizzle_128x4 it must be "
            "ue8m0[1,1,32,4,4]");
}

}  // namespace
}  // namespace tilewright
