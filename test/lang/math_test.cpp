// SPDX-License-Identifier: Apache-2.0
// Tests of the maths functions' numbers, on the host: errors, special values, exact cases.
#include "lang/maths_f64.h"
#include "lang/maths_power_f64.h"
#include "lang/maths_trig_f64.h"
#include "test/ulp.h"
#include "tilewright/math_functions.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace tilewright {
namespace {

using F64 = lang::Host<double>;
using test::ulp_error_f64;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kMax = std::numeric_limits<float>::max();
constexpr float kMin = 0x1p-149f;  // the smallest subnormal number

const MathFunction& function(std::string_view name) {
  for (const MathFunction& f : math_functions()) {
    if (f.name == name) return f;
  }
  throw Error(ErrorKind::internal, "no function " + std::string(name));
}

float call(std::string_view name, float x, float y = 0) { return function(name).host(x, y); }

/// One input in each of 2^18 equal ranges of bit patterns, so that every exponent and both signs
/// have their share, drawn anew from the seed.
class MathError : public testing::TestWithParam<MathFunction> {};

TEST_P(MathError, StaysWithinTheDocumentedBound) {
  const MathFunction& f = GetParam();
  constexpr std::uint32_t kSeed = 1;
  std::mt19937 random(kSeed);
  constexpr std::uint32_t kRange = 1u << 14;
  double worst = 0;
  std::int64_t steps = 0;
  float worst_x = 0;
  float worst_y = 0;
  for (std::uint64_t start = 0; start < std::uint64_t{1} << 32; start += kRange) {
    auto x_bits = static_cast<std::uint32_t>(start + random() % kRange);
    auto y_bits = static_cast<std::uint32_t>(random());
    if (random() % 2 == 0) y_bits = (y_bits & 0x83ffffffu) | (x_bits & 0x7c000000u);
    auto x = std::bit_cast<float>(x_bits);
    auto y = std::bit_cast<float>(y_bits);
    double exact = f.exact(static_cast<double>(x), static_cast<double>(y));
    float got = f.host(x, y);
    double error = test::ulp_error(got, exact);
    steps = std::max(steps, test::f32_steps(got, exact));
    if (error > worst) {
      worst = error;
      worst_x = x;
      worst_y = y;
    }
  }
  EXPECT_LE(worst, f.bound_ulp) << f.name << '(' << worst_x << ", " << worst_y << "), seed "
                                << kSeed;
  if (f.cuda_steps >= 0) {
    EXPECT_LE(steps, f.cuda_steps) << "CUDA's " << f.name << " is more exact";
  }
}

INSTANTIATE_TEST_SUITE_P(All, MathError,
                         testing::ValuesIn(math_functions().begin(), math_functions().end()),
                         [](const auto& row) { return std::string(row.param.name); });

struct Special {
  const char* name;
  float x, y, expected;
};

void PrintTo(const Special& s, std::ostream* out) {
  *out << s.name << '(' << s.x << ", " << s.y << ')';
}

bool same(float a, float b) {
  return (a != a && b != b) || std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

TEST(Math, GivesTheSpecialValuesOfAnnexF) {
  const Special rows[] = {
      {"exp", 0, 0, 1},
      {"exp", -0.0f, 0, 1},
      {"exp", kInf, 0, kInf},
      {"exp", -kInf, 0, 0},
      {"exp", kMin, 0, 1},
      {"exp", 100, 0, kInf},
      {"exp", -103.9f, 0, kMin},
      {"exp", -105, 0, 0},
      {"exp2", -kInf, 0, 0},
      {"exp2", -149, 0, kMin},
      {"exp2", 128, 0, kInf},
      {"expm1", -0.0f, 0, -0.0f},
      {"expm1", 0, 0, 0},
      {"expm1", kMin, 0, kMin},
      {"expm1", -kInf, 0, -1},
      {"expm1", kInf, 0, kInf},
      {"log", 0, 0, -kInf},
      {"log", -0.0f, 0, -kInf},
      {"log", 1, 0, 0},
      {"log", -1, 0, kNan},
      {"log", kInf, 0, kInf},
      {"log", -kInf, 0, kNan},
      {"log", -kMin, 0, kNan},
      {"log2", 0, 0, -kInf},
      {"log2", 1, 0, 0},
      {"log2", kMin, 0, -149},
      {"log2", -2, 0, kNan},
      {"log1p", -0.0f, 0, -0.0f},
      {"log1p", 0, 0, 0},
      {"log1p", -1, 0, -kInf},
      {"log1p", -2, 0, kNan},
      {"log1p", kInf, 0, kInf},
      {"log1p", kMin, 0, kMin},
      {"sin", -0.0f, 0, -0.0f},
      {"sin", 0, 0, 0},
      {"sin", kInf, 0, kNan},
      {"sin", kMin, 0, kMin},
      {"cos", -0.0f, 0, 1},
      {"cos", -kInf, 0, kNan},
      {"tan", -0.0f, 0, -0.0f},
      {"tan", 0, 0, 0},
      {"tan", kInf, 0, kNan},
      {"asin", -0.0f, 0, -0.0f},
      {"asin", 1.0000001f, 0, kNan},
      {"asin", -kInf, 0, kNan},
      {"acos", 1, 0, 0},
      {"acos", -1.5f, 0, kNan},
      {"acos", -1, 0, 0x1.921fb6p+1f},
      {"atan", -0.0f, 0, -0.0f},
      {"atan", kInf, 0, 0x1.921fb6p+0f},
      {"atan", -kInf, 0, -0x1.921fb6p+0f},
      {"sinh", -0.0f, 0, -0.0f},
      {"sinh", -kInf, 0, -kInf},
      {"cosh", -0.0f, 0, 1},
      {"cosh", -kInf, 0, kInf},
      {"cosh", 90, 0, kInf},
      {"tanh", -0.0f, 0, -0.0f},
      {"tanh", kInf, 0, 1},
      {"tanh", -kInf, 0, -1},
      {"tanh", kMin, 0, kMin},
      {"erf", -0.0f, 0, -0.0f},
      {"erf", kInf, 0, 1},
      {"erf", -kInf, 0, -1},
      {"erf", kMin, 0, kMin},
      {"erfc", kInf, 0, 0},
      {"erfc", -kInf, 0, 2},
      {"erfc", -0.0f, 0, 1},
      {"lgamma", 1, 0, 0},
      {"lgamma", 2, 0, 0},
      {"lgamma", 0, 0, kInf},
      {"lgamma", -0.0f, 0, kInf},
      {"lgamma", -3, 0, kInf},
      {"lgamma", -kInf, 0, kInf},
      {"lgamma", kInf, 0, kInf},
      {"cbrt", -0.0f, 0, -0.0f},
      {"cbrt", -kInf, 0, -kInf},
      {"cbrt", -27, 0, -3},
      {"rsqrt", 0, 0, kInf},
      {"rsqrt", -0.0f, 0, -kInf},
      {"rsqrt", kInf, 0, 0},
      {"rsqrt", -1, 0, kNan},
      {"sigmoid", -kInf, 0, 0},
      {"sigmoid", kInf, 0, 1},
      {"sigmoid", -0.0f, 0, 0.5f},
      {"sigmoid", -103.9f, 0, kMin},
      {"pow", 0, 3, 0},
      {"pow", -0.0f, 3, -0.0f},
      {"pow", -0.0f, 2, 0},
      {"pow", -0.0f, -3, -kInf},
      {"pow", -0.0f, -2, kInf},
      {"pow", 0, -0.5f, kInf},
      {"pow", -1, kInf, 1},
      {"pow", -1, -kInf, 1},
      {"pow", 1, kNan, 1},
      {"pow", kNan, 0, 1},
      {"pow", kNan, -0.0f, 1},
      {"pow", -2, 0.5f, kNan},
      {"pow", -8, 3, -512},
      {"pow", 0.5f, -kInf, kInf},
      {"pow", 2, -kInf, 0},
      {"pow", 0.5f, kInf, 0},
      {"pow", 2, kInf, kInf},
      {"pow", -kInf, -3, -0.0f},
      {"pow", -kInf, -2, 0},
      {"pow", -kInf, 3, -kInf},
      {"pow", -kInf, 0.5f, kInf},
      {"pow", kInf, -1, 0},
      {"pow", kInf, 0.25f, kInf},
      {"pow", -1, 16777218, 1},
      {"pow", -1, 16777215, -1},
      {"pow", kNan, 1, kNan},
      {"pow", 0, 1e-30f, 0},
      {"pow", -0.0f, 0.5f, 0},
      {"atan2", 0, -0.0f, 0x1.921fb6p+1f},
      {"atan2", -0.0f, -0.0f, -0x1.921fb6p+1f},
      {"atan2", 0, 0, 0},
      {"atan2", -0.0f, 0, -0.0f},
      {"atan2", -0.0f, 1, -0.0f},
      {"atan2", 1, 0, 0x1.921fb6p+0f},
      {"atan2", -1, -0.0f, -0x1.921fb6p+0f},
      {"atan2", 1, -kInf, 0x1.921fb6p+1f},
      {"atan2", 1, kInf, 0},
      {"atan2", kInf, 1, 0x1.921fb6p+0f},
      {"atan2", kNan, 1, kNan},
      {"atan2", 1, kNan, kNan},
      {"hypot", kInf, kNan, kInf},
      {"hypot", kNan, -kInf, kInf},
      {"hypot", 3, -4, 5},
      {"hypot", kNan, 1, kNan},
      {"hypot", -0.0f, 0, 0},
      {"hypot", kMax, kMax, kInf},
      {"hypot", 3 * kMin, 4 * kMin, 5 * kMin},
      {"fmod", -0.0f, 1, -0.0f},
      {"fmod", -6, 3, -0.0f},
      {"fmod", kInf, 1, kNan},
      {"fmod", 1, 0, kNan},
      {"fmod", 5, kInf, 5},
      {"fmod", kMax, kMin, 0},
      {"fmod", kMax, 11 * kMin, 10 * kMin},
      {"fmod", kNan, 1, kNan},
      {"fmod", 1, kNan, kNan},
      {"fmod", -5.5f, 2, -1.5f},
  };
  for (const Special& row : rows) {
    float got = call(row.name, row.x, row.y);
    EXPECT_TRUE(same(got, row.expected))
        << testing::PrintToString(row) << " is " << got << ", not " << row.expected;
  }
}

TEST(Math, HasTheDiagonalsOfAtan2AtInfinity) {
  constexpr double kQuarter = 0x1.921fb54442d18p-1;  // pi / 4
  double bound = function("atan2").bound_ulp;
  EXPECT_LE(test::ulp_error(call("atan2", kInf, kInf), kQuarter), bound);
  EXPECT_LE(test::ulp_error(call("atan2", -kInf, kInf), -kQuarter), bound);
  EXPECT_LE(test::ulp_error(call("atan2", kInf, -kInf), 3 * kQuarter), bound);
  EXPECT_LE(test::ulp_error(call("atan2", -kInf, -kInf), -3 * kQuarter), bound);
}

TEST(Math, PropagatesNaN) {
  for (const MathFunction& f : math_functions()) {
    EXPECT_TRUE(std::isnan(f.host(kNan, 2))) << f.name;
    if (f.arguments == 2) {
      EXPECT_TRUE(std::isnan(f.host(2, kNan))) << f.name;
    }
  }
}

TEST(Math, IsExactWherePowersOfTwoAre) {
  for (int k = -126; k <= 127; ++k) {
    float power = std::ldexp(1.0f, k);
    EXPECT_EQ(call("log2", power), static_cast<float>(k));
    EXPECT_EQ(call("pow", 2, static_cast<float>(k)), power);
    if (k % 3 == 0) {
      EXPECT_EQ(call("cbrt", power), std::ldexp(1.0f, k / 3));
    }
  }
}

TEST(Math, ReducesTheHardestArguments) {
  // The first lies within 2^-29 of a multiple of pi/2.
  for (float x : {0x1.f37c8ap+95f, 0x1.921fb6p+0f, 0x1.921fb6p+24f, 0x1.2d97c8p+2f,
                  0x1.fffffep+127f, 131071.99f, 131072.0f}) {
    for (const char* name : {"sin", "cos", "tan"}) {
      const MathFunction& f = function(name);
      EXPECT_LE(test::ulp_error(f.host(x, 0), f.exact(static_cast<double>(x), 0)), f.bound_ulp)
          << name << '(' << x << ')';
    }
  }
}

TEST(Math, F64StaysWithinItsBound) {
  if (std::numeric_limits<long double>::digits < 64)
    GTEST_SKIP() << "no wider type to compare with";
  constexpr double kBound = 1.2;  // ulp, as docs/maths.md says
  std::mt19937_64 random(2);
  std::uniform_real_distribution<double> exponent(-745, 709.7);
  std::uniform_real_distribution<double> near_one(0.5, 2);
  for (int i = 0; i < 200'000; ++i) {
    double x = exponent(random);
    ASSERT_LE(ulp_error_f64(lang::exp_f64(F64(x)).v, std::exp(static_cast<long double>(x))), kBound)
        << x;
    double m = i % 2 == 0 ? near_one(random) : std::exp(x);
    ASSERT_LE(ulp_error_f64(lang::log_f64(F64(m)).v, std::log(static_cast<long double>(m))), kBound)
        << m;
  }
  constexpr double kInf64 = std::numeric_limits<double>::infinity();
  EXPECT_EQ(lang::log_f64(F64(0)).v, -kInf64);
  EXPECT_EQ(lang::log_f64(F64(kInf64)).v, kInf64);
  EXPECT_TRUE(std::isnan(lang::log_f64(F64(-1)).v));
  EXPECT_EQ(lang::exp_f64(F64(-kInf64)).v, 0);
  EXPECT_EQ(lang::exp_f64(F64(kInf64)).v, kInf64);
  EXPECT_TRUE(std::isnan(lang::exp_f64(F64(static_cast<double>(kNan))).v));
}

TEST(Math, F64SineAndCosineStayWithinTheirBound) {
  if (std::numeric_limits<long double>::digits < 64)
    GTEST_SKIP() << "no wider type to compare with";
  constexpr double kBound = 1;  // ulp, as docs/maths.md says
  std::mt19937_64 random(3);
  // The second and third are the f64 closest to a multiple of pi/2 (J.-M. Muller, Elementary
  // Functions, section 11.1) and 2^20, from where on all digits of pi are taken.
  std::vector<double> inputs{0x1p-27,
                             6381956970095103.0 * 0x1p+797,
                             0x1p+20,
                             0x1.fffffffffffffp+19,
                             0x1.fffffffffffffp+1023,
                             0x1p-1022};
  for (int i = 0; i < 300'000; ++i) {
    double any = std::bit_cast<double>(random());
    double multiple = std::round(std::ldexp(1.0, i % 60)) * 0x1.921fb54442d18p+0;
    if (std::isfinite(any)) inputs.push_back(any);
    inputs.push_back(
        std::ldexp(static_cast<double>(static_cast<std::int64_t>(random())), -60 + i % 20));
    inputs.push_back(i % 2 == 0 ? std::nextafter(multiple, 0.0) : multiple);
  }
  for (double x : inputs) {
    auto wide = static_cast<long double>(x);
    ASSERT_LE(ulp_error_f64(lang::sin_f64(F64(x)).v, std::sin(wide)), kBound) << std::hexfloat << x;
    ASSERT_LE(ulp_error_f64(lang::cos_f64(F64(x)).v, std::cos(wide)), kBound) << std::hexfloat << x;
  }
  for (double x :
       {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_TRUE(std::isnan(lang::sin_f64(F64(x)).v));
    EXPECT_TRUE(std::isnan(lang::cos_f64(F64(-x)).v));
  }
  EXPECT_TRUE(std::signbit(lang::sin_f64(F64(-0.0)).v));
  EXPECT_FALSE(std::signbit(lang::sin_f64(F64(0.0)).v));
}

TEST(Math, F64PowersStayWithinTheirBound) {
  if (std::numeric_limits<long double>::digits < 64)
    GTEST_SKIP() << "no wider type to compare with";
  constexpr double kBound = 1.2;  // ulp, as docs/maths.md says; powl adds 2^-11 at most
  std::mt19937_64 random(5);
  std::uniform_real_distribution<double> exponent(-1080, 1024);
  std::uniform_real_distribution<double> near_one(0.5, 2);
  for (int i = 0; i < 200'000; ++i) {
    double x = i % 2 == 0 ? near_one(random) : std::abs(std::bit_cast<double>(random()));
    double y = exponent(random) / std::log2(x);
    if (!std::isfinite(x) || x == 0 || x == 1) continue;
    ASSERT_LE(ulp_error_f64(lang::pow_f64(F64(x), F64(y)).v,
                            std::pow(static_cast<long double>(x), static_cast<long double>(y))),
              kBound)
        << std::hexfloat << x << " " << y;
  }
  constexpr double kInf64 = std::numeric_limits<double>::infinity();
  constexpr double kSpecial[] = {0.0,       -0.0,       1,
                                 -1,        0.5,        -0.5,
                                 2,         -2,         3,
                                 -3,        2.5,        -1.5,
                                 0x1p+53,   -0x1p+53,   0x1.fffffffffffffp+52,
                                 0x1p+1023, -0x1p+1023, 0x1p-1074,
                                 kInf64,    -kInf64,    std::numeric_limits<double>::quiet_NaN()};
  for (double x : kSpecial) {
    for (double y : kSpecial) {
      double expected = std::pow(x, y);
      double got = lang::pow_f64(F64(x), F64(y)).v;
      bool exact = expected == 0 || !std::isfinite(expected);
      bool same = std::isnan(expected)
                      ? std::isnan(got)
                      : std::signbit(got) == std::signbit(expected) &&
                            (exact ? got == expected : ulp_error_f64(got, expected) <= kBound);
      EXPECT_TRUE(same) << x << " ^ " << y << ": " << got << " instead of " << expected;
    }
  }
}

}  // namespace
}  // namespace tilewright
