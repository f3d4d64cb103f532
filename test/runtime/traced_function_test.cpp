// SPDX-License-Identifier: Apache-2.0
// Out-of-line functions and included PTX, run on the test device.
#include "runtime/traced_fixture.h"
#include "tilewright/control.h"
#include "tilewright/debugging.h"
#include "tilewright/fragment.h"
#include "tilewright/function.h"
#include "tilewright/thread.h"

namespace tilewright {
namespace {

using TracedFunction = test::TracedTest;

/// Steps of the Collatz sequence until 1: a loop that differs between threads.
Value collatz(const Value& start) {
  Var n(start);
  Var steps(s32, 0);
  while_([&] { return n != 1; },
         [&] {
           if_((n & 1) == 0, [&] { n = n / 2; }).else_([&] { n = n * 3 + 1; });
           steps += 1;
         });
  return steps;
}

TEST_F(TracedFunction, IsCalledUnderConditionsThatDiffer) {
  test::DeviceVector y = vector(s32, std::vector<std::int32_t>(64, -1));
  run(
      {.grid = {1, 1, 1}, .block = {64, 1, 1}},
      [](const Tensor& out) {
        auto steps = function_("collatz", collatz, s32);
        Value i = thread_idx().x;
        if_(i % 3 != 0, [&] { out(i) = steps(i + 1) + steps(3); });
      },
      y);
  std::vector<std::int32_t> got = download<std::int32_t>(y.buffer);
  for (int i = 0; i < 64; ++i) {
    int steps = 0;
    for (int n = i + 1; n != 1; ++steps)
      n = n % 2 == 0 ? n / 2 : 3 * n + 1;
    EXPECT_EQ(got[static_cast<std::size_t>(i)], i % 3 == 0 ? -1 : steps + 7) << i;
  }
}

TEST_F(TracedFunction, CallsOthersAndTakesEveryWidth) {
  test::DeviceVector y = vector(f64, std::vector<double>(64, 0));
  run(
      {.grid = {1, 1, 1}, .block = {32, 1, 1}},
      [](const Tensor& out) {
        auto square = function_(
            "square", [](const Value& x) { return x * x; }, f64);
        auto both = function_(
            "both",
            [&](const Value& half, const Value& whole, const Value& wide) {
              Value x = half.to(f32).to(f64);
              return std::vector<Value>{half + 1, square(x + whole.to(f64)), square(wide)};
            },
            f16, s32, f64);
        Value i = thread_idx().x;
        std::vector<Value> results = both(i.to(f16), i, i.to(f64) / 2);
        out(i) = results[1] + results[2];
        out(i + 32) = results[0].to(f32).to(f64);
      },
      y);
  std::vector<double> got = download<double>(y.buffer);
  for (std::size_t i = 0; i < 32; ++i) {
    auto x = static_cast<double>(i);
    EXPECT_EQ(got[i], 4 * x * x + x * x / 4);
    EXPECT_EQ(got[i + 32], x + 1);
  }
}

TEST_F(TracedFunction, WritesMemoryAndPrints) {
  test::DeviceVector y = vector(f32, std::vector<float>(4, 0));
  testing::internal::CaptureStdout();
  run(
      {.grid = {1, 1, 1}, .block = {4, 1, 1}},
      [](const Tensor& out) {
        auto put = function_(
            "put",
            [](const Value& address, const Value& x) {
              Tensor(f32, MemorySpace::global, address, Layout(Shape{1}), 4)(0) = x * 2;
              if_(x == 3, [&] { printf_("%g\n", x); });
            },
            u64, f32);
        put(out(thread_idx().x).address(), thread_idx().x.to(f32));
      },
      y);
  std::string captured = testing::internal::GetCapturedStdout();
  EXPECT_EQ(emulated() ? device.last_report().output : captured, "3\n");
  EXPECT_EQ(download<float>(y.buffer), (std::vector<float>{0, 2, 4, 6}));
}

TEST_F(TracedFunction, RunsIncludedPtx) {
  test::DeviceVector y = vector(u32, std::vector<std::uint32_t>(32, 0));
  run(
      {.grid = {1, 1, 1}, .block = {32, 1, 1}},
      [](const Tensor& out) {
        include_ptx(R"(.version 7.0
.target sm_70
.address_size 64
.global .b32 factors[4] = {3, 5, 7, 11};
.func (.param .b32 out) scaled(.param .b32 x)
{
  .reg .b32 %r<3>; .reg .b64 %rd<3>;
  ld.param.b32 %r0, [x];
  and.b32 %r1, %r0, 3;
  mul.wide.u32 %rd0, %r1, 4;
  mov.u64 %rd1, factors;
  add.u64 %rd2, %rd1, %rd0;
  ld.global.b32 %r1, [%rd2];
  mul.lo.u32 %r2, %r0, %r1;
  st.param.b32 [out], %r2;
  ret;
}
)");
        auto scaled = extern_function("scaled", u32, u32);
        out(thread_idx().x) = scaled(thread_idx().x.to(u32));
      },
      y);
  constexpr std::uint32_t kFactors[] = {3, 5, 7, 11};
  std::vector<std::uint32_t> got = download<std::uint32_t>(y.buffer);
  for (std::uint32_t i = 0; i < 32; ++i)
    EXPECT_EQ(got[i], i * kFactors[i % 4]);
}

TEST_F(TracedFunction, IsDefinedBeforeTheKernelRuns) {
  try {
    run({.grid = {1, 1, 1}, .block = {32, 1, 1}}, [] { extern_function("gone", u32, u32)(1); });
    FAIL() << "nothing defines it";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("gone"), std::string::npos) << error.message();
    EXPECT_NE(error.message().find("include_ptx"), std::string::npos) << error.message();
  }
}

}  // namespace
}  // namespace tilewright
