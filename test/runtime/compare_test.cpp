// SPDX-License-Identifier: Apache-2.0
// Outputs against references: bounds, exactness, NaN.
#include "tilewright/operator.h"
#include "tilewright/written.h"

#include <array>
#include <cmath>
#include <gtest/gtest.h>

namespace tilewright {
namespace {

Array f64(std::vector<double> values) {
  const auto count = static_cast<std::int64_t>(values.size());
  return make_array("a", Type::f64, {count}, values);
}

TEST(Compare, ReportsTheFirstElementBeyondItsBound) {
  const Comparison result =
      compare(f64({1, 2.1, 3, 5}), f64({1, 2, 3, 4}), {.relative = 0.01, .absolute = 0.01});
  EXPECT_EQ(result.compared, 4);
  EXPECT_EQ(result.wrong, 2);
  EXPECT_EQ(result.first_wrong, 1);
  EXPECT_EQ(result.out, 2.1);
  EXPECT_EQ(result.reference, 2);
  EXPECT_DOUBLE_EQ(result.bound, 0.03);
  EXPECT_NEAR(result.worst_ratio, 20, 1e-9);
}

TEST(Compare, ABoundMayFollowTheLargestOfTheRow) {
  const Array out = make_array("a", Type::f64, {2, 2}, std::vector<double>{0.5, 100, 0.5, 1});
  const Array reference = make_array("a", Type::f64, {2, 2}, std::vector<double>{0, 100, 0, 1});
  EXPECT_EQ(compare(out, reference, {.of_row_max = 0.01}).first_wrong, 2);
}

TEST(Compare, AnElementMayHaveAnAllowanceOfItsOwn) {
  const Array allowed = f64({0.5, 0.5, 0});
  const Comparison result =
      compare(f64({1.5, 2.6, 3.5}), f64({1, 2, 3}), {.relative = 0.01}, NanRule::equal, &allowed);
  EXPECT_EQ(result.wrong, 2);
  EXPECT_EQ(result.first_wrong, 1);
  EXPECT_DOUBLE_EQ(result.bound, 0.52);
  HostTensors tensors;
  set_allowance(tensors, "y", {2}, std::array{0.5, INFINITY + 0.0});
  EXPECT_EQ(to_doubles(*allowance(tensors, "y")), (std::vector<double>{0.5, 0}));
  const Array other = f64({0, 0});
  EXPECT_THROW(compare(f64({1}), f64({1}), {}, NanRule::equal, &other), Error);
}

TEST(Compare, ABoundMayFollowTheLargestOfAll) {
  const Array out = make_array("a", Type::f64, {2, 2}, std::vector<double>{100, 100, 0.5, 1.5});
  const Array reference = make_array("a", Type::f64, {2, 2}, std::vector<double>{100, 100, 0, 0});
  const Comparison result = compare(out, reference, {.of_max = 0.01});
  EXPECT_EQ(result.first_wrong, 3);
  EXPECT_DOUBLE_EQ(result.bound, 1);
}

TEST(Compare, ABoundMayBeOnTheRootMeanSquareOfAll) {
  const Comparison close = compare(f64({3, 4, 0}), f64({3, 4.05, 0}), {.rmse = 0.01});
  EXPECT_EQ(close.wrong, 0);
  EXPECT_NEAR(close.worst_ratio, 0.05 / std::hypot(3, 4.05) / 0.01, 1e-9);
  const Comparison far = compare(f64({3, 4.2, 0.1}), f64({3, 4, 0}), {.rmse = 0.01});
  EXPECT_EQ(far.wrong, 1);
  EXPECT_EQ(far.first_wrong, 1);  // the furthest off
  EXPECT_EQ(compare(f64({0, 0}), f64({1e-50, 1e-40}), {.rmse = 1e-6}).wrong, 0);  // below f32
  EXPECT_EQ(compare(f64({0, 0}), f64({1e-30, 0}), {.rmse = 1e-6}).wrong, 1);
  EXPECT_EQ(compare(f64({NAN, 1}), f64({0, 1}), {.rmse = 1}).wrong, 1);
  EXPECT_EQ(compare(f64({7, 1}), f64({NAN, 1}), {.rmse = 1}, NanRule::skip).wrong, 0);
}

TEST(Compare, WhatRoundsToInfinityMayBeInfinite) {
  const auto of = [](Type type, double out, double reference) {
    return compare(make_array("a", type, {1}, std::vector<double>{out}), f64({reference}),
                   {.relative = 1e-3})
        .wrong;
  };
  EXPECT_EQ(of(Type::f16, INFINITY, 90000), 0);
  EXPECT_EQ(of(Type::f16, INFINITY, 65520), 0);
  EXPECT_EQ(of(Type::f16, INFINITY, 65000), 1);
  EXPECT_EQ(of(Type::f16, -INFINITY, 90000), 1);
  EXPECT_EQ(of(Type::f16, 65504, 90000), 1);
  EXPECT_EQ(of(Type::bf16, INFINITY, 90000), 1);
  EXPECT_EQ(of(Type::f32, INFINITY, 1e39), 0);
}

TEST(Compare, WithoutToleranceBitsCount) {
  EXPECT_EQ(compare(f64({0.0}), f64({-0.0}), {}).wrong, 1);
  const Array a = make_array("a", Type::s64, {1}, std::vector<double>{0x1p53});
  Array b = a;
  b.bytes[0] = std::byte{1};  // 2^53 + 1: the same number as a double
  EXPECT_EQ(compare(a, b, {}).wrong, 1);
  EXPECT_EQ(compare(a, a, {}).wrong, 0);
}

TEST(Compare, NanMustMeetNanUnlessItMarksWhatIsNotCompared) {
  const double nan = std::nan("");
  EXPECT_EQ(compare(f64({nan}), f64({nan}), {}).wrong, 0);
  EXPECT_EQ(compare(f64({nan}), f64({1}), {.relative = 1}).wrong, 1);
  EXPECT_EQ(compare(f64({1}), f64({nan}), {.relative = 1}).wrong, 1);
  const Comparison skipped = compare(f64({1, 2}), f64({nan, 2}), {}, NanRule::skip);
  EXPECT_EQ(skipped.wrong, 0);
  EXPECT_EQ(skipped.compared, 1);
}

TEST(Compare, InfinitiesMustBeEqual) {
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(compare(f64({inf}), f64({inf}), {.relative = 1}).wrong, 0);
  EXPECT_EQ(compare(f64({1}), f64({inf}), {.relative = 1}).wrong, 1);
  EXPECT_EQ(compare(f64({inf}), f64({1}), {.relative = 1}).wrong, 1);
}

TEST(Compare, RefusesOtherShapes) { EXPECT_THROW(compare(f64({1}), f64({1, 2}), {}), Error); }

}  // namespace
}  // namespace tilewright
