// SPDX-License-Identifier: Apache-2.0
// Atomics of a whole warp give what they give lane after lane, whatever pattern the addresses make.
#include "emu/bench.h"

#include <gtest/gtest.h>

namespace tilewright::emu {
namespace {

using test::Kernel;
using test::Outcome;
using test::run;

struct Pattern {
  std::string name;
  std::uint32_t stride = 0;  ///< in elements
  bool odd_lanes = false;    ///< alone
};

/// Each lane updates its element twice and keeps what it saw. An acquire or release makes the
/// emulator go lane by lane.
Kernel kernel(const std::string& operation, const Pattern& p, const std::string& order) {
  const bool wide = operation.ends_with("64");
  const std::string size = wide ? "8" : "4", reg = wide ? "%rd" : "%r";
  const std::string guard = p.odd_lanes ? "@%p1 " : "";
  const std::string values = operation.starts_with("cas") ? reg + "30, " + reg + "31" : reg + "31";
  const std::string atom =
      guard + "atom." + order + ".gpu.global." + operation + " " + reg + "32, [%rd21], ";
  return {
      "and.b32 %r20, %r0, 1;\nsetp.ne.u32 %p1, %r20, 0;\n"
      "mul.lo.u32 %r21, %r0, " +
          std::to_string(p.stride) +
          ";\n"
          "mul.wide.u32 %rd20, %r21, " +
          size +
          ";\nadd.s64 %rd21, %rd0, %rd20;\n"
          "mul.wide.u32 %rd22, %r0, " +
          size +
          ";\nadd.s64 %rd23, %rd1, %rd22;\n"
          // From -16 to 15, and where cas compares, 0 is found in every element.
          "sub.s32 %r31, %r0, 16;\ncvt.s64.s32 %rd31, %r31;\nmov.u32 %r30, 0;\nmov.u64 %rd30, 0;\n"
          "mov.u32 %r32, 0;\nmov.u64 %rd32, 0;\n" +
          atom + values + ";\n" + atom + values + ";\nst.global." + (wide ? "u64" : "u32") +
          " [%rd23], " + reg + "32;",
      "",
      {4096, 4096}};
}

TEST(Atomics, OfAWarpAreThoseOfItsLanesInOrder) {
  const std::vector<Pattern> patterns = {{"a row", 1},
                                         {"apart", 3},
                                         {"one element", 0},
                                         {"odd lanes", 1, true},
                                         {"odd, apart", 5, true}};
  for (const char* const operation :
       {"add.u32", "add.f32", "inc.u32", "dec.u32", "min.s32", "min.u32", "max.s32", "max.u32",
        "and.b32", "or.b32", "xor.b32", "exch.b32", "cas.b32", "add.u64", "min.s64", "max.u64",
        "exch.b64", "cas.b64"}) {
    for (const Pattern& p : patterns) {
      const Outcome together = run(kernel(operation, p, "relaxed"));
      const Outcome apart = run(kernel(operation, p, "acq_rel"));
      EXPECT_EQ(together.text(), "") << operation << ", " << p.name;
      EXPECT_EQ(together.words, apart.words) << operation << ", " << p.name;
    }
  }
}

/// Sums of what the lanes of a row add, by hand: both halves of the comparison above could be
/// wrong.
TEST(Atomics, AddRowsOfSeveralWarps) {
  Kernel k{
      "and.b32 %r20, %r0, 31;\nmul.wide.u32 %rd20, %r20, 4;\nadd.s64 %rd21, %rd0, %rd20;\n"
      "red.global.add.u32 [%rd21], %r0;",
      "",
      {128}};
  k.block = {96, 1, 1};
  const Outcome out = run(k);
  EXPECT_EQ(out.text(), "");
  for (std::uint32_t lane = 0; lane < 32; ++lane)
    EXPECT_EQ(out.words[0][lane], 3 * lane + 96) << lane;
}

}  // namespace
}  // namespace tilewright::emu
