// SPDX-License-Identifier: Apache-2.0
// Numbers of every element type: decoding, rounding, limits.
#include "tilewright/array.h"

#include "tilewright/view.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>

namespace tilewright {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

TEST(ArrayNumbers, KnownBitsHaveTheirValues) {
  struct Row {
    Type type;
    std::uint64_t bits;
    double value;
  };
  const Row rows[] = {
      {Type::f16, 0x3c00, 1},       {Type::f16, 0x7bff, 65504},
      {Type::f16, 0x0001, 0x1p-24}, {Type::f16, 0xfc00, -kInf},
      {Type::bf16, 0x3f80, 1},      {Type::bf16, 0x0001, 0x1p-133},
      {Type::e4m3, 0x7e, 448},      {Type::e4m3, 0x01, 0x1p-9},
      {Type::e5m2, 0x7b, 57344},    {Type::e5m2, 0x7c, kInf},
      {Type::e2m1, 0x7, 6},         {Type::e2m1, 0x9, -0.5},
      {Type::e2m3, 0x1f, 7.5},      {Type::e3m2, 0x1f, 28},
      {Type::ue8m0, 127, 1},        {Type::ue8m0, 0, 0x1p-127},
      {Type::s8, 0x80, -128},       {Type::u8, 0x80, 128},
      {Type::s32, 0xffffffff, -1},  {Type::f32, 0x3f800000, 1},
      {Type::ue4m3, 0x38, 1},       {Type::f64, 0x3ff0000000000000, 1},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(decode(row.type, row.bits), row.value) << name(row.type) << " " << row.bits;
    EXPECT_EQ(encode(row.type, row.value), row.bits) << name(row.type) << " " << row.value;
  }
}

TEST(ArrayNumbers, EveryPatternSurvivesTheWayThroughDouble) {
  for (Type type : {Type::f16, Type::bf16, Type::e4m3, Type::e5m2, Type::e2m3, Type::e3m2,
                    Type::e2m1, Type::ue8m0, Type::s8, Type::u16}) {
    for (std::uint64_t raw = 0; raw < std::uint64_t{1} << bits(type); ++raw) {
      const double value = decode(type, raw);
      if (std::isnan(value)) continue;
      ASSERT_EQ(encode(type, value), raw) << name(type);
    }
  }
}

TEST(ArrayNumbers, RoundsToNearestEven) {
  EXPECT_EQ(encode(Type::bf16, 1 + 0x1p-8), 0x3f80U);            // halfway: even is below
  EXPECT_EQ(encode(Type::bf16, 1 + 3 * 0x1p-8), 0x3f82U);        // halfway: even is above
  EXPECT_EQ(encode(Type::bf16, 1 + 0x1p-8 + 0x1p-40), 0x3f81U);  // one rounding, not two
  EXPECT_EQ(encode(Type::f16, 65519.99), 0x7bffU);
  EXPECT_EQ(encode(Type::f16, 65520.0), 0x7c00U);
  EXPECT_EQ(encode(Type::f16, 0x1p-25), 0U);
  EXPECT_EQ(encode(Type::f16, 0x1.8p-25), 1U);
  EXPECT_EQ(encode(Type::e2m1, 2.5), 4U);
  EXPECT_EQ(encode(Type::e2m1, 3.5), 6U);
}

TEST(ArrayNumbers, TooLargeValuesBecomeInfinityOrTheLargest) {
  EXPECT_EQ(encode(Type::e4m3, 1e30), 0x7eU);
  EXPECT_EQ(encode(Type::e4m3, -kInf), 0xfeU);
  EXPECT_EQ(encode(Type::e5m2, 1e30), 0x7cU);
  EXPECT_EQ(encode(Type::bf16, 1e300), 0x7f80U);
  EXPECT_TRUE(std::isnan(decode(Type::e4m3, encode(Type::e4m3, std::nan("")))));
}

TEST(ArrayNumbers, IntegersThatDoNotFitAreRefused) {
  EXPECT_THROW(encode(Type::s8, 128), Error);
  EXPECT_THROW(encode(Type::u8, -1), Error);
  EXPECT_THROW(encode(Type::s32, 0.5), Error);
  EXPECT_THROW(encode(Type::s64, kInf), Error);
}

TEST(Array, PacksFourBitValuesLowHalfFirst) {
  const Array array = make_array("a", Type::e2m1, {3}, std::vector<double>{1, -6, 0.5});
  ASSERT_EQ(array.bytes.size(), 2U);
  EXPECT_EQ(array.bytes[0], std::byte{0xf2});
  EXPECT_EQ(array.bytes[1], std::byte{0x01});
  EXPECT_EQ(to_doubles(array), (std::vector<double>{1, -6, 0.5}));
}

TEST(Array, RefusesShapesThatOverflow) {
  const std::vector<std::int64_t> huge = {std::int64_t{1} << 32, std::int64_t{1} << 32};
  EXPECT_THROW(element_count(huge), Error);
  EXPECT_THROW(storage_bytes(Type::f32, std::vector<std::int64_t>{std::int64_t{1} << 62}), Error);
  EXPECT_EQ(element_count(std::vector<std::int64_t>{0, std::int64_t{1} << 62, 16}), 0);
  EXPECT_THROW(make_array("a", Type::f32, {2}, std::vector<double>{1}), Error);
}

}  // namespace
}  // namespace tilewright
