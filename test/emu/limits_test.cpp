// SPDX-License-Identifier: Apache-2.0
// What untrusted PTX may use is bounded: reaching a limit is a finding, not a hang; memory is used
// where a kernel touches it.
#include "emu/bench.h"
#include "tilewright/emulator.h"

#include <gtest/gtest.h>

namespace tilewright::emu {
namespace {

using test::Kernel;
using test::Outcome;

Kernel kernel(std::string body, std::vector<std::int64_t> buffers) {
  Kernel k;
  k.body = std::move(body);
  k.buffers = std::move(buffers);
  return k;
}

void expect_limit(const Outcome& outcome, const std::string& message) {
  EXPECT_EQ(outcome.kinds(), "limit") << outcome.text();
  EXPECT_NE(outcome.text().find(message), std::string::npos) << outcome.text();
  EXPECT_FALSE(outcome.report.ok());
}

TEST(Limits, StepsEndALongKernel) {
  // Memory changes in each turn of the loop, so it does not stand still.
  const Kernel k = kernel(
      "mov.u32 %r2, 0;\nagain:\nadd.u32 %r2, %r2, 1;\nst.global.u32 [%rd0], %r2;\n"
      "setp.ne.u32 %p0, %r2, 4000000000;\n@%p0 bra again;\n",
      {4});
  Options options;
  options.limits.steps = 10'000;
  Kernel one = k;
  one.block.x = 1;
  expect_limit(run(one, options), "reached the limit of 10000 warp instructions");
}

TEST(Limits, IdleStepsEndALoopThatChangesNothing) {
  Kernel k = kernel(
      "mov.u32 %r2, 0;\nagain:\nadd.u32 %r2, %r2, 1;\nsetp.ne.u32 %p0, %r2, 4000000000;\n"
      "@%p0 bra again;\n",
      {4});
  k.block.x = 1;
  Options options;
  options.limits.idle_steps = 50'000;
  expect_limit(run(k, options), "50000 warp instructions without any change of memory");
}

TEST(Limits, MemoryEndsAKernelThatTouchesMuch) {
  // Each thread writes to a page of its own, 1 MiB in all and as much again to watch over it.
  Kernel k = kernel(
      "mul.wide.u32 %rd1, %r0, 4096;\nadd.s64 %rd1, %rd0, %rd1;\n"
      "st.global.u32 [%rd1], %r0;\n",
      {256 * 4096});
  k.block.x = 256;
  Options options;
  options.limits.memory_bytes = 1 << 19;
  expect_limit(run(k, options), "touched more than 524288 bytes of host memory");
  options.limits.memory_bytes = std::int64_t{1} << 26;
  EXPECT_TRUE(run(k, options).report.ok());
}

TEST(Limits, OutputEndsWhereTheLimitIs) {
  Kernel k = kernel(
      "st.local.u32 [slots], %r0;\nmov.u64 %rd1, text;\ncvta.global.u64 %rd1, %rd1;\n"
      "mov.u64 %rd2, slots;\ncvta.local.u64 %rd2, %rd2;\n"
      "{\n.param .b64 a;\n.param .b64 b;\n.param .b32 r;\nst.param.b64 [a], %rd1;\n"
      "st.param.b64 [b], %rd2;\ncall.uni (r), vprintf, (a, b);\nld.param.b32 %r3, [r];\n}\n",
      {4});
  k.shared = ".local .align 8 .b8 slots[8];";
  k.functions =
      ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n"
      ".global .align 1 .b8 text[4] = {37, 100, 10, 0};\n";  // "%d\n"
  k.block.x = 32;
  Options options;
  options.limits.output_bytes = 20;
  const Outcome outcome = run(k, options);
  expect_limit(outcome, "printed more than 20 bytes; raise Limits::output_bytes");
  EXPECT_EQ(outcome.report.output.size(), 20U);
}

TEST(Limits, AHundredThousandBlocksUseMemoryForWhatTheyTouch) {
  // 12.8 MB are written: 3,125 pages of 4 KiB, each with 0.5 KiB of what was initialised and less
  // than 2 KiB of records of accesses. The blocks themselves are reused.
  constexpr std::uint32_t kBlocks = 100'000;
  Kernel k = kernel(
      "mad.lo.u32 %r2, %r1, 32, %r0;\nmul.wide.u32 %rd1, %r2, 4;\n"
      "add.s64 %rd1, %rd0, %rd1;\nst.global.u32 [%rd1], %r2;\n",
      {std::int64_t{128} * kBlocks});
  k.written = false;
  k.grid.x = kBlocks;
  k.block.x = 32;
  Options options;
  options.limits.memory_bytes = std::int64_t{3125} * (4096 + 512 + 2048);
  const Outcome outcome = run(k, options);
  EXPECT_TRUE(outcome.report.ok()) << outcome.text();
  EXPECT_EQ(outcome.words[0].back(), 32 * kBlocks - 1);
}

}  // namespace
}  // namespace tilewright::emu
