// SPDX-License-Identifier: Apache-2.0
// Conversions against formats by definition: every code decoded, every code's neighbourhood
// encoded.
#include "ptx/semantics_lanes.h"
#include "ptx/semantics_reference.h"
#include "tilewright/number_formats.h"

#include <bit>
#include <gtest/gtest.h>
#include <random>
#include <string>

namespace tilewright::ptx::semantics {
namespace {

std::uint32_t float_bits(float x) { return std::bit_cast<std::uint32_t>(x); }
float bits_float(std::uint32_t bits) { return std::bit_cast<float>(bits); }

/// Runs a two-source conversion (or one of one source) on 32 floats at a time.
std::vector<std::uint32_t> converted(const std::string& opcode, Isa isa,
                                     const std::vector<float>& inputs) {
  Execution run(opcode, isa);
  std::vector<std::uint32_t> results(inputs.size());
  for (std::size_t at = 0; at < inputs.size(); at += 32) {
    const int count = static_cast<int>(std::min<std::size_t>(32, inputs.size() - at));
    for (int lane = 0; lane < count; ++lane) {
      const std::uint32_t bits = float_bits(inputs[at + static_cast<std::size_t>(lane)]);
      run.set(0, lane, bits);
      if (run.meaning.src[1] != Lanes::none) run.set(1, lane, bits);
    }
    run.execute(0xffffffffu);
    for (int lane = 0; lane < count; ++lane) {
      results[at + static_cast<std::size_t>(lane)] = static_cast<std::uint32_t>(run.result(lane));
    }
  }
  return results;
}

/// Values at, just beside and half way between the format's values, and the special ones.
std::vector<float> neighbourhood(const SlowFormat& format) {
  std::vector<float> inputs = {0.0f,
                               -0.0f,
                               INFINITY,
                               -INFINITY,
                               bits_float(0x7fc00001),
                               bits_float(0xffc00000),
                               bits_float(1),
                               bits_float(0x807fffff),
                               3.4e38f,
                               -3.4e38f};
  for (std::uint32_t code = 0; code <= format.largest(); ++code) {
    const double value = format.value(code);
    const double next = code == format.largest() ? value + (value - format.value(code - 1))
                                                 : format.value(code + 1);
    for (const double x : {value, (value + next) / 2}) {
      const float at = static_cast<float>(x);
      for (const float y : {at, std::nextafter(at, INFINITY), std::nextafter(at, -INFINITY)}) {
        inputs.push_back(y);
        inputs.push_back(-y);
      }
    }
  }
  return inputs;
}

struct Conversion {
  const char* opcode;
  const SlowFormat* format;
  Direction direction;
  bool saturates;
  std::uint32_t mask;  ///< of the result: the low element of a pair
};

TEST(SemanticsConvert, FloatsRoundToNarrowFormatsAsDefined) {
  const SlowFormat e4m3(4, 3, 7, 0x7f, 0x7f);
  const SlowFormat e5m2(5, 2, 15, 0x7c, 0x7f);
  const SlowFormat e2m3(2, 3, 1, 0x20, 0x1f);
  const SlowFormat e3m2(3, 2, 3, 0x20, 0x1f);
  const SlowFormat e2m1(2, 1, 1, 0x8, 0x7);
  const Conversion conversions[] = {
      {"cvt.rn.f16.f32", &slow_f16(), Direction::nearest_even, false, 0xffff},
      {"cvt.rz.f16.f32", &slow_f16(), Direction::zero, false, 0xffff},
      {"cvt.rm.f16.f32", &slow_f16(), Direction::down, false, 0xffff},
      {"cvt.rp.f16.f32", &slow_f16(), Direction::up, false, 0xffff},
      {"cvt.rn.satfinite.f16x2.f32", &slow_f16(), Direction::nearest_even, true, 0xffff},
      {"cvt.rn.bf16.f32", &slow_bf16(), Direction::nearest_even, false, 0xffff},
      {"cvt.rz.bf16.f32", &slow_bf16(), Direction::zero, false, 0xffff},
      {"cvt.rm.bf16.f32", &slow_bf16(), Direction::down, false, 0xffff},
      {"cvt.rp.bf16.f32", &slow_bf16(), Direction::up, false, 0xffff},
      {"cvt.rz.satfinite.bf16x2.f32", &slow_bf16(), Direction::zero, true, 0xffff},
      {"cvt.rn.satfinite.e4m3x2.f32", &e4m3, Direction::nearest_even, true, 0xff},
      {"cvt.rn.satfinite.e5m2x2.f32", &e5m2, Direction::nearest_even, true, 0xff},
      {"cvt.rn.satfinite.e2m3x2.f32", &e2m3, Direction::nearest_even, true, 0xff},
      {"cvt.rn.satfinite.e3m2x2.f32", &e3m2, Direction::nearest_even, true, 0xff},
      {"cvt.rn.satfinite.e2m1x2.f32", &e2m1, Direction::nearest_even, true, 0xf},
  };
  for (const Conversion& row : conversions) {
    const std::vector<float> inputs = neighbourhood(*row.format);
    std::vector<std::uint32_t> expected;
    for (const float x : inputs) {
      expected.push_back(row.format->encode(static_cast<double>(x), row.direction, row.saturates));
    }
    for (const Isa isa : available_isas()) {
      const std::vector<std::uint32_t> results = converted(row.opcode, isa, inputs);
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        ASSERT_EQ(results[i] & row.mask, expected[i])
            << row.opcode << " of 0x" << std::hex << float_bits(inputs[i]) << " at level "
            << static_cast<int>(isa);
      }
    }
  }
}

TEST(SemanticsConvert, EveryNarrowCodeDecodesExactly) {
  for (std::uint32_t code = 0; code < 0x10000; ++code) {
    const auto bits = static_cast<std::uint16_t>(code);
    if ((code & 0x7fff) < 0x7c00) {
      ASSERT_EQ(static_cast<double>(f16_to_f32(bits)), slow_f16().value(code)) << code;
      ASSERT_EQ(f32_to_f16(f16_to_f32(bits)), bits);
    } else if ((code & 0x7fff) > 0x7c00) {
      ASSERT_TRUE(std::isnan(f16_to_f32(bits))) << code;
    }
    if ((code & 0x7fff) < 0x7f80) {
      ASSERT_EQ(static_cast<double>(bf16_to_f32(bits)), slow_bf16().value(code)) << code;
      ASSERT_EQ(f32_to_bf16(bf16_to_f32(bits)), bits);
    }
  }
  EXPECT_EQ(f16_to_f32(0xfc00), -INFINITY);
  EXPECT_EQ(bf16_to_f32(0x7f80), INFINITY);
}

TEST(SemanticsConvert, EightBitFormatsDecodeExactly) {
  const SlowFormat e4m3(4, 3, 7, 0x7f, 0x7f);
  const SlowFormat e5m2(5, 2, 15, 0x7c, 0x7f);
  const SlowFormat e2m3(2, 3, 1, 0x20, 0x1f);
  const SlowFormat e3m2(3, 2, 3, 0x20, 0x1f);
  const SlowFormat e2m1(2, 1, 1, 0x8, 0x7);
  for (std::uint32_t code = 0; code < 256; ++code) {
    const auto bits = static_cast<std::uint8_t>(code);
    if ((code & 0x7f) != 0x7f) {
      EXPECT_EQ(static_cast<double>(e4m3_to_f32(bits)), e4m3.value(code)) << code;
    }
    if ((code & 0x7f) < 0x7c) {
      EXPECT_EQ(static_cast<double>(e5m2_to_f32(bits)), e5m2.value(code)) << code;
    }
    if (code < 64) {
      EXPECT_EQ(static_cast<double>(e2m3_to_f32(bits)), e2m3.value(code)) << code;
    }
    if (code < 64) {
      EXPECT_EQ(static_cast<double>(e3m2_to_f32(bits)), e3m2.value(code)) << code;
    }
    if (code < 16) {
      EXPECT_EQ(static_cast<double>(e2m1_to_f32(bits)), e2m1.value(code)) << code;
    }
    if (code < 255) {
      EXPECT_EQ(static_cast<double>(ue8m0_to_f32(bits)),
                std::ldexp(1.0, static_cast<int>(code) - 127));
    }
  }
  EXPECT_TRUE(std::isnan(e4m3_to_f32(0x7f)));
  EXPECT_TRUE(std::isnan(e5m2_to_f32(0xfd)));
  EXPECT_EQ(e5m2_to_f32(0xfc), -INFINITY);
  EXPECT_TRUE(std::isnan(ue8m0_to_f32(255)));
}

TEST(SemanticsConvert, FloatsOverflowToNanOrInfinityWhereAsked) {
  EXPECT_EQ(f32_to_e4m3(1000.0f, Overflow::infinity), 0x7f);
  EXPECT_EQ(f32_to_e4m3(1000.0f), 0x7e);
  EXPECT_EQ(f32_to_e5m2(-1e6f, Overflow::infinity), 0xfc);
  EXPECT_EQ(f32_to_f16(1e6f, NarrowRounding::nearest_even, Overflow::saturate), 0x7bff);
  EXPECT_EQ(f32_to_bf16(1.00390625f), 0x3f80);
  EXPECT_EQ(f32_to_bf16(1.99999f, NarrowRounding::toward_zero), 0x3fff);
  EXPECT_EQ(f32_to_tf32(bits_float(0x3f801000)), bits_float(0x3f802000));
  EXPECT_EQ(f32_to_ue8m0(3.0f, PowerRounding::down), 128);
  EXPECT_EQ(f32_to_ue8m0(3.0f, PowerRounding::up), 129);
  EXPECT_EQ(f32_to_ue8m0(0.0f, PowerRounding::up), 0);
}

TEST(SemanticsConvert, DoublesRoundOnce) {
  // 1 + 2^-11 + 2^-40: to float it becomes the tie 1 + 2^-11, which would round down.
  EXPECT_EQ(f64_to_f16(1.0 + std::ldexp(1.0, -11) + std::ldexp(1.0, -40)), 0x3c01);
  EXPECT_EQ(f64_to_bf16(1.0 + std::ldexp(1.0, -8) + std::ldexp(1.0, -40)), 0x3f81);
  std::mt19937_64 random(7);
  for (int i = 0; i < 20'000; ++i) {
    const auto code = static_cast<std::uint32_t>(random() % 0x7bff);
    const double middle = (slow_f16().value(code) + slow_f16().value(code + 1)) / 2;
    for (const double x : {middle, std::nextafter(middle, 1e9), std::nextafter(middle, -1e9)}) {
      ASSERT_EQ(f64_to_f16(x), slow_f16().encode(x, Direction::nearest_even, false)) << x;
    }
  }
}

TEST(SemanticsConvert, SixtyFourBitIntegersRoundOnceToHalves) {
  std::mt19937_64 random(11);
  for (const Isa isa : available_isas()) {
    Execution run("cvt.rn.bf16.u64", isa);
    for (int i = 0; i < 200; ++i) {
      std::vector<std::uint64_t> inputs;
      for (int lane = 0; lane < 32; ++lane) {
        // A midpoint of bf16, give or take one.
        const std::uint64_t top = 0x80 | (random() & 0x7f);
        const int shift = static_cast<int>(random() % 55) + 1;
        const std::uint64_t middle = (top << 1 | 1) << shift;
        inputs.push_back(middle + random() % 3 - 1);
        run.set(0, lane, inputs.back());
      }
      run.execute(0xffffffffu);
      for (int lane = 0; lane < 32; ++lane) {
        const std::uint64_t x = inputs[static_cast<std::size_t>(lane)];
        const double high = static_cast<double>(x >> 32) * 4294967296.0;
        const double low = static_cast<double>(x & 0xffffffff);
        const double sum = high + low;
        const double rest = low - (sum - high);
        ASSERT_EQ(run.result(lane), slow_bf16().encode(sum, Direction::nearest_even, false, rest))
            << x;
      }
    }
  }
}

}  // namespace
}  // namespace tilewright::ptx::semantics
