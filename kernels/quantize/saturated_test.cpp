// SPDX-License-Identifier: Apache-2.0
// The counter of groups of nvfp4 that the largest scale clips: of quantize and of quantised
// outputs.
#include "kernels/gated_activation/gated_activation.h"
#include "kernels/quantize/quant_output_fixture.h"
#include "kernels/quantize/reference.h"
#include "kernels/rms_norm/rms_norm.h"

#include <array>
#include <limits>

namespace tilewright {
namespace {

using test::Options;

class Saturated : public test::QuantOutputTest {
 protected:
  static Array one(const char* name, Type type, double number) {
    return make_array(name, type, {1}, std::array{number});
  }
  static Array encode(double scale) { return one("encode_scale", f32, scale); }
  static Array count(double before) { return one("saturated", u32, before); }

  /// A group of 16 of each largest magnitude, in rows of two.
  static Array groups_of(const std::vector<double>& largest) {
    std::vector<double> values(largest.size() * 16, 0.0);
    for (std::size_t i = 0; i < largest.size(); ++i)
      values[i * 16 + i % 16] = i % 2 == 0 ? largest[i] : -largest[i];
    return make_array("x", f32, {static_cast<std::int64_t>(largest.size()) / 2, 32}, values);
  }

  /// What quantize() adds to a counter of 7.
  std::uint32_t counted(const Array& x, double encode_scale) {
    Buffer memory(device, 1 << 16);
    memory.upload(x.bytes);
    memory.upload(encode(encode_scale).bytes, 8192);
    memory.upload(count(7).bytes, 8448);
    const std::int64_t rows = x.shape[0];
    const std::array<std::int64_t, 1> single{1};
    quantize(stream,
             {.x = make_view(memory.address(), x.type, x.shape),
              .scale = {},
              .encode_scale = make_view(memory.address() + 8192, f32, single),
              .q = make_view(memory.address() + 16384, e2m1, x.shape),
              .scales = make_view(memory.address() + 32768, e4m3,
                                  std::array<std::int64_t, 2>{rows, x.shape[1] / 16}),
              .saturated = make_view(memory.address() + 8448, u32, single)},
             {.format = QuantFormat::nvfp4});
    std::array<std::byte, 4> after{};
    memory.download(after, 8448);
    return static_cast<std::uint32_t>(
               to_doubles(Array{"", u32, {1}, {after.begin(), after.end()}})[0]) -
           7;
  }
};

// A sixth of the largest is the scale wanted: e4m3 ends at 448, to which 464 is still rounded.
TEST_F(Saturated, CountsGroupsWhoseScaleIsBeyondTheLargest) {
  const double infinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Array x = groups_of({6 * 448, 6 * 464, 6 * 465, 6 * 464.00003, 0, 1e30, infinity, nan});
  EXPECT_EQ(counted(x, 1), 3U);
  EXPECT_EQ(counted(x, 0.5), 1U);
  EXPECT_EQ(counted(x, 1e38), 5U);  // 0, and what is not finite, has a scale
}

TEST_F(Saturated, IsZeroForTheEncodeScaleOfTheTensorItself) {
  for (double largest : {1.0, 3.3, 100.0, 1e-20, 1e20})
    EXPECT_EQ(counted(groups_of({largest, largest / 2}), 2688 / largest), 0U) << largest;
}

TEST_F(Saturated, IsCountedInEveryLayoutAndConfiguration) {
  const std::vector<Array> inputs{random("x", bf16, {70, 320}, 3), encode(1500), count(11)};
  for (const char* layout : {"row", "swizzle_128x4", "swizzle_8x4"})
    run(quantize_operator(), inputs, {{"format", "nvfp4"}, {"scale_layout", layout}});
  run_candidates(quantize_operator(), inputs, {{"format", "nvfp4"}});
  run(quantize_operator(), {random("x", bf16, {3, 70}, 3), encode(1500), count(0)},
      {{"format", "nvfp4"}, {"ragged_tail", "true"}});
}

TEST_F(Saturated, IsCountedByOperatorsThatQuantiseTheirOutputs) {
  const std::vector<Array> of_norm{random("x", bf16, {9, 320}, 3), random("w", bf16, {320}, 1, 2),
                                   encode(1500), count(3)};
  const std::vector<Array> of_gates{random("x", bf16, {9, 640}, 3), encode(700), count(4)};
  for (const char* layout : {"row", "swizzle_128x4"}) {
    const Options options{{"quant", "nvfp4"}, {"scale_layout", layout}};
    run(rms_norm_operator(), of_norm, options);
    run(silu_and_mul_operator(), of_gates, options);
  }
  std::vector<Array> long_rows = of_norm;
  long_rows[0] = random("x", bf16, {2, 65536}, 3);
  long_rows[1] = random("w", bf16, {65536}, 1, 2);
  run(rms_norm_operator(), long_rows, {{"quant", "nvfp4"}});
}

TEST_F(Saturated, CountsRowsOfExpertsThatCount) {
  run(silu_and_mul_operator(),
      {random("x", bf16, {2, 5, 320}, 3), encode(700), count(1),
       make_array("tokens_per_expert", s32, {2}, std::array{2.0, 5.0})},
      {{"quant", "nvfp4"}});
}

TEST_F(Saturated, IsRefusedWhereNothingSaturates) {
  const Array x = random("x", bf16, {4, 64});
  EXPECT_EQ(refusal(quantize_operator(), {x, count(0)}, {{"format", "mxfp4"}}),
            "quantize: saturated is given; only scales of nvfp4 saturate");
  EXPECT_EQ(refusal(silu_and_mul_operator(), {x, count(0)}, {{"quant", "mxfp4"}}),
            "silu_and_mul: saturated is given; only scales of nvfp4 saturate");
  EXPECT_EQ(refusal(silu_and_mul_operator(), {x, count(0)}),
            "silu_and_mul: saturated is given; with quant=none nothing is quantised");
}

}  // namespace
}  // namespace tilewright
