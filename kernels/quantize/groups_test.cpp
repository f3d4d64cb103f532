// SPDX-License-Identifier: Apache-2.0
// Groups of other sizes, rows that end in a part of a group, and bounds and powers of scales: of
// quantize, dequantize, and operators that quantise what they compute.
#include "kernels/gated_activation/gated_activation.h"
#include "kernels/layer_norm/layer_norm.h"
#include "kernels/quantize/quant_output_fixture.h"
#include "kernels/rms_norm/rms_norm.h"

#include <array>
#include <cmath>
#include <string>
#include <utility>

namespace tilewright {
namespace {

using test::kScalesOfGroups;
using test::Options;
using test::Placement;
using test::ScalesOfGroups;
using test::Work;

constexpr const char* kFormatsOfGroups[] = {"fp8_block", "mxfp8", "mxfp4", "nvfp4"};

class QuantGroups : public test::QuantOutputTest {
 protected:
  const Operator& op = quantize_operator();
  const Operator& back = dequantize_operator();

  /// Quantises, and expands what comes out.
  std::vector<Array> there_and_back(const Array& x, const Options& options, const Options& of_both,
                                    Placement placement = {}) {
    std::string format;
    for (const auto& [name, value] : of_both) {
      if (name == "format") format = value;
    }
    std::vector<Array> inputs{x};
    for (const Array& scale : scales_for(format))
      inputs.push_back(scale);
    Options all = of_both;
    all.insert(all.end(), options.begin(), options.end());
    std::vector<Array> codes = run(op, inputs, all, placement);
    std::vector<Array> given = codes;
    if (format == "nvfp4")
      given.push_back(make_array("decode_scale", f32, {1}, std::array{1 / 600.0}));
    run(back, given, of_both, placement);
    return codes;
  }
  static Work layer(std::int64_t t, std::int64_t h, Type type = bf16) {
    return {layer_norm_operator(),
            {random("x", type, {t, h}, 3), random("w", type, {h}, 1, 2),
             random("bias", type, {h}, 1, 3)}};
  }
};

TEST_F(QuantGroups, TakeEverySizeOfTheContract) {
  for (const char* group : {"16", "32", "64", "128", "256"}) {
    for (Type type : {bf16, f32}) {
      const Array x = random("x", type, {5, 768}, 30);
      there_and_back(x, {}, {{"format", "fp8_block"}, {"group", group}});
      there_and_back(x, {{"scale_type", "ue8m0"}},
                     {{"format", "fp8_block"}, {"group", group}, {"scale_layout", "packed_ue8m0"}});
    }
    if (group == std::string("256")) continue;
    check(layer(5, 768), "fp8_block", {{"group", group}});
    check({silu_and_mul_operator(), {random("x", f16, {5, 1536}, 3)}}, "fp8_block",
          {{"group", group}, {"scale_layout", "column_tma"}});
  }
}

TEST_F(QuantGroups, EndInAPartWhereAsked) {
  const Options ragged{{"ragged_tail", "true"}};
  for (const char* format : kFormatsOfGroups) {
    for (std::int64_t h : {2, 30, 100, 136, 2880}) {
      for (Type type : {bf16, f32}) {
        Options both = ragged;
        both.emplace_back("format", format);
        there_and_back(random("x", type, {3, h}, 30), {}, both);
      }
    }
  }
  for (const char* format : {"fp8_block", "mxfp8"}) {
    for (std::int64_t h : {1, 7, 63, 129, 2881}) {
      there_and_back(random("x", bf16, {3, h}, 30), {},
                     {{"ragged_tail", "true"}, {"format", format}},
                     Placement{.row_padding = 3, .offset_elems = 1});
    }
  }
}

TEST_F(QuantGroups, HaveAScaleOfTheirOwnInTheTail) {
  std::vector<double> values(160, 448.0);
  for (std::size_t i = 128; i < 160; ++i)
    values[i] = i == 150 ? -896.0 : 1.0;
  const std::vector<Array> out = run(op, {make_array("x", bf16, {1, 160}, values)},
                                     {{"format", "fp8_block"}, {"ragged_tail", "true"}});
  EXPECT_EQ(out[1].shape, (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(to_doubles(out[1]), (std::vector<double>{1, 2}));
  EXPECT_EQ(to_doubles(out[0])[159], 0.5);
}

TEST_F(QuantGroups, PadTheScalesOfRaggedRows) {
  for (const ScalesOfGroups& each : kScalesOfGroups) {
    for (std::int64_t t : {1, 130}) {
      const Options options{{"scale_layout", each.layout}, {"ragged_tail", "true"}};
      Options coding = options;
      coding.emplace_back("scale_type", each.scale_type);
      Options both = options;
      both.emplace_back("format", each.format);
      const Options type{{"scale_type", each.scale_type}};
      const bool fp8 = each.format == std::string("fp8_block");
      there_and_back(random("x", bf16, {t, 200}, 5), fp8 ? type : Options{}, both);
      check(layer(t, 200), each.format, coding);
    }
  }
}

TEST_F(QuantGroups, EndInAPartOfOutputsToo) {
  const Options ragged{{"ragged_tail", "true"}};
  for (const char* format : kFormatsOfGroups) {
    for (std::int64_t h : {4, 60, 100, 136, 2880}) {
      check(layer(3, h), format, ragged);
      check({silu_and_mul_operator(), {random("x", bf16, {3, 2 * h}, 3)}}, format, ragged);
    }
    check(layer(2, 392, f32), format, ragged);
    check(layer(1, 65700), format, ragged);
  }
  run(relu2_operator(), {random("x", bf16, {2100, 504}, 3)},
      {{"quant", "fp8_block"}, {"ragged_tail", "true"}});  // enough elements for longer accesses
}

TEST_F(QuantGroups, AreRightInEveryConfiguration) {
  const Options ragged{{"format", "fp8_block"}, {"ragged_tail", "true"}};
  run_candidates(op, {random("x", bf16, {5, 328}, 4)}, ragged);
  for (const char* format : {"fp8_block", "mxfp4"}) {
    const Options options{{"quant", format}, {"ragged_tail", "true"}};
    run_candidates(layer_norm_operator(), layer(5, 328).inputs, options);
    run_candidates(silu_and_mul_operator(), {random("x", bf16, {5, 656})}, options);
  }
}

TEST_F(QuantGroups, DivideByPowersOfTwoInF32) {
  std::vector<double> values(256, 1.0);
  values[3] = 449;
  values[200] = 448;
  const std::vector<Array> out =
      run(op, {make_array("x", f32, {2, 128}, values)}, {{"pow2_scale", "true"}});
  EXPECT_EQ(to_doubles(out[1]), (std::vector<double>{2, 1}));
  for (const char* format : {"fp8_token", "fp8_block", "fp8_block2d"}) {
    for (double size : {1e-30, 1.0, 1e30})
      run(op, {random("x", f32, {5, 256}, size)}, {{"format", format}, {"pow2_scale", "true"}});
  }
  check(layer(3, 256), "fp8_token", {{"pow2_scale", "true"}});
  check(layer(3, 256), "fp8_block", {{"pow2_scale", "true"}, {"scale_layout", "column_tma"}});
}

/// The scales of ue8m0, as numbers.
TEST_F(QuantGroups, HaveTheSameCodesUnderPowersOfTwoOfEitherType) {
  for (const char* format : {"fp8_token", "fp8_block"}) {
    const Array x = random("x", bf16, {4, 384}, 100);
    const std::vector<Array> wide = run(op, {x}, {{"format", format}, {"pow2_scale", "true"}});
    const std::vector<Array> bytes = run(op, {x}, {{"format", format}, {"scale_type", "ue8m0"}});
    EXPECT_EQ(wide[0].bytes, bytes[0].bytes);
    EXPECT_EQ(to_doubles(wide[1]), to_doubles(bytes[1]));
  }
}

TEST_F(QuantGroups, BoundTheScaleOfAToken) {
  std::vector<double> values(64, 1.0);
  values[3] = 1000;
  values[40] = 2;
  const std::vector<Array> out =
      run(op, {make_array("x", bf16, {2, 32}, values)}, {{"scale_ub", "448"}});
  EXPECT_EQ(to_doubles(out[1])[0], 1);
  EXPECT_EQ(to_doubles(out[0])[3], 448);
  EXPECT_EQ(to_doubles(out[1])[1], static_cast<double>(2.0f / 448.0f));
  run(op, {random("x", bf16, {3, 9001}, 9)}, {{"scale_ub", "12.5"}, {"pow2_scale", "true"}});
  check(layer(3, 256), "fp8_token", {{"scale_ub", "1.5"}});
  check({silu_and_mul_operator(), {random("x", bf16, {3, 512}, 3)}}, "fp8_token",
        {{"scale_ub", "0.5"}});
}

TEST_F(QuantGroups, SaturateUnderABound) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  for (const Type type : {f32, bf16, f16}) {
    const double large = type == f16 ? 60000 : 3e38;
    const Array x = make_array("x", type, {1, 6}, std::array{1.0, -kInf, kInf, large, -large, 0.0});
    for (const char* bound : {"1", "1e-3", "1e33"}) {
      const std::vector<Array> out = run(op, {x}, {{"scale_ub", bound}});
      EXPECT_EQ(to_doubles(out[0])[1], -448) << bound;
      EXPECT_EQ(to_doubles(out[0])[2], 448) << bound;
      run(op, {x}, {{"scale_ub", bound}, {"pow2_scale", "true"}});
      run(relu2_operator(), {x}, {{"quant", "fp8_token"}, {"scale_ub", bound}});
    }
  }
}

TEST_F(QuantGroups, KeepNanUnderABound) {
  std::vector<double> values(32, 1.0);
  values[3] = NAN;
  const std::vector<Array> out =
      run(op, {make_array("x", f32, {1, 32}, values)}, {{"scale_ub", "448"}});
  EXPECT_TRUE(std::isnan(to_doubles(out[1])[0]));
}

TEST_F(QuantGroups, RefuseWhatTheyDoNotTake) {
  const Array x = random("x", bf16, {4, 100});
  struct Row {
    Options options;
    const char* message;
  };
  const Row rows[] = {
      {{{"format", "fp8_block"}, {"group", "48"}},
       "quantize: group=48; it must be 16, 32, 64, 128 or 256"},
      {{{"group", "64"}}, "quantize: group=64 with fp8_token; it is for fp8_block"},
      {{{"ragged_tail", "true"}},
       "quantize: ragged_tail=true with fp8_token; it is for fp8_block, mxfp8, mxfp4 and nvfp4"},
      {{{"format", "mxfp8"}, {"pow2_scale", "true"}},
       "quantize: pow2_scale=true with mxfp8; it is for fp8_token, fp8_block and fp8_block2d"},
      {{{"scale_type", "ue8m0"}, {"pow2_scale", "true"}},
       "quantize: pow2_scale=true with scale_type=ue8m0; those are powers of two"},
      {{{"format", "mxfp8"}, {"scale_ub", "3"}},
       "quantize: scale_ub=3 with mxfp8; it is for fp8_token"},
      {{{"scale_ub", "0"}}, "quantize: scale_ub=0; it must be above 0"},
  };
  for (const Row& row : rows)
    EXPECT_EQ(refusal(op, {x}, row.options), row.message);
  EXPECT_EQ(
      refusal(op, {random("x", bf16, {4, 33})}, {{"format", "mxfp4"}, {"ragged_tail", "true"}}),
      "quantize: rows have 33 elements; those of e2m1 must have an even number");
  EXPECT_EQ(refusal(rms_norm_operator(), {random("x", bf16, {4, 130})},
                    {{"quant", "fp8_block"}, {"ragged_tail", "true"}}),
            "rms_norm: rows have 130 elements; outputs in groups of 128 have multiples of 4");
  EXPECT_EQ(refusal(rms_norm_operator(), {random("x", bf16, {4, 512})},
                    {{"quant", "fp8_block"}, {"group", "256"}}),
            "rms_norm: group=256; outputs are quantised in groups of 128 at most");
  EXPECT_EQ(
      refusal(back, {random("q", e4m3, {4, 64}), random("scales", f32, {4})}, {{"group", "64"}}),
      "dequantize: group=64 with fp8_token; it is for fp8_block");
}

}  // namespace
}  // namespace tilewright
