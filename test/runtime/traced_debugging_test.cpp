// SPDX-License-Identifier: Apache-2.0
// printf and assertions of traced kernels, run on the test device.
#include "runtime/traced_fixture.h"
#include "tilewright/control.h"
#include "tilewright/debugging.h"
#include "tilewright/thread.h"

namespace tilewright {
namespace {

class TracedDebugging : public test::TracedTest {
 protected:
  /// What the kernel prints; a GPU writes it to standard output.
  template <class Body, class... Vectors>
  std::string printed(const Body& body, const Vectors&... vectors) {
    testing::internal::CaptureStdout();
    run({.grid = {1, 1, 1}, .block = {32, 1, 1}}, body, vectors...);
    std::string captured = testing::internal::GetCapturedStdout();
    return emulated() ? device.last_report().output : captured;
  }
};

TEST_F(TracedDebugging, PrintsEveryKindOfValue) {
  test::DeviceVector x = vector(f32, std::vector<float>{1.5f, -2.25f});
  std::string text = printed(
      [](const Tensor& in) {
        if_(thread_idx().x == 3, [&] {
          Value i = thread_idx().x;
          Value a = in(0).load();
          printf_("%d %5u|%-4d|%x %c%%\n", i - 5, i.to(u32), i, i * 100, 'w');
          printf_("%lld %llx\n", i.to(s64) * -5'000'000'000, constant(u64, 255) + i.to(u64));
          printf_("%f %.3f %g %e\n", a, in(1).load().to(f16), a.to(bf16), a.to(f64) * 2);
          printf_("%d %u %d %f\n", i.to(s16) - 4, i.to(u8), i > 2, 7);
        });
      },
      x);
  EXPECT_EQ(text,
            "-2     3|3   |12c w%\n"
            "-15000000000 102\n"
            "1.500000 -2.250 1.5 3.000000e+00\n"
            "-1 3 1 7.000000\n");
}

TEST_F(TracedDebugging, PrintsWithoutValuesAndFromLoops) {
  std::string text = printed([] {
    if_(thread_idx().x == 0, [] {
      printf_("from\n");
      for_(0, 3, 1, [](const Value& i) { printf_("%d%d\n", i, i * i); });
    });
  });
  EXPECT_EQ(text, "from\n00\n11\n24\n");
}

TEST_F(TracedDebugging, ReportsAFailedAssertionWithTheLine) {
  if (!emulated()) GTEST_SKIP() << "a failed assertion leaves a GPU's context unusable";
  test::DeviceVector x = vector(f32, std::vector<float>{1, 2, 3, -4});
  int line = 0;
  run(
      {.grid = {1, 1, 1}, .block = {4, 1, 1}},
      [&](const Tensor& in) {
        line = __LINE__ + 1;
        assert_(in(thread_idx().x) > 0, "x must be positive");
      },
      x);
  std::vector<emu::Diagnostic> findings = device.take_findings();
  ASSERT_EQ(findings.size(), 1u);
  std::string text = emu::to_string(findings[0]);
  EXPECT_NE(text.find("fails an assertion: x must be positive, at "), text.npos) << text;
  EXPECT_NE(text.find("traced_debugging_test.cpp:" + std::to_string(line)), text.npos) << text;
  EXPECT_FALSE(device.last_report().completed);
}

TEST_F(TracedDebugging, RunsOnWhereAssertionsHold) {
  test::DeviceVector y = vector(s32, std::vector<std::int32_t>(4, 0));
  run(
      {.grid = {1, 1, 1}, .block = {4, 1, 1}},
      [](const Tensor& out) {
        assert_(thread_idx().x < 4, "known");
        assert_(out(thread_idx().x) == 0, "zeros");
        out(thread_idx().x) = thread_idx().x + 1;
      },
      y);
  EXPECT_EQ(download<std::int32_t>(y.buffer), (std::vector<std::int32_t>{1, 2, 3, 4}));
}

}  // namespace
}  // namespace tilewright
