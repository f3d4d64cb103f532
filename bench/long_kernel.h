// SPDX-License-Identifier: Apache-2.0
// What the benchmarks of the cache and of bundles share: a kernel of any length, and the clock.
#pragma once

#include "tilewright/cache.h"

#include <chrono>
#include <string>

namespace tilewright {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

inline constexpr const char* kFrontKey =
    "rms_norm v1 x=bf16(?,4096):(?{div=8},1) align=16 w=bf16(4096):(1) eps=1e-06 warps=4 rows=1";
inline constexpr ptx::Target kSm90a{90, 'a'};

/// A kernel of about `instructions` that the assembler cannot shorten; `seed` makes the text new.
inline KernelSource long_kernel(int instructions, int seed) {
  std::string text =
      ".version 8.0\n.target sm_90a\n.address_size 64\n"
      ".visible .entry chain(.param .u64 data)\n{\n"
      "  .reg .u64 %rd<2>; .reg .u32 %r<3>;\n"
      "  ld.param.u64 %rd1, [data];\n  ld.global.u32 %r1, [%rd1];\n  mov.u32 %r2, " +
      std::to_string(seed) + ";\n";
  for (int i = 0; i < instructions; i += 2) {
    text += "  mad.lo.u32 %r1, %r1, %r2, " + std::to_string(i + 3) + ";\n";
    text += "  xor.b32 %r2, %r2, %r1;\n";
  }
  return {
      .ptx = text + "  st.global.u32 [%rd1], %r2;\n  ret;\n}\n", .entry = "chain", .metadata = {}};
}

}  // namespace tilewright
