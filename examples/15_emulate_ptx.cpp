// SPDX-License-Identifier: Apache-2.0
// Lesson 15: any PTX can be checked without a GPU; this text, from elsewhere, forgets a barrier.
#include "tilewright/emulator.h"
#include "tilewright/error.h"
#include "tilewright/module.h"

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

namespace tw = tilewright;

/// Each thread writes a word of shared memory and reads its neighbour's.
std::string neighbour(const std::string& barrier) {
  return R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry neighbour(.param .u64 out) {
  .reg .b32 %r<6>;
  .reg .b64 %rd<4>;
  .shared .align 4 .b8 words[256];
  ld.param.u64 %rd0, [out];
  mov.u32 %r0, %tid.x;
  mov.u32 %r1, words;
  shl.b32 %r2, %r0, 2;
  add.s32 %r3, %r1, %r2;
  st.shared.u32 [%r3], %r0;
  )" + barrier +
         R"(
  xor.b32 %r4, %r2, 128;
  add.s32 %r4, %r1, %r4;
  ld.shared.u32 %r5, [%r4];
  mul.wide.u32 %rd1, %r0, 4;
  add.s64 %rd2, %rd0, %rd1;
  st.global.u32 [%rd2], %r5;
  ret;
})";
}

// begin check
/// Runs the text with 64 threads; returns what is wrong with it.
std::vector<tw::emu::Diagnostic> check(const std::string& text, std::uint64_t seed) {
  tw::emu::Machine machine(tw::ptx::parse_target("sm_90a"));
  tw::emu::Launch launch;
  launch.program = machine.load(tw::ptx::parse(text, "neighbour.ptx"));
  launch.entry = "neighbour";
  launch.block = {64, 1, 1};
  std::uint64_t out = machine.allocate(256, "out");
  launch.params.resize(8);
  std::memcpy(launch.params.data(), &out, 8);
  tw::emu::Options options;
  options.seed = seed;
  return machine.launch(launch, options).findings;
}
// end check

int main() {
  try {
    // Happens-before decides, not who ran first: every seed reports the race.
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      std::vector<tw::emu::Diagnostic> findings = check(neighbour(""), seed);
      if (findings.empty() || findings[0].kind != tw::emu::Kind::race) {
        return std::printf("seed %d: the race was not reported\n", static_cast<int>(seed)), 1;
      }
      if (seed == 0) std::printf("%s\n", tw::emu::to_string(findings[0]).c_str());
    }
    std::size_t left = check(neighbour("bar.sync 0;"), 0).size();
    std::printf("with the barrier: %zu findings\n", left);
    return left == 0 ? 0 : 1;
  } catch (const tw::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
