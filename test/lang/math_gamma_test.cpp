// SPDX-License-Identifier: Apache-2.0
// Tests of lgamma in f64 against long double: errors range by range, zeros, poles, ends.
#include "lang/maths_gamma_f64.h"
#include "test/ulp.h"

#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>

namespace tilewright {
namespace {

using F64 = lang::Host<double>;

long double exact(double x) {
  int sign = 0;
  return lgammal_r(static_cast<long double>(x), &sign);
}
double ours(double x) { return lang::lgamma_f64(F64(x)).v; }

struct Range {
  const char* name;
  double from, to;  // of one sign
};

TEST(MathGamma, F64StaysWithinItsBound) {
  if (std::numeric_limits<long double>::digits < 64)
    GTEST_SKIP() << "no wider type to compare with";
  constexpr double kBound = 3;  // ulp, as docs/maths.md says
  constexpr Range kRanges[] = {{"subnormal and tiny numbers", 0x1p-1074, 0x1p-60},
                               {"around the tiny ones' limit", 0x1p-62, 0x1p-40},
                               {"below 1", 0x1p-40, 1},
                               {"just below 1", 0.9, 1},
                               {"just above 1", 1, 1.0001},
                               {"between the zeros", 1, 2},
                               {"just below 2", 1.9999, 2},
                               {"just above 2", 2, 2.0001},
                               {"up to the recurrence", 2, 3},
                               {"by recurrence", 3, 8},
                               {"by Stirling's series", 8, 100},
                               {"large numbers", 100, 0x1.754d9278b51a7p+1014},
                               {"reflected, with no zero", -2.2637, -0x1p-60},
                               {"reflected, of large size", -1e6, -11.0001}};
  std::mt19937_64 random(6);
  for (const Range& range : kRanges) {
    auto a = std::bit_cast<std::uint64_t>(range.from);
    auto b = std::bit_cast<std::uint64_t>(range.to);
    if (a > b) std::swap(a, b);
    for (int i = 0; i < 20'000; ++i) {
      auto x = std::bit_cast<double>(a + random() % (b - a));
      if (std::isinf(exact(x)) || exact(x) == 0) continue;
      ASSERT_LE(test::ulp_error_f64(ours(x), exact(x)), kBound) << range.name << ": " << x;
    }
  }
}

TEST(MathGamma, F64KeepsAnAbsoluteErrorNearItsNegativeZeros) {
  if (std::numeric_limits<long double>::digits < 64)
    GTEST_SKIP() << "no wider type to compare with";
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> draw(-11.0001, -2.2637);
  for (int i = 0; i < 100'000; ++i) {
    double x = draw(random);
    double largest = std::max(1.0, std::abs(static_cast<double>(exact(x))));
    ASSERT_LE(std::abs(static_cast<double>(ours(x) - exact(x))), 0x1p-49 * largest) << x;
  }
}

TEST(MathGamma, F64HasZerosPolesAndEnds) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(ours(1), 0);
  EXPECT_EQ(ours(2), 0);
  for (double pole : {0.0, -0.0, -1.0, -2.0, -3.0, -1e6, -0x1p+52, -1e300, kInf, -kInf})
    EXPECT_EQ(ours(pole), kInf) << pole;
  EXPECT_TRUE(std::isfinite(ours(0x1.754d9278b51a7p+1014)));
  EXPECT_EQ(ours(0x1.754d9278b51a8p+1014), kInf);
  EXPECT_TRUE(std::isnan(ours(std::numeric_limits<double>::quiet_NaN())));
  EXPECT_NEAR(ours(-0x1.8p+51 - 0.5), static_cast<double>(exact(-0x1.8p+51 - 0.5)), 16);
}

}  // namespace
}  // namespace tilewright
