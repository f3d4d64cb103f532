// SPDX-License-Identifier: Apache-2.0
// Tests of the maths functions as PTX: instruction counts, errors, lines.
#include "golden.h"
#include "tilewright/math_functions.h"
#include "tilewright/module.h"
#include "tilewright/tensor.h"
#include "tilewright/thread.h"
#include "tilewright/trace.h"

#include <gtest/gtest.h>
#include <string>

namespace tilewright {
namespace {

const TensorArg kMathVector{f32, Shape{Int(256)}, Stride{Int(1)}, 16};

template <class F>
Traced trace_unary(F function) {
  TraceOptions options{.name = "maths", .target = {90, 'a'}, .block = {256, 1, 1}};
  auto body = [&](const Tensor& x, const Tensor& y, const Tensor& out) {
    Value i = thread_idx().x;
    out(i) = function(x(i).load(), y(i).load());
  };
  return trace(options, body, kMathVector, kMathVector, kMathVector);
}

template <class F>
int instructions(F function) {
  Traced traced = trace_unary(function);
  int count = 0;
  for (const ptx::Stmt& statement : traced.module().functions.front().body) {
    count += std::holds_alternative<ptx::Instr>(statement) ? 1 : 0;
  }
  return count;
}

int overhead() {
  return instructions([](const Value& x, const Value&) { return rsqrt(x); }) - 1;
}

struct Activation {
  const char* name;
  Value (*function)(const Arg&);
};

TEST(MathTrace, NeedsTheRecordedNumberOfInstructions) {
  int base = overhead();
  std::string table;
  auto add = [&](std::string_view name, auto function) {
    table += std::string(name) + " " + std::to_string(instructions(function) - base) + "\n";
  };
  for (const MathFunction& f : math_functions()) {
    add(f.name, [&](const Value& x, const Value& y) { return f.traced(x, y); });
  }
  constexpr Activation kActivations[] = {
      {"silu", silu}, {"relu", relu}, {"gelu", gelu}, {"gelu_tanh", gelu_tanh}};
  for (const Activation& f : kActivations) {
    add(f.name, [&](const Value& x, const Value&) { return f.function(x); });
  }
  add("exp (f64)", [](const Value& x, const Value&) { return exp(x.to(f64)).to(f32); });
  add("log (f64)", [](const Value& x, const Value&) { return log(x.to(f64)).to(f32); });
  add("sin (f64)", [](const Value& x, const Value&) { return sin(x.to(f64)).to(f32); });
  add("cos (f64)", [](const Value& x, const Value&) { return cos(x.to(f64)).to(f32); });
  add("lgamma (f64)", [](const Value& x, const Value&) { return lgamma(x.to(f64)).to(f32); });
  add("pow (f64)",
      [](const Value& x, const Value& y) { return pow(x.to(f64), y.to(f64)).to(f32); });
  test::expect_golden("lang/maths_instructions.txt", table);
}

TEST(MathTrace, RoundsEveryOperation) {
  for (const MathFunction& f : math_functions()) {
    Traced traced = trace_unary([&](const Value& x, const Value& y) { return f.traced(x, y); });
    std::string text = ptx::print(traced.module());
    for (const char* loose : {"add.f32", "sub.f32", "mul.f32", ".ftz", "div.full", "div.approx"}) {
      EXPECT_EQ(text.find(loose), std::string::npos) << f.name << " has " << loose;
    }
    bool approximate = text.find(".approx") != std::string::npos;
    EXPECT_EQ(approximate, f.agreement == HostAgreement::approximate) << f.name;
  }
}

TEST(MathTrace, TakesF32Only) {
  try {
    trace_unary([](const Value& x, const Value&) { return tanh(x.to(f16)).to(f32); });
    FAIL() << "an f16 was accepted";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what())
                  .find("tanh: not defined for f16; it takes f32: convert with .to(f32)"),
              std::string::npos)
        << error.what();
  }
}

TEST(MathTrace, SharesWhatSineAndCosineHaveInCommon) {
  auto count = [](auto f) { return instructions(f) - overhead(); };
  int both = count([](const Value& x, const Value&) { return sin(x) + cos(x); });
  int sine = count([](const Value& x, const Value&) { return sin(x); });
  int cosine = count([](const Value& x, const Value&) { return cos(x); });
  EXPECT_LT(both, sine + cosine);  // though `both` has an addition more
}

}  // namespace
}  // namespace tilewright
