// SPDX-License-Identifier: Apache-2.0
// Static and dynamic integers: folding, facts, expressions, refusals.
#include "tilewright/int.h"

#include <gtest/gtest.h>

namespace tilewright {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

std::string message_of(void (*f)()) {
  try {
    f();
  } catch (const Error& e) {
    return e.message();
  }
  return "no error";
}

TEST(Int, StaticArithmeticFolds) {
  EXPECT_EQ((Int(7) + 5).value(), 12);
  EXPECT_EQ((Int(7) - 9).value(), -2);
  EXPECT_EQ((Int(7) * 5).value(), 35);
  EXPECT_EQ((Int(-7) / 2).value(), -3);
  EXPECT_EQ((Int(-7) % 2).value(), -1);
  EXPECT_EQ(ceil_div(Int(7), 2).value(), 4);
  EXPECT_EQ(ceil_div(Int(-7), 2).value(), -3);
  EXPECT_EQ(min(Int(7), 2).value(), 2);
  EXPECT_EQ(max(Int(7), 2).value(), 7);
  EXPECT_EQ((Int(12) & 10).value(), 8);
  EXPECT_EQ((Int(12) ^ 10).value(), 6);
  EXPECT_EQ(abs(Int(-4)).value(), 4);
  EXPECT_EQ(signum(Int(-4)).value(), -1);
}

TEST(Int, OverflowAndZeroDivisorsAreErrors) {
  EXPECT_EQ(message_of([] { Int(kMax) + 1; }),
            "integer overflow: 9223372036854775807 + 1 does not fit 64 bits; use smaller shapes or "
            "strides");
  EXPECT_EQ(message_of([] { Int(kMax) * 2; }),
            "integer overflow: 9223372036854775807 * 2 does not fit 64 bits; use smaller shapes or "
            "strides");
  EXPECT_EQ(
      message_of([] { Int(std::numeric_limits<std::int64_t>::min()) / -1; }),
      "integer overflow: -9223372036854775808 / -1 does not fit 64 bits; use smaller shapes or "
      "strides");
  EXPECT_EQ(message_of([] { Int(4) / 0; }),
            "division by zero: 4 / 0; a divisor, shape or stride must not be 0 here");
  EXPECT_EQ(message_of([] { Int::symbol() % 0; }),
            "division by zero: ? % 0; a divisor, shape or stride must not be 0 here");
  EXPECT_EQ(message_of([] { Int(~std::uint64_t{0}); }),
            "integer overflow: a value above 2^63-1 does not fit a layout");
}

TEST(Int, ADynamicIntegerHasNoValue) {
  EXPECT_EQ(
      message_of([] { Int::symbol(0, {16}).value(); }),
      "the integer ?{div=16} is dynamic where a value known while tracing is needed; make that "
      "shape or stride static");
  EXPECT_EQ(
      message_of([] { Int::symbol(0, {0}); }),
      "dynamic integer: divisor 0 and bounds 0..9223372036854775807 contradict; give a divisor "
      "of at least 1 and min <= max");
}

struct FactRow {
  const char* name;
  Int value;
  std::int64_t divisor, min, max;
};

TEST(Int, FactsPropagate) {
  const Int a = Int::symbol(1, {16, 0, 1000});  // at most 992
  const Int b = Int::symbol(2, {6, 6, 60});
  const FactRow rows[] = {
      {"bounds are multiples", a, 16, 0, 992},
      {"sum", a + b, 2, 6, 1052},
      {"difference", a - b, 2, -60, 986},
      {"product", a * b, 96, 0, 59520},
      {"exact quotient", a / 4, 4, 0, 248},
      {"rounded quotient", a / 3, 1, 0, 330},
      {"rest", b % 4, 2, 0, 2},
      {"rounded up", ceil_div(a, 32), 1, 0, 31},
      {"smaller", min(a, b), 2, 0, 60},
      {"larger", max(a, b), 2, 6, 992},
      {"masked", a & 0x70, 16, 0, 112},
      {"exclusive or", a ^ 32, 16, 0, 1008},
      {"static", Int(-12), 12, -12, -12},
  };
  for (const FactRow& row : rows) {
    EXPECT_EQ(row.value.divisor(), row.divisor) << row.name;
    EXPECT_EQ(row.value.min(), row.min) << row.name;
    EXPECT_EQ(row.value.max(), row.max) << row.name;
  }
  EXPECT_TRUE((a * b).divisible_by(48));
  EXPECT_FALSE(a.divisible_by(32));
}

TEST(Int, WhatIsKnownFoldsAway) {
  const Int x = Int::symbol(1, {8, 8, 800});
  EXPECT_EQ(x * 0, Int(0));
  EXPECT_EQ(x * 1, x);
  EXPECT_EQ(x - x, Int(0));
  EXPECT_EQ(x % 4, Int(0));
  EXPECT_EQ(x / 1000, Int(0));
  EXPECT_EQ(x % 1000, x);
  EXPECT_EQ(min(x, 1000), x);
  EXPECT_EQ(min(x, 8), Int(8));
  EXPECT_EQ(x / 8 * 8, x);
  EXPECT_EQ(x * 12 / 4, x * 3);
  EXPECT_EQ((x + 3) - x, Int(3));
  EXPECT_EQ((x + 3) * 2, x * 2 + 6);
  EXPECT_EQ(2 + x, x + 2);
  EXPECT_EQ(x - 2, x + -2);
  EXPECT_EQ(Int::symbol(0, {4, 8, 11}), Int(8)) << "one value within the bounds";
}

TEST(Int, SymbolsAreTheSameByIdOrByCopy) {
  const Int anonymous = Int::symbol();
  const Int copy = anonymous;
  EXPECT_EQ(anonymous, copy);
  EXPECT_FALSE(anonymous == Int::symbol());
  EXPECT_EQ(Int::symbol(7), Int::symbol(7));
  EXPECT_FALSE(Int::symbol(7) == Int::symbol(8));
  EXPECT_EQ(Int::symbol(7) * 3 + 1, 1 + 3 * Int::symbol(7));
}

TEST(Int, ComparisonsAnswerWhereKnown) {
  const Int x = Int::symbol(1, {4, 4, 100});
  EXPECT_EQ(less(x, Int(101)), true);
  EXPECT_EQ(less(x, Int(4)), false);
  EXPECT_EQ(less(x, Int(50)), std::nullopt);
  EXPECT_EQ(equal(x, Int(6)), false) << "no multiple of 4";
  EXPECT_EQ(equal(x, x + 0), true);
  EXPECT_EQ(equal(x, Int(8)), std::nullopt);
  EXPECT_TRUE(is_multiple(x * 3, x));
  EXPECT_FALSE(is_multiple(x, x * 3));
}

TEST(Int, ExpressionsCanBeWalked) {
  const Int x = Int::symbol(5);
  const Int e = x * 6 + 1;
  ASSERT_FALSE(e.is_static());
  EXPECT_EQ(e.node()->op, IntOp::add);
  EXPECT_EQ(e.node()->rhs, Int(1));
  EXPECT_EQ(e.node()->lhs.node()->op, IntOp::mul);
  EXPECT_EQ(e.node()->lhs.node()->lhs.node()->symbol, 5U);
  EXPECT_EQ(name(IntOp::ceil_div), "ceil_div");
}

}  // namespace
}  // namespace tilewright
