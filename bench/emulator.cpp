// SPDX-License-Identifier: Apache-2.0
// Measures checked warp instructions a second, in CPU time: arithmetic, barriers, clocks.
#include "tilewright/emulator.h"

#include "tilewright/module.h"

#include <benchmark/benchmark.h>
#include <cstring>
#include <string>

namespace tilewright::emu {
namespace {

/// A kernel of 256 threads that runs `body` `count` times, with 1 KiB of shared memory.
std::string kernel(const std::string& body, int count) {
  return R"(.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out) {
  .reg .pred %p<2>;
  .reg .b32 %r<12>;
  .reg .b64 %rd<6>;
  .shared .align 16 .b8 words[1024];
  .shared .align 16 .b8 stage[4096];
  mov.u32 %r0, %tid.x;
  ld.param.u64 %rd0, [out];
  mov.u32 %r1, words;
  shl.b32 %r2, %r0, 2;
  add.s32 %r3, %r1, %r2;
  xor.b32 %r4, %r2, 128;
  add.s32 %r4, %r1, %r4;
  mov.u32 %r5, 0;
  mov.u32 %r6, %r0;
  mul.wide.u32 %rd1, %r0, 16;
  add.s64 %rd2, %rd0, %rd1;
  mov.u32 %r8, stage;
  shl.b32 %r9, %r0, 4;
  add.s32 %r8, %r8, %r9;
again:
)" + body +
         "\n  add.s32 %r5, %r5, 1;\n  setp.lt.s32 %p0, %r5, " + std::to_string(count) + R"(;
  @%p0 bra again;
  mul.wide.u32 %rd3, %r0, 4;
  add.s64 %rd4, %rd0, %rd3;
  st.global.u32 [%rd4], %r6;
  ret;
})";
}

std::string arithmetic(int n) {
  std::string out;
  for (int i = 0; i < n; ++i)
    out += "  mad.lo.s32 %r6, %r6, %r5, %r0;\n";
  return out;
}

const std::string kBarriers =
    "  st.shared.u32 [%r3], %r6;\n  bar.sync 0;\n"
    "  ld.shared.u32 %r7, [%r4];\n  bar.sync 0;\n" +
    arithmetic(12);
const std::string kClocks =
    "  cp.async.ca.shared.global [%r8], [%rd2], 16;\n"
    "  cp.async.commit_group;\n  cp.async.wait_group 0;\n"
    "  st.shared.u32 [%r3], %r6;\n  bar.sync 0;\n"
    "  ld.shared.u32 %r7, [%r4];\n  bar.sync 0;\n";

void run(benchmark::State& state, const std::string& body, bool checked) {
  const ptx::Module module = ptx::parse(kernel(body, 500), "bench.ptx");
  Options options;
  options.checks = checked ? Checks::all() : Checks::none();
  std::uint64_t steps = 0;
  for (auto _ : state) {
    Machine machine(ptx::parse_target("sm_90a"));
    Launch launch;
    launch.program = machine.load(module);
    launch.entry = "k";
    launch.block.x = 256;
    const std::uint64_t out = machine.allocate(4096);
    machine.fill(out, 4096, 0);
    launch.params.resize(8);
    std::memcpy(launch.params.data(), &out, 8);
    const LaunchReport report = machine.launch(launch, options);
    if (!report.completed) return state.SkipWithError("the kernel did not end");
    steps += report.steps;
  }
  state.counters["warp_instructions_per_second"] =
      benchmark::Counter(static_cast<double>(steps), benchmark::Counter::kIsRate);
}

BENCHMARK_CAPTURE(run, arithmetic_checked, arithmetic(16), true);
BENCHMARK_CAPTURE(run, arithmetic_unchecked, arithmetic(16), false);
BENCHMARK_CAPTURE(run, barriers_checked, kBarriers, true);
BENCHMARK_CAPTURE(run, barriers_unchecked, kBarriers, false);
BENCHMARK_CAPTURE(run, clocks_checked, kClocks, true);
BENCHMARK_CAPTURE(run, clocks_unchecked, kClocks, false);

}  // namespace
}  // namespace tilewright::emu
