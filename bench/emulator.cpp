// SPDX-License-Identifier: Apache-2.0
// Measures checked warp instructions a second, in CPU time: arithmetic, barriers, and what needs
// clocks: cp.async, mbarriers, atomics, clusters.
#include "tilewright/emulator.h"

#include "tilewright/module.h"

#include <benchmark/benchmark.h>
#include <cstring>
#include <string>

namespace tilewright::emu {
namespace {

struct Kernel {
  std::string body;  ///< of the loop
  std::uint32_t cluster = 1;
};

/// A kernel of 256 threads that runs the body `count` times; a thread has a word of shared memory
/// (%r3), another's (%r4), that of a peer in the cluster (%r10), and 16 bytes of global memory.
std::string text_of(const Kernel& kernel, int count) {
  return R"(.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out) {
  .reg .pred %p<3>;
  .reg .b32 %r<14>;
  .reg .b64 %rd<8>;
  .shared .align 16 .b8 words[1024];
  .shared .align 16 .b8 stage[4096];
  .shared .align 8 .b64 phases;
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
  mov.u32 %r10, %cluster_ctarank;
  mov.u32 %r11, %cluster_nctarank;
  add.s32 %r10, %r10, 1;
  rem.u32 %r10, %r10, %r11;
  mapa.shared::cluster.u32 %r10, %r3, %r10;
  setp.ne.u32 %p2, %r0, 0;
  @%p2 bra begin;
  mbarrier.init.shared.b64 [phases], 256;
begin:
  st.shared.u32 [%r3], %r0;
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;
again:
)" + kernel.body +
         "\n  add.s32 %r5, %r5, 1;\n  setp.lt.s32 %p0, %r5, " + std::to_string(count) + R"(;
  @%p0 bra again;
  bar.sync 0;
  mov.u32 %r13, %cluster_ctarank;
  shl.b32 %r13, %r13, 10;
  add.s32 %r13, %r13, %r0;
  mul.wide.u32 %rd3, %r13, 4;
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

/// Both waits of an iteration, on phases of even and odd parity.
std::string phase(int parity) {
  const std::string name = "wait_" + std::to_string(parity);
  return "  mbarrier.arrive.shared.b64 %rd5, [phases];\n" + name +
         ":\n  mbarrier.try_wait.parity.shared.b64 %p1, [phases], " + std::to_string(parity) +
         ";\n  @!%p1 bra " + name + ";\n";
}
const std::string kMbarriers = "  st.shared.u32 [%r3], %r6;\n" + phase(0) +
                               "  ld.shared.u32 %r7, [%r4];\n" + phase(1) + arithmetic(4);
const std::string kAtomics =
    "  red.global.add.u32 [%rd2], %r6;\n  atom.shared.add.u32 %r7, [%r3], 1;\n"
    "  atom.global.max.u32 %r12, [%rd2+4], %r5;\n" +
    arithmetic(4);
const std::string kMeeting = "  barrier.cluster.arrive.aligned;\n  barrier.cluster.wait.aligned;\n";
const std::string kClusters = "  st.shared::cluster.u32 [%r10], %r6;\n" + kMeeting +
                              "  ld.shared.u32 %r7, [%r3];\n" + kMeeting + arithmetic(4);

void run(benchmark::State& state, const Kernel& kernel, bool checked) {
  const ptx::Module module = ptx::parse(text_of(kernel, 500), "bench.ptx");
  Options options;
  options.checks = checked ? Checks::all() : Checks::none();
  std::uint64_t steps = 0;
  for (auto _ : state) {
    Machine machine(ptx::parse_target("sm_90a"));
    Launch launch;
    launch.program = machine.load(module);
    launch.entry = "k";
    launch.block.x = 256;
    launch.grid.x = launch.cluster.x = kernel.cluster;
    const std::uint64_t out = machine.allocate(8192);
    machine.fill(out, 8192, 0);
    launch.params.resize(8);
    std::memcpy(launch.params.data(), &out, 8);
    const LaunchReport report = machine.launch(launch, options);
    if (!report.completed || !report.findings.empty()) {
      return state.SkipWithError("the kernel did not end, or is not clean");
    }
    steps += report.steps;
  }
  state.counters["warp_instructions_per_second"] =
      benchmark::Counter(static_cast<double>(steps), benchmark::Counter::kIsRate);
}

BENCHMARK_CAPTURE(run, arithmetic_checked, Kernel{arithmetic(16)}, true);
BENCHMARK_CAPTURE(run, arithmetic_unchecked, Kernel{arithmetic(16)}, false);
BENCHMARK_CAPTURE(run, barriers_checked, Kernel{kBarriers}, true);
BENCHMARK_CAPTURE(run, barriers_unchecked, Kernel{kBarriers}, false);
BENCHMARK_CAPTURE(run, clocks_checked, Kernel{kClocks}, true);
BENCHMARK_CAPTURE(run, clocks_unchecked, Kernel{kClocks}, false);
BENCHMARK_CAPTURE(run, mbarriers_checked, Kernel{kMbarriers}, true);
BENCHMARK_CAPTURE(run, mbarriers_unchecked, Kernel{kMbarriers}, false);
BENCHMARK_CAPTURE(run, atomics_checked, Kernel{kAtomics}, true);
BENCHMARK_CAPTURE(run, atomics_unchecked, Kernel{kAtomics}, false);
BENCHMARK_CAPTURE(run, clusters_checked, Kernel{kClusters, 2}, true);
BENCHMARK_CAPTURE(run, clusters_unchecked, Kernel{kClusters, 2}, false);

}  // namespace
}  // namespace tilewright::emu
