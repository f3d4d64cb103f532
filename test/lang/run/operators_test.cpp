// SPDX-License-Identifier: Apache-2.0
// Every operator over every type it takes, on edge values, between values and with constants.
#include "reference.h"
#include "run_fixture.h"

#include <cmath>
#include <functional>
#include <limits>

namespace tilewright::test {
namespace {

constexpr Type kIntegers[] = {u16, s16, u32, s32, u64, s64};
constexpr Type kReals[] = {f16, bf16, f32, f64};
constexpr Type kAll[] = {u16, s16, u32, s32, u64, s64, f16, bf16, f32, f64};

std::vector<std::uint64_t> edges(Type type) {
  std::vector<std::uint64_t> values;
  if (is_float(type)) {
    const double infinity = std::numeric_limits<double>::infinity();
    for (double x :
         {0.0, -0.0, 1.0, -1.0, 1.5, -2.25, 0.1, 3e4, 6e-8, infinity, -infinity, std::nan("")}) {
      values.push_back(real_bits(type, x));
    }
    return values;
  }
  std::uint64_t top = std::uint64_t{1} << (bits(type) - 1);
  for (std::uint64_t x : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{3},
                          std::uint64_t{7}, std::uint64_t{16}, std::uint64_t{100}, top - 1, top,
                          top + 1, ~std::uint64_t{0}, ~std::uint64_t{4}}) {
    values.push_back(cut(type, x));
  }
  return values;
}

Value literal(Type type, std::uint64_t raw) {
  if (is_float(type)) return constant(type, as_real(type, raw));
  return constant(type, as_signed(type, raw));
}

struct Operator {
  const char* name;
  Binary op;
  Value (*traced)(const Arg& a, const Arg& b);
};

const Operator kOperators[] = {
    {"+", Binary::add, operator+ },
     {"-", Binary::sub, operator- },
      {"*", Binary::mul, operator* },
       {"/", Binary::div, operator/ },
        {"%", Binary::rem, operator% },
         {"&", Binary::and_, operator& },
          {"|", Binary::or_, operator| },
           {"^", Binary::xor_, operator^ },
            {"<<", Binary::shl, operator<< },
             {
                 ">>",
                 Binary::shr,
                 operator>> },
                 {"min", Binary::min, [](const Arg& a, const Arg& b) { return min(a, b); }},
                 {"max", Binary::max, [](const Arg& a, const Arg& b) { return max(a, b); }},
            };

bool takes(Binary op, Type type) {
  if (!is_float(type)) return true;
  bool real = op == Binary::add || op == Binary::sub || op == Binary::mul || op == Binary::min ||
              op == Binary::max;
  return real || (op == Binary::div && (type == f32 || type == f64));
}

/// Divisors are never 0, which PTX leaves undefined, nor -1, whose quotient may overflow.
std::uint64_t fit_operand(Binary op, Type type, std::uint64_t b) {
  bool division = (op == Binary::div || op == Binary::rem) && !is_float(type);
  bool unfit = b == 0 || (is_signed(type) && b == cut(type, ~std::uint64_t{0}));
  if (division && unfit) return 5;
  return op == Binary::shl || op == Binary::shr ? b % 70 : b;
}

class Operators : public RunTest {
 protected:
  /// out(i, j) for all pairs of edges, one thread an i; `second` gives the other operand for j.
  template <class Trace, class Expect>
  void check(const char* name, Type type, Type result, const Trace& traced, const Expect& expect) {
    std::vector<std::uint64_t> values = edges(type);
    auto count = static_cast<std::int64_t>(values.size());
    Data in = vector_of(type, values);
    Data out(result, {count, count});
    auto body = [&](const Tensor& source, const Tensor& destination) {
      Value i = thread_idx().x;
      Value a = source(i);
      for (std::int64_t j = 0; j < count; ++j)
        destination(i, j) = traced(a, source, j);
    };
    run({.threads = static_cast<int>(count)}, body, in, out);
    for (std::size_t i = 0; i < values.size(); ++i) {
      for (std::size_t j = 0; j < values.size(); ++j) {
        std::uint64_t expected = expect(values[i], values[j]);
        std::uint64_t got = out.bits[i * values.size() + j];
        EXPECT_TRUE(same(result, got, expected))
            << tilewright::name(type) << ": " << std::hex << values[i] << " " << name << " "
            << values[j] << " is " << got << ", expected " << expected;
      }
    }
  }
};

TEST_F(Operators, AgreeWithTheHostBetweenValues) {
  for (const Operator& op : kOperators) {
    for (Type type : kAll) {
      if (!takes(op.op, type)) continue;
      bool shift = op.op == Binary::shl || op.op == Binary::shr;
      auto traced = [&](const Value& a, const Tensor& source, std::int64_t j) {
        Value b = source(j);
        if (shift) return op.traced(a, b.to(u32) % 70);
        bool division = !is_float(type) && (op.op == Binary::div || op.op == Binary::rem);
        if (!division) return op.traced(a, b);
        Value unfit = is_signed(type) ? b == 0 || b == -1 : b == 0;
        return op.traced(a, select(unfit, 5, b));
      };
      auto expect = [&](std::uint64_t a, std::uint64_t b) {
        std::uint64_t count = convert(u32, type, b) % 70;
        return binary(op.op, type, a, shift ? count : fit_operand(op.op, type, b));
      };
      if (shift && is_float(type)) continue;
      check(op.name, type, type, traced, expect);
    }
  }
}

TEST_F(Operators, AgreeWithTheHostForConstants) {
  for (const Operator& op : kOperators) {
    for (Type type : kAll) {
      if (!takes(op.op, type)) continue;
      std::vector<std::uint64_t> constants = edges(type);
      bool shift = op.op == Binary::shl || op.op == Binary::shr;
      auto b_of = [&](std::int64_t j) {
        return fit_operand(op.op, type, constants[static_cast<std::size_t>(j)]);
      };
      auto traced = [&](const Value& a, const Tensor&, std::int64_t j) {
        return op.traced(a, literal(shift ? u32 : type, b_of(j)));
      };
      auto expect = [&](std::uint64_t a, std::uint64_t b) {
        return binary(op.op, type, a, fit_operand(op.op, type, b));
      };
      check(op.name, type, type, traced, expect);
    }
  }
}

TEST_F(Operators, AgreeWithTheHostForConstantsOnTheLeft) {
  for (const Operator& op : kOperators) {
    bool shift = op.op == Binary::shl || op.op == Binary::shr;
    bool division = op.op == Binary::div || op.op == Binary::rem;
    if (shift || division) continue;
    for (Type type : kAll) {
      if (!takes(op.op, type)) continue;
      std::vector<std::uint64_t> constants = edges(type);
      auto traced = [&](const Value& a, const Tensor&, std::int64_t j) {
        return op.traced(literal(type, constants[static_cast<std::size_t>(j)]), a);
      };
      auto expect = [&](std::uint64_t a, std::uint64_t b) { return binary(op.op, type, b, a); };
      check(op.name, type, type, traced, expect);
    }
  }
}

TEST_F(Operators, FoldConstantsToWhatTheDeviceComputes) {
  for (const Operator& op : kOperators) {
    for (Type type : kAll) {
      if (!takes(op.op, type)) continue;
      std::vector<std::uint64_t> constants = edges(type);
      bool shift = op.op == Binary::shl || op.op == Binary::shr;
      Data out(type, {static_cast<std::int64_t>(constants.size()),
                      static_cast<std::int64_t>(constants.size())});
      auto body = [&](const Tensor& destination) {
        for (std::size_t i = 0; i < constants.size(); ++i) {
          for (std::size_t j = 0; j < constants.size(); ++j) {
            std::uint64_t b = fit_operand(op.op, type, constants[j]);
            destination(i, j) =
                op.traced(literal(type, constants[i]), literal(shift ? u32 : type, b));
          }
        }
      };
      run({.threads = 1}, body, out);
      for (std::size_t i = 0; i < constants.size(); ++i) {
        for (std::size_t j = 0; j < constants.size(); ++j) {
          std::uint64_t b = fit_operand(op.op, type, constants[j]);
          std::uint64_t expected = binary(op.op, type, constants[i], b);
          std::uint64_t got = out.bits[i * constants.size() + j];
          EXPECT_TRUE(same(type, got, expected))
              << name(type) << ": " << std::hex << constants[i] << " " << op.name << " " << b
              << " is " << got << ", expected " << expected;
        }
      }
    }
  }
}

TEST_F(Operators, CompareAsTheHostDoes) {
  struct Row {
    const char* name;
    Compare op;
    Value (*traced)(const Arg& a, const Arg& b);
  };
  const Row rows[] = {{"==", Compare::eq, operator== },
                       {"!=", Compare::ne, operator!= },
                        {"<", Compare::lt, operator<},
                         {"<=", Compare::le, operator<= },
                          {">", Compare::gt, operator> }, {">=", Compare::ge, operator>= } };
  for (const Row& row : rows) {
    for (Type type : kAll) {
      std::vector<std::uint64_t> constants = edges(type);
      auto expect = [&](std::uint64_t a, std::uint64_t b) {
        return std::uint64_t{compare(row.op, type, a, b)};
      };
      auto with_value = [&](const Value& a, const Tensor& source, std::int64_t j) {
        return row.traced(a, source(j).load()).to(s32);
      };
      check(row.name, type, s32, with_value, expect);
      auto with_constant = [&](const Value& a, const Tensor&, std::int64_t j) {
        return row.traced(a, literal(type, constants[static_cast<std::size_t>(j)])).to(s32);
      };
      check(row.name, type, s32, with_constant, expect);
    }
  }
}

TEST_F(Operators, NegateInvertAndTakeMagnitudes) {
  for (Type type : kAll) {
    check(
        "negated", type, type, [](const Value& a, const Tensor&, std::int64_t) { return -a; },
        [&](std::uint64_t a, std::uint64_t) { return negate(type, a); });
    if (is_signed(type)) {
      check(
          "magnitude", type, type,
          [](const Value& a, const Tensor&, std::int64_t) { return abs(a); },
          [&](std::uint64_t a, std::uint64_t) {
            bool negative = as_signed(type, a) < 0;
            return negative ? negate(type, a) : a;
          });
    }
  }
  for (Type type : kIntegers) {
    check(
        "inverted", type, type, [](const Value& a, const Tensor&, std::int64_t) { return ~a; },
        [&](std::uint64_t a, std::uint64_t) { return cut(type, ~a); });
  }
}

TEST_F(Operators, PropagateNanWhereAsked) {
  for (Type type : kReals) {
    if (type == f64) continue;
    auto expect = [&](std::uint64_t a, std::uint64_t b) {
      bool nan = is_nan(type, a) || is_nan(type, b);
      return nan ? real_bits(type, std::nan("")) : binary(Binary::max, type, a, b);
    };
    auto traced = [](const Value& a, const Tensor& source, std::int64_t j) {
      return max(a, source(j).load(), NanMode::propagate);
    };
    check("max.NaN", type, type, traced, expect);
  }
}

TEST_F(Operators, SelectByPredicate) {
  for (Type type : kAll) {
    auto traced = [](const Value& a, const Tensor& source, std::int64_t j) {
      return select(thread_idx().x < j, a, source(j).load());
    };
    std::vector<std::uint64_t> values = edges(type);
    auto count = static_cast<std::int64_t>(values.size());
    Data in = vector_of(type, values);
    Data out(type, {count, count});
    auto body = [&](const Tensor& source, const Tensor& destination) {
      Value i = thread_idx().x;
      for (std::int64_t j = 0; j < count; ++j)
        destination(i, j) = traced(source(i), source, j);
    };
    run({.threads = static_cast<int>(count)}, body, in, out);
    for (std::size_t i = 0; i < values.size(); ++i) {
      for (std::size_t j = 0; j < values.size(); ++j)
        EXPECT_EQ(out.bits[i * values.size() + j], values[i < j ? i : j]);
    }
  }
}

TEST_F(Operators, ConvertBetweenAllTypes) {
  constexpr Type kTypes[] = {u8, s8, u16, s16, u32, s32, u64, s64, f16, bf16, f32, f64};
  for (Type from : kTypes) {
    for (Type to : kTypes) {
      check(
          "converted", from, to,
          [&](const Value& a, const Tensor&, std::int64_t) { return a.to(to); },
          [&](std::uint64_t a, std::uint64_t) { return convert(to, from, a); });
      if (bits(from) < 16) continue;
      std::vector<std::uint64_t> constants = edges(from);
      check(
          "a converted constant", from, to,
          [&](const Value&, const Tensor&, std::int64_t j) {
            return literal(from, constants[static_cast<std::size_t>(j)]).to(to);
          },
          [&](std::uint64_t, std::uint64_t b) { return convert(to, from, b); });
    }
  }
}

TEST_F(Operators, KeepLateConstantsThroughOtherOperations) {
  // An index plus a constant is added only when a register is needed: here in every way.
  for (Type type : {u32, s32, u64, s64}) {
    Type other = bits(type) == 64 ? (type == u64 ? s64 : u64) : (type == u32 ? s32 : u32);
    std::vector<std::uint64_t> constants = edges(type);
    auto sum = [&](const Value& a, std::int64_t j) {
      return a + literal(type, constants[static_cast<std::size_t>(j)]);
    };
    auto host = [&](std::uint64_t a, std::uint64_t b) { return binary(Binary::add, type, a, b); };
    check(
        "+ c, other sign", type, other,
        [&](const Value& a, const Tensor&, std::int64_t j) { return sum(a, j).to(other); },
        [&](std::uint64_t a, std::uint64_t b) { return host(a, b); });
    check(
        "+ c, bits", type, bits(type) == 64 ? f64 : f32,
        [&](const Value& a, const Tensor&, std::int64_t j) {
          return sum(a, j).bitcast(bits(type) == 64 ? f64 : f32);
        },
        [&](std::uint64_t a, std::uint64_t b) { return host(a, b); });
    check(
        "+ c, widened", type, s64,
        [&](const Value& a, const Tensor&, std::int64_t j) { return sum(a, j).to(s64); },
        [&](std::uint64_t a, std::uint64_t b) { return convert(s64, type, host(a, b)); });
    check(
        "+ c, shifted", type, type,
        [&](const Value& a, const Tensor&, std::int64_t j) { return sum(a, j) >> 3; },
        [&](std::uint64_t a, std::uint64_t b) { return binary(Binary::shr, type, host(a, b), 3); });
    check(
        "(+ c) * 12", type, type,
        [&](const Value& a, const Tensor&, std::int64_t j) { return sum(a, j) * 12; },
        [&](std::uint64_t a, std::uint64_t b) {
          return binary(Binary::mul, type, host(a, b), 12);
        });
    check(
        "7 - (+ c)", type, type,
        [&](const Value& a, const Tensor&, std::int64_t j) { return 7 - sum(a, j); },
        [&](std::uint64_t a, std::uint64_t b) { return binary(Binary::sub, type, 7, host(a, b)); });
    check(
        "(+ c) % 8", type, type,
        [&](const Value& a, const Tensor&, std::int64_t j) { return sum(a, j) % 8; },
        [&](std::uint64_t a, std::uint64_t b) { return binary(Binary::rem, type, host(a, b), 8); });
    check(
        "(+ c) < 0x10", type, s32,
        [&](const Value& a, const Tensor&, std::int64_t j) {
          return (sum(a, j).to(other) < 16).to(s32);
        },
        [&](std::uint64_t a, std::uint64_t b) {
          return std::uint64_t{compare(Compare::lt, other, host(a, b), 16)};
        });
  }
}

TEST_F(Operators, MultiplyToTheWideAndHighHalves) {
  for (Type type : {u32, s32}) {
    Type wide = type == u32 ? u64 : s64;
    check(
        "wide", type, wide,
        [](const Value& a, const Tensor& source, std::int64_t j) {
          return mul_wide(a, source(j).load());
        },
        [&](std::uint64_t a, std::uint64_t b) {
          return binary(Binary::mul, wide, convert(wide, type, a), convert(wide, type, b));
        });
    check(
        "high", type, type,
        [](const Value& a, const Tensor& source, std::int64_t j) {
          return mul_hi(a, source(j).load());
        },
        [&](std::uint64_t a, std::uint64_t b) {
          return binary(Binary::mul, wide, convert(wide, type, a), convert(wide, type, b)) >> 32;
        });
  }
}

}  // namespace
}  // namespace tilewright::test
