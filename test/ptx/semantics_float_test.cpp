// SPDX-License-Identifier: Apache-2.0
// f32 and f64 arithmetic against the C library's in each rounding mode; half precision against
// exact sums.
#include "ptx/semantics_lanes.h"
#include "ptx/semantics_reference.h"

#include <bit>
#include <cfenv>
#include <cmath>
#include <gtest/gtest.h>
#include <random>
#include <string>

namespace tilewright::ptx::semantics {
namespace {

constexpr std::uint64_t kSeed = 20'240;

struct Mode {
  const char* name;
  int fenv;
};
const Mode kModes[] = {
    {"rn", FE_TONEAREST}, {"rz", FE_TOWARDZERO}, {"rm", FE_DOWNWARD}, {"rp", FE_UPWARD}};

/// Floats of all kinds: any bits, small integers, near 1, near the least and the greatest.
std::uint32_t interesting(std::mt19937_64& random) {
  constexpr std::uint32_t kSpecial[] = {0,          0x80000000, 0x3f800000, 0xbf800000, 0x7f800000,
                                        0xff800000, 0x7fc12345, 0x00000001, 0x807fffff, 0x00800000,
                                        0x7f7fffff, 0xff7fffff, 0x7f800001};
  const auto bits = static_cast<std::uint32_t>(random());
  switch (random() % 6) {
    case 0:
      return kSpecial[random() % std::size(kSpecial)];
    case 1:
      return 0x3f800000u + (bits & 0x800001ff);
    case 2:
      return bits & 0x80ffffff;  // about the subnormals
    case 3:
      return (bits & 0x80ffffff) | 0x7e000000;  // about the greatest
    case 4:
      return 0x3e800000u + (bits & 0x80ffffff);
    default:
      return bits;
  }
}
std::uint64_t interesting_double(std::mt19937_64& random) {
  const std::uint64_t bits = random();
  switch (random() % 4) {
    case 0:
      return (bits & 0x800fffffffffffff);
    case 1:
      return 0x3ff0000000000000 + (bits & 0x80000000000001ff);
    case 2:
      return 0x3fd0000000000000 + (bits & 0x801fffffffffffff);
    default:
      return bits;
  }
}

float flushed(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x; }

enum class Operation { add, sub, mul, div, fma, rcp, sqrt };
template <class T>
T compute(Operation operation, T a, T b, T c) {
  volatile T x = a, y = b, z = c, one = 1;
  switch (operation) {
    case Operation::add:
      return x + y;
    case Operation::sub:
      return x - y;
    case Operation::mul:
      return x * y;
    case Operation::div:
      return x / y;
    case Operation::fma:
      return std::fma(x, y, z);
    case Operation::rcp:
      return one / x;
    case Operation::sqrt:
      return std::sqrt(x);
  }
  return 0;
}
struct Arithmetic {
  const char* name;
  Operation operation;
};
const Arithmetic kArithmetic[] = {{"add", Operation::add},  {"sub", Operation::sub},
                                  {"mul", Operation::mul},  {"div", Operation::div},
                                  {"fma", Operation::fma},  {"rcp", Operation::rcp},
                                  {"sqrt", Operation::sqrt}};

float in_mode(int mode, Operation operation, bool ftz, float a, float b, float c) {
  std::fesetround(mode);
  const float value = ftz ? flushed(compute(operation, flushed(a), flushed(b), flushed(c)))
                          : compute(operation, a, b, c);
  std::fesetround(FE_TONEAREST);
  return value;
}

void check_f32(const Arithmetic& arithmetic, const Mode& mode, bool ftz, Isa isa) {
  const std::string opcode =
      std::string(arithmetic.name) + "." + mode.name + (ftz ? ".ftz.f32" : ".f32");
  Execution run(opcode, isa);
  ASSERT_TRUE(run.meaning) << opcode;
  std::mt19937_64 random(kSeed);
  for (int round = 0; round < 300; ++round) {
    std::uint32_t inputs[3][32];
    for (int lane = 0; lane < 32; ++lane) {
      for (std::size_t i = 0; i < 3; ++i) {
        inputs[i][lane] = interesting(random);
        run.set(i, lane, inputs[i][lane]);
      }
    }
    run.execute(0xffffffffu);
    for (int lane = 0; lane < 32; ++lane) {
      const float a = std::bit_cast<float>(inputs[0][lane]);
      const float b = std::bit_cast<float>(inputs[1][lane]);
      const float c = std::bit_cast<float>(inputs[2][lane]);
      const float value = in_mode(mode.fenv, arithmetic.operation, ftz, a, b, c);
      const std::uint32_t expected =
          std::isnan(value) ? 0x7fffffffu : std::bit_cast<std::uint32_t>(value);
      ASSERT_EQ(run.result(lane), expected)
          << opcode << std::hex << " of 0x" << inputs[0][lane] << ", 0x" << inputs[1][lane]
          << ", 0x" << inputs[2][lane] << " at level " << static_cast<int>(isa);
    }
  }
  EXPECT_EQ(std::fegetround(), FE_TONEAREST) << opcode << " leaves the rounding mode changed";
}

TEST(SemanticsFloat, SinglePrecisionRoundsAsTheModeSays) {
  for (const Isa isa : available_isas()) {
    for (const Arithmetic& arithmetic : kArithmetic) {
      for (const Mode& mode : kModes) {
        for (const bool ftz : {false, true})
          check_f32(arithmetic, mode, ftz, isa);
      }
    }
  }
}

void check_f64(const Arithmetic& arithmetic, const Mode& mode, Isa isa) {
  const std::string opcode = std::string(arithmetic.name) + "." + mode.name + ".f64";
  Execution run(opcode, isa);
  ASSERT_TRUE(run.meaning) << opcode;
  std::mt19937_64 random(kSeed);
  for (int round = 0; round < 100; ++round) {
    std::uint64_t inputs[3][32];
    for (int lane = 0; lane < 32; ++lane) {
      for (std::size_t i = 0; i < 3; ++i) {
        inputs[i][lane] = interesting_double(random);
        run.set(i, lane, inputs[i][lane]);
      }
    }
    run.execute(0xffffffffu);
    for (int lane = 0; lane < 32; ++lane) {
      std::fesetround(mode.fenv);
      const double value =
          compute(arithmetic.operation, std::bit_cast<double>(inputs[0][lane]),
                  std::bit_cast<double>(inputs[1][lane]), std::bit_cast<double>(inputs[2][lane]));
      std::fesetround(FE_TONEAREST);
      if (std::isnan(value)) {
        ASSERT_TRUE(std::isnan(std::bit_cast<double>(run.result(lane)))) << opcode;
      } else {
        ASSERT_EQ(run.result(lane), std::bit_cast<std::uint64_t>(value))
            << opcode << " at level " << static_cast<int>(isa);
      }
    }
  }
}

TEST(SemanticsFloat, DoublePrecisionRoundsAsTheModeSays) {
  for (const Isa isa : available_isas()) {
    for (const Arithmetic& arithmetic : kArithmetic) {
      for (const Mode& mode : kModes)
        check_f64(arithmetic, mode, isa);
    }
  }
}

/// A finite code of the format, often of an exponent that makes sums nearly tie.
std::uint32_t half_code(const SlowFormat& format, std::mt19937_64& random) {
  const auto bits = static_cast<std::uint32_t>(random());
  return (bits & format.sign()) | (bits >> 16) % (format.largest() + 1);
}

struct HalfCase {
  const char* opcode;
  const SlowFormat* format;
  Operation operation;
};

/// x + rest is the exact result: sums and products of halves fit two doubles.
void exact(Operation operation, double a, double b, double c, double& x, double& rest) {
  const double first = operation == Operation::fma || operation == Operation::mul ? a * b : a;
  const double second = operation == Operation::fma ? c : operation == Operation::mul ? 0.0 : b;
  volatile double sum = first + second;
  volatile double second_part = sum - first;
  volatile double first_part = sum - second_part;
  x = sum;
  rest = (first - first_part) + (second - second_part);
  if (operation == Operation::mul) x = first;  // keeps the sign of zero
}

TEST(SemanticsFloat, HalfPrecisionRoundsOnce) {
  const HalfCase cases[] = {
      {"add.f16", &slow_f16(), Operation::add},
      {"mul.f16", &slow_f16(), Operation::mul},
      {"fma.rn.f16", &slow_f16(), Operation::fma},
      {"add.bf16", &slow_bf16(), Operation::add},
      {"mul.bf16", &slow_bf16(), Operation::mul},
      {"fma.rn.bf16", &slow_bf16(), Operation::fma},
      {"fma.rn.f16x2", &slow_f16(), Operation::fma},
      {"fma.rn.bf16x2", &slow_bf16(), Operation::fma},
  };
  for (const Isa isa : available_isas()) {
    for (const HalfCase& row : cases) {
      Execution run(row.opcode, isa);
      ASSERT_TRUE(run.meaning) << row.opcode;
      std::mt19937_64 random(kSeed);
      for (int round = 0; round < 1000; ++round) {
        std::uint32_t inputs[3][32];
        for (int lane = 0; lane < 32; ++lane) {
          for (std::size_t i = 0; i < 3; ++i) {
            inputs[i][lane] = half_code(*row.format, random);
            run.set(i, lane, inputs[i][lane] | inputs[i][lane] << 16);
          }
        }
        run.execute(0xffffffffu);
        for (int lane = 0; lane < 32; ++lane) {
          double x = 0, rest = 0;
          exact(row.operation, row.format->value(inputs[0][lane]),
                row.format->value(inputs[1][lane]), row.format->value(inputs[2][lane]), x, rest);
          const std::uint32_t expected =
              row.format->encode(x, Direction::nearest_even, false, rest);
          const auto result = static_cast<std::uint32_t>(run.result(lane));
          ASSERT_EQ(result & 0xffff, expected)
              << row.opcode << std::hex << " of 0x" << inputs[0][lane] << ", 0x" << inputs[1][lane]
              << ", 0x" << inputs[2][lane];
          if (std::string(row.opcode).ends_with("x2")) {
            ASSERT_EQ(result >> 16, expected) << row.opcode;
          }
        }
      }
    }
  }
}

TEST(SemanticsFloat, BfloatProductsOnATieListenToATinyAddend) {
  for (const Isa isa : available_isas()) {
    Execution run("fma.rn.bf16", isa);
    run.fill(0, 0x3f88);  // 1 + 2^-4
    run.fill(1, 0x3f88);  // squared: 1 + 2^-3 + 2^-8, a tie that goes down to even
    run.fill(2, 0);
    run.execute(0xffffffffu);
    EXPECT_EQ(run.result(0), 0x3f90u);
    run.fill(2, 0x0080);  // 2^-126 more
    run.execute(0xffffffffu);
    EXPECT_EQ(run.result(0), 0x3f91u);
  }
}

struct Approximation {
  const char* opcode;
  double (*function)(double);
  float low, high;
};

TEST(SemanticsFloat, ApproximationsAreTheRoundedDoubleValues) {
  const Approximation rows[] = {
      {"ex2.approx.f32", std::exp2, -150.0f, 129.0f}, {"lg2.approx.f32", std::log2, 1e-40f, 1e38f},
      {"tanh.approx.f32", std::tanh, -12.0f, 12.0f},  {"sin.approx.f32", std::sin, -50.0f, 50.0f},
      {"cos.approx.f32", std::cos, -50.0f, 50.0f},
  };
  for (const Approximation& row : rows) {
    for (const Isa isa : available_isas()) {
      Execution run(row.opcode, isa);
      EXPECT_FALSE(run.meaning.accuracy.empty()) << row.opcode;
      std::mt19937 random(3);
      for (int round = 0; round < 2000; ++round) {
        float inputs[32];
        for (int lane = 0; lane < 32; ++lane) {
          const double t = static_cast<double>(random()) / 4294967296.0;
          inputs[lane] = row.low + static_cast<float>(t) * (row.high - row.low);
          if (round % 2 == 0)
            inputs[lane] = std::ldexp(inputs[lane], -static_cast<int>(random() % 24));
          run.set(0, lane, std::bit_cast<std::uint32_t>(inputs[lane]));
        }
        run.execute(0xffffffffu);
        for (int lane = 0; lane < 32; ++lane) {
          const auto expected = static_cast<float>(row.function(static_cast<double>(inputs[lane])));
          ASSERT_EQ(std::bit_cast<float>(static_cast<std::uint32_t>(run.result(lane))), expected)
              << row.opcode << " of " << std::hexfloat << inputs[lane];
        }
      }
    }
  }
}

}  // namespace
}  // namespace tilewright::ptx::semantics
