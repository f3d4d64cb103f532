// SPDX-License-Identifier: Apache-2.0
// quantize against the host's exact codes, and dequantize against float64.
#include "kernels/quantize/quantize.h"
#include "operator_fixture.h"

#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <utility>

namespace tilewright {
namespace {

using test::OperatorTest;
using test::Placement;

class Quantize : public OperatorTest {
 protected:
  const Operator& op = quantize_operator();
  const Operator& back = dequantize_operator();

  static Array one(double scale) {
    std::vector<double> value{scale};
    return make_array("scale", f32, {1}, value);
  }
  static std::vector<int> codes(const Array& q) {
    std::vector<int> out;
    for (std::byte b : q.bytes)
      out.push_back(std::to_integer<int>(b));
    return out;
  }
};

TEST_F(Quantize, GivesExactCodesOverWidths) {
  for (std::int64_t h : {1, 7, 8, 63, 96, 128, 1234, 2880, 7168})
    run(op, {random("x", bf16, {3, h}, 5)}, {{"format", "fp8_token"}});
  for (std::int64_t h : {128, 256, 1024, 2304, 7168})
    run(op, {random("x", bf16, {3, h}, 5)}, {{"format", "fp8_block"}});
}

TEST_F(Quantize, ReadsRowsTwiceThatRegistersCannotHold) {
  for (std::int64_t h : {8193, 65544, 65537, 131072}) {
    for (const char* scale : {"f32", "ue8m0"})
      run(op, {random("x", bf16, {2, h}, 5)}, {{"scale_type", scale}});
  }
  for (Type type : {f16, f32}) {
    run(op, {random("x", type, {1, 65538}, 5)}, {{"exact", "false"}},
        Placement{.row_padding = 3, .offset_elems = 1});
  }
}

TEST_F(Quantize, FindsTheLargestWhereverItIsInALongRow) {
  for (std::size_t at : {0U, 8192U, 24575U, 39999U, 40000U}) {
    std::vector<double> row(40001, 0.5);
    row[at] = -7;
    const Array scales = run(op, {make_array("x", f32, {1, 40001}, row)}).back();
    EXPECT_EQ(to_doubles(scales).front(), static_cast<double>(7.0f / 448.0f)) << at;
    row[at] = std::numeric_limits<double>::quiet_NaN();
    const Array q = run(op, {make_array("x", f32, {1, 40001}, row)}).front();
    EXPECT_EQ(codes(q), std::vector<int>(40001, 0x7f)) << at;
  }
}

TEST_F(Quantize, CutsLongRowsUnderOneScale) {
  const test::Options whole{{"format", "fp8_tensor"}};
  for (std::int64_t h : {8193, 10001, 66000}) {
    for (std::int64_t padding : {0, 3}) {
      const Placement placement{.row_padding = padding};
      run(op, {random("x", bf16, {3, h}, 5), one(0.01)}, whole, placement);
      run(op, {random("x", bf16, {3, h}, 5)}, whole, placement);
    }
  }
}

TEST_F(Quantize, GivesExactCodesOverTypesAndScales) {
  for (Type type : {bf16, f16, f32}) {
    for (const char* format : {"fp8_token", "fp8_block"}) {
      for (const char* scale : {"f32", "ue8m0"}) {
        for (const char* exact : {"true", "false"}) {
          run(op, {random("x", type, {5, 384}, 100)},
              {{"format", format}, {"scale_type", scale}, {"exact", exact}});
        }
      }
    }
  }
}

TEST_F(Quantize, GivesExactCodesOverRowCounts) {
  for (std::int64_t rows : {1, 2, 31, 130}) {
    for (const char* format : {"fp8_token", "fp8_block"})
      run(op, {random("x", f16, {rows, 128})}, {{"format", format}});
  }
}

TEST_F(Quantize, IsRightInEveryConfiguration) {
  run_candidates(op, {random("x", bf16, {5, 896}, 4)});
  run_candidates(op, {random("x", bf16, {5, 256}, 4)}, {{"format", "fp8_block"}});
  run_candidates(op, {random("x", bf16, {130, 264}, 4)}, {{"format", "fp8_block2d"}});
}

TEST_F(Quantize, ConvertsEveryBf16WithAGivenScale) {
  Array x = make_array("x", bf16, {64, 1024});
  for (std::size_t i = 0; i < 65536; ++i) {
    x.bytes[2 * i] = static_cast<std::byte>(i & 255);
    x.bytes[2 * i + 1] = static_cast<std::byte>(i >> 8);
  }
  run(op, {x, one(1)}, {{"format", "fp8_tensor"}});
  run(op, {x, one(0.3)}, {{"format", "fp8_tensor"}});
}

TEST_F(Quantize, TakesStridesAndAlignments) {
  for (std::int64_t padding : {1, 4, 16}) {
    for (std::int64_t offset : {0, 1, 2, 8}) {
      Placement placement{.row_padding = padding, .offset_elems = offset};
      run(op, {random("x", bf16, {5, 256})}, {{"format", "fp8_block"}}, placement);
      run(op, {random("x", bf16, {5, 96})}, {{"format", "fp8_token"}}, placement);
      run(back, {random("q", e4m3, {5, 96}), random("scales", f32, {5})}, {}, placement);
    }
  }
}

TEST_F(Quantize, SaturatesAndKeepsNanWithAGivenScale) {
  using Limits = std::numeric_limits<double>;
  std::vector<double> values{
      0.0, -0.0, 464, 1e9, Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(), 0x1p-10};
  Array x = make_array("x", f32, {1, 8}, values);
  EXPECT_EQ(codes(run(op, {x, one(1)}, {{"format", "fp8_tensor"}}).front()),
            (std::vector<int>{0, 0x80, 0x7e, 0x7e, 0x7e, 0xfe, 0x7f, 0}));
}

TEST_F(Quantize, GivesZerosTheFloorsScale) {
  std::vector<Array> out = run(op, {make_array("x", bf16, {1, 128})}, {{"format", "fp8_block"}});
  EXPECT_EQ(to_doubles(out[1]).front(), static_cast<double>(1e-10f / 448.0f));
  std::vector<Array> power = run(op, {make_array("x", bf16, {1, 128})},
                                 {{"format", "fp8_block"}, {"scale_type", "ue8m0"}});
  EXPECT_EQ(codes(power[1]).front(), 85);  // 2^-42
}

TEST_F(Quantize, SpreadsNanOverItsGroupOnly) {
  std::vector<double> values(256, 1.0);
  values[5] = NAN;
  for (const char* scale : {"f32", "ue8m0"}) {
    std::vector<Array> out = run(op, {make_array("x", bf16, {1, 256}, values)},
                                 {{"format", "fp8_block"}, {"scale_type", scale}});
    EXPECT_EQ(codes(out[0])[0], 0x7f);
    EXPECT_TRUE(std::isnan(to_doubles(out[1])[0]));
    EXPECT_FALSE(std::isnan(to_doubles(out[1])[1]));
  }
}

TEST_F(Quantize, GivesZeroAndNanForInfinity) {
  std::vector<double> values(8, 1.0);
  values[2] = -static_cast<double>(INFINITY);
  std::vector<int> q = codes(run(op, {make_array("x", f32, {1, 8}, values)}).front());
  EXPECT_EQ(q[0], 0);
  EXPECT_EQ(q[2], 0x7f);
}

TEST_F(Quantize, ExpandsEveryCodeInEveryFormat) {
  Array q = make_array("q", e4m3, {2, 128});
  for (std::size_t i = 0; i < 256; ++i)
    q.bytes[i] = static_cast<std::byte>(i);
  for (const char* out : {"bf16", "f16", "f32"}) {
    for (Type scale : {f32, ue8m0}) {
      std::vector<double> two{0x1p-127, 4};
      run(back, {q, make_array("scales", scale, {2}, two)}, {{"out_type", out}});
      run(back, {q, make_array("scales", scale, {2, 1}, two)},
          {{"out_type", out}, {"format", "fp8_block"}});
      run(back, {q, make_array("scales", scale, {1}, std::span(two).first(1))},
          {{"out_type", out}, {"format", "fp8_tensor"}});
    }
  }
}

TEST_F(Quantize, ExpandsInEveryConfiguration) {
  const std::vector<Array> packed =
      run(op, {random("x", bf16, {3, 2048})}, {{"format", "fp8_block"}});
  run_candidates(back, packed, {{"format", "fp8_block"}});
}

// One correction of a quotient would leave some a unit off, which a code of 4 bits seldom shows.
TEST_F(Quantize, DividesAsExactlyWithScalesOfAllSizes) {
  for (double size : {1e-20, 1e-6, 1.0, 1e20, 1e36})
    run(op, {random("x", f32, {16, 1024}, size)}, {{"floor", "1e-24"}});
  run(op, {random("x", f32, {4, 1024}, 1e-29)}, {{"floor", "1e-30"}});
}

TEST_F(Quantize, RoundTripsWithinHalfAStep) {
  Array x = random("x", f32, {4, 256}, 3);
  std::vector<Array> out = run(op, {x}, {{"format", "fp8_block"}});
  Array y = run(back, out, {{"format", "fp8_block"}, {"out_type", "f32"}}).front();
  std::vector<double> before = to_doubles(x);
  std::vector<double> after = to_doubles(y);
  std::vector<double> scales = to_doubles(out[1]);
  for (std::size_t i = 0; i < before.size(); ++i) {
    double half_step = std::fmax(std::fabs(before[i]) * 0x1p-4, scales[i / 128] * 0x1p-10);
    EXPECT_LE(std::fabs(after[i] - before[i]), half_step * (1 + 0x1p-20)) << i;
  }
}

TEST_F(Quantize, ScalesTilesOfRowsAndColumns) {
  const test::Options tiles{{"format", "fp8_block2d"}};
  for (Type type : {bf16, f32}) {
    for (auto [t, h] : {std::pair{1, 1}, {130, 72}, {127, 576}, {256, 100}}) {
      run(op, {random("x", type, {t, h}, 50)}, tiles,
          {.row_padding = h % 3, .offset_elems = h % 2});
    }
  }
  for (const char* scale : {"f32", "ue8m0"}) {
    for (const char* exact : {"true", "false"}) {
      const std::vector<Array> out = run(op, {random("x", f16, {2, 70, 264}, 9)},
                                         {tiles[0], {"scale_type", scale}, {"exact", exact}});
      run(back, out, tiles);
    }
  }
  constexpr std::size_t kRowsOfTiles = 129, kElemsOfRow = 256;
  std::vector<double> values(kRowsOfTiles * kElemsOfRow, 1.0);
  values[(kRowsOfTiles - 1) * kElemsOfRow + 200] =
      static_cast<double>(NAN);  // the tile of one row alone
  const std::vector<Array> out = run(op, {make_array("x", bf16, {129, 256}, values)}, tiles);
  EXPECT_TRUE(std::isnan(to_doubles(out[1])[3]));
  EXPECT_FALSE(std::isnan(to_doubles(out[1])[1]));
}

TEST_F(Quantize, FindsTheScaleOfATensor) {
  const test::Options whole{{"format", "fp8_tensor"}};
  for (Type type : {bf16, f16, f32}) {
    for (std::int64_t h : {1, 7, 96, 1234, 7168})
      run(op, {random("x", type, {5, h}, 50)}, whole, {.row_padding = h % 8, .offset_elems = 8});
  }
  run(op, {random("x", bf16, {300, 4096}, 3)}, whole);  // more blocks than are resident
  run(op, {make_array("x", bf16, {3, 64})}, whole);     // the floor's
  for (double bad : {static_cast<double>(NAN), -static_cast<double>(INFINITY)}) {
    std::vector<double> values(4096, 1.0);
    values[4001] = bad;
    run(op, {make_array("x", f32, {4, 1024}, values)}, whole);
  }
}

TEST_F(Quantize, LeavesItsWorkspaceReadyForTheNextLaunch) {
  Buffer memory(device, 1024);
  memory.fill(std::byte{0});
  Buffer rest(device, 16384);
  std::vector<float> numbers(1024, 1.0f);
  const View x = make_view(rest.address(), f32, std::array<std::int64_t, 2>{1, 1024});
  const View q = make_view(rest.address() + 4096, e4m3, std::array<std::int64_t, 2>{1, 1024});
  const View scales = make_view(rest.address() + 8192, f32, std::array<std::int64_t, 1>{1});
  QuantizeTensors tensors{x, std::nullopt, std::nullopt, q, scales};
  for (float largest : {448.0f, 44.8f}) {  // the second is less than what the first left
    numbers[77] = -largest;
    rest.upload(std::as_bytes(std::span(numbers)));
    quantize(stream, tensors, {.format = QuantFormat::fp8_tensor}, {memory.address(), 8});
    stream.synchronize();
    float scale = 0;
    rest.download(std::as_writable_bytes(std::span(&scale, 1)), 8192);
    EXPECT_EQ(scale, largest / 448.0f);
  }
  try {
    quantize(stream, tensors, {.format = QuantFormat::fp8_tensor});
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(),
              "quantize: workspace has 0 bytes; fp8_tensor without scale needs 8, aligned to 8");
  }
}

TEST_F(Quantize, LaunchesNothingForNoRows) { run(op, {random("x", bf16, {0, 64})}); }

TEST_F(Quantize, HasTheScaleOfATensorOfNoRows) {
  const test::Options whole{{"format", "fp8_tensor"}};
  const Array none = random("x", bf16, {0, 64});
  EXPECT_EQ(to_doubles(run(op, {none, one(0.25)}, whole).back()), std::vector<double>{0.25});
  run(op, {none}, whole);
  run(back, {random("q", e4m3, {0, 64}), random("scales", f32, {1})}, whole);
}

TEST_F(Quantize, RefusesWhatItCannotQuantise) {
  EXPECT_EQ(refusal(op, {random("x", bf16, {4, 100})}, {{"format", "fp8_block"}}),
            "quantize: rows have 100 elements; fp8_block takes multiples of 128 without "
            "ragged_tail");
  EXPECT_EQ(refusal(op, {random("x", bf16, {4, 0})}),
            "quantize: rows have 0 elements; they must have some");
  EXPECT_EQ(refusal(op, {random("x", bf16, {4, 64})},
                    {{"format", "fp8_tensor"}, {"scale_type", "ue8m0"}}),
            "quantize: scale_type=ue8m0 with fp8_tensor; it is for fp8_token, fp8_block and "
            "fp8_block2d");
  EXPECT_EQ(refusal(op, {random("x", bf16, {4, 64}), one(1)}),
            "quantize: scale is given; only fp8_tensor takes one");
  for (auto [scale, text] : {std::pair{0.0, "0"}, {-1e-10, "-1e-10"}}) {
    EXPECT_EQ(refusal(op, {random("x", bf16, {4, 64}), one(scale)}, {{"format", "fp8_tensor"}}),
              std::string("quantize: scale is ") + text + "; it must be above 0");
  }
  EXPECT_EQ(refusal(back, {random("q", e4m3, {4, 64}), random("scales", f32, {3})}),
            "dequantize: scales is f32[3]; it must have 4 groups of 1 element");
}

TEST_F(Quantize, RefusesToWriteOverTheScaleThatItMultipliesBy) {
  Buffer memory(device, 4096);
  const auto at = [&](int offset, Type type, std::vector<std::int64_t> shape) {
    return make_view(memory.address() + static_cast<std::uint64_t>(offset), type, shape);
  };
  try {
    dequantize(stream,
               {.q = at(0, e2m1, {4, 64}),
                .scales = at(512, e4m3, {4, 4}),
                .decode_scale = at(1024, f32, {1}),
                .y = at(1024, bf16, {4, 64})},
               {.format = QuantFormat::nvfp4});
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "dequantize: decode_scale and y overlap; they must be apart");
  }
}

TEST_F(Quantize, RefusesTokensOfMoreElementsThanItCounts) {
  constexpr std::int64_t kElems = (std::int64_t{1} << 30) + 1;
  const QuantizeTensors tensors{
      .x = make_view(std::uint64_t{1} << 40, bf16, std::array<std::int64_t, 2>{1, kElems}),
      .scale = {},
      .encode_scale = {},
      .q = make_view(std::uint64_t{1} << 50, e4m3, std::array<std::int64_t, 2>{1, kElems}),
      .scales = make_view(4096, f32, std::array<std::int64_t, 1>{1})};
  try {
    plan_quantize(device.properties(), tensors);
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(),
              "quantize: rows have 1073741825 elements; fp8_token takes at most 1073741824");
  }
}

}  // namespace
}  // namespace tilewright
