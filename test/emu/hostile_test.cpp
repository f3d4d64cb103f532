// SPDX-License-Identifier: Apache-2.0
// PTX that means harm: sizes, depths and addresses that must end in an error or a finding, soon.
#include "tilewright/emulator.h"
#include "tilewright/error.h"
#include "tilewright/module.h"

#include <gtest/gtest.h>

namespace tilewright::emu {
namespace {

const std::string kEntry =
    ".visible .entry k()\n{\n.reg .b32 %r<8>;\n.reg .b64 %rd<8>;\n.reg .pred %p<4>;\n"
    ".shared .align 16 .b8 s[64];\n.shared .align 8 .b64 bar;\n";

struct HostileRow {
  std::string name, text;
  std::string said;  ///< a part of the error's or the first finding's text
};
std::ostream& operator<<(std::ostream& out, const HostileRow& row) { return out << row.name; }

std::string repeat(const std::string& text, int count) {
  std::string out;
  for (int i = 0; i < count; ++i)
    out += text;
  return out;
}

std::vector<HostileRow> sizes() {
  return {
      {"SharedMemory", ".visible .entry k(){ .shared .align 8 .b8 s[4294967296]; ret; }",
       "4294967296 bytes of shared memory; the target has 232448"},
      {"ExtentsThatMultiply", ".visible .entry k(){ .shared .b64 s[4294967296][4294967296]; ret; }",
       "variable 's' is larger than 2^40 bytes"},
      {"LocalMemory",
       ".visible .entry k(){ .local .b8 s[1099511627776]; st.local.u32 [s],1; ret; }",
       "function k has 1099511627776 bytes of local memory; a thread has 524288"},
      {"LocalMemoryOfWrappedSize",
       ".visible .entry k(){ .local .b8 s[4294967280]; .local .b8 t[32]; st.local.u32 [t],1; ret; "
       "}",
       "bytes of local memory; a thread has 524288"},
      {"ParametersOfACall",
       ".func f(.param .b8 p[1099511627776]){ ret; }\n.visible .entry k(){ { .param .b8 "
       "a[1099511627776]; call.uni f,(a); } ret; }",
       "function f has 1099511627776 bytes of local memory; a thread has 524288"},
      {"GlobalMemoryThatIsTouched",
       ".global .b8 g[1099511627776];\n" + kEntry +
           "mov.u64 %rd1, g;\nL:\nst.global.u32 [%rd1], 1;\nadd.u64 %rd1, %rd1, 65536;\nbra L;\n}",
       "limit"},
      {"StackInOnePiece",
       kEntry + "mov.u64 %rd1, 0x7fffffffffffffff;\nalloca.u64 %rd2, %rd1, 16;\nret;\n}",
       "asks for 9223372036854775807 bytes of stack; 524288 are left"},
      {"StackInPieces",
       kEntry + "L:\nalloca.u64 %rd2, 4096, 16;\nst.local.u32 [%rd2], 1;\nbra L;\n}",
       "asks for 4096 bytes of stack; 0 are left"},
  };
}

std::vector<HostileRow> depths() {
  return {
      {"Recursion", ".func f(){ call.uni f; ret; }\n.visible .entry k(){ call.uni f; ret; }",
       "overflows the stack: 512 calls deep"},
      {"Scopes", ".visible .entry k()\n" + repeat("{", 20000) + repeat("}", 20000),
       "blocks nest deeper than 256 levels"},
      {"Parentheses",
       ".visible .entry k(){ .reg .b32 %r<2>; mov.u32 %r1, " + repeat("(", 20000) + "1" +
           repeat(")", 20000) + "; ret; }",
       "constant expression nests deeper than 64 levels"},
      {"LoopOfNothing", kEntry + "L:\nbra L;\n}", "waits for ever: nothing can run"},
      {"LoopThatCounts", kEntry + "L:\nadd.u32 %r1, %r1, 1;\nbra L;\n}", "a loop that cannot end"},
      {"LoopOfStores", kEntry + "L:\nst.shared.u32 [s], %r1;\nadd.u32 %r1, %r1, 1;\nbra L;\n}",
       "limit"},
  };
}

std::vector<HostileRow> addresses() {
  auto touch = [](const std::string& address) {
    return kEntry + "mov.u64 %rd1, " + address +
           ";\nld.u32 %r1, [%rd1];\nst.u32 [%rd1], 1;\nst.global.v4.u32 [%rd1], {1, 1, 1, 1};\n"
           "atom.add.u32 %r2, [%rd1], 1;\nld.shared.u32 %r1, [%rd1];\nst.local.u32 [%rd1], 1;\n"
           "ld.const.u32 %r1, [%rd1];\nld.param.u32 %r1, [%rd1];\nst.shared.u32 [%rd1], "
           "1;\nret;\n}";
  };
  auto matrices = [](const std::string& descriptor) {
    return kEntry + ".reg .f32 %f<4>;\nmov.u64 %rd1, " + descriptor +
           ";\nwgmma.fence.sync.aligned;\nsetp.ne.u32 %p1, 0, 0;\n"
           "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %rd1, %rd1, "
           "%p1, 1, 1, 0, 0;\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned "
           "0;\nret;\n}";
  };
  return {
      {"Null", touch("0"), "out_of_bounds"},
      {"TheLastWord", touch("0xfffffffffffffffc"), "out_of_bounds"},
      {"AHostAddress", touch("0x7ffffffff000"), "out_of_bounds"},
      {"BelowTheVariables",
       kEntry + "mov.u64 %rd1, s;\nst.shared.u32 [%rd1-1073741824], 1;\nret;\n}", "out_of_bounds"},
      {"FarOffset",
       kEntry + "mov.u64 %rd1, 0;\nld.global.u32 %r1, [%rd1+9223372036854775804];\nret;\n}",
       "out_of_bounds"},
      {"AFunctionThatIsNone",
       kEntry + "mov.u64 %rd1, 12345678;\np: .callprototype ()_ ();\ncall %rd1, (), p;\nret;\n}",
       "calls an address that is no function"},
      {"AnEntryThatIsNone",
       kEntry + "mov.u32 %r1, -1;\nt: .branchtargets L;\nbrx.idx %r1, t;\nL:\nret;\n}",
       "branches to entry 4294967295 of 1 targets"},
      {"ABulkCopyOf4GiB",
       kEntry +
           "mbarrier.init.shared::cta.b64 [bar], 1;\nmov.u32 %r1, 0xfffffff0;\nmov.u64 %rd1, 0;\n"
           "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [s], %r1;\nret;\n}",
       "out_of_bounds"},
      {"MatricesOutside", matrices("-1"), "out_of_bounds"},
      {"MatricesThatEndBelowTheVariables", matrices("63"), "out_of_bounds"},  // 1008 to 1024
      {"ABarrierThatIsNone", kEntry + "mov.u32 %r1, -1;\nbar.sync %r1, 32;\nret;\n}",
       "uses barrier 4294967295; there are 0 to 15"},
      {"AnImmediateAsDestination", kEntry + "mov.u32 0, 4;\nret;\n}",
       "mov.u32: operand 1 is the immediate 0; it must be a register of type u32"},
      {"ARankThatIsNone",
       kEntry + "mov.u64 %rd1, -1;\nmapa.u64 %rd2, %rd1, 1000000;\nst.u32 [%rd2], 1;\nret;\n}",
       "asks for rank 1000000 of a cluster of 1 blocks"},
  };
}

class Hostile : public testing::TestWithParam<HostileRow> {};

TEST_P(Hostile, IsRefusedOrReported) {
  const HostileRow& row = GetParam();
  std::string said;
  try {
    Machine machine(ptx::parse_target("sm_90a"));
    Launch launch;
    launch.program = machine.load(
        ptx::parse(".version 8.6\n.target sm_90a\n.address_size 64\n" + row.text, "hostile.ptx"));
    launch.entry = "k";
    launch.block.x = 32;
    Options options;
    options.limits.memory_bytes = 1 << 26;
    options.limits.steps = 1 << 18;
    options.limits.idle_steps = 1 << 16;
    const LaunchReport report = machine.launch(launch, options);
    for (const Diagnostic& d : report.findings)
      said += to_string(d) + "\n";
    EXPECT_FALSE(report.ok());
  } catch (const Error& error) {
    EXPECT_NE(error.kind(), ErrorKind::internal);
    said = error.message();
  }
  EXPECT_NE(said.find(row.said), std::string::npos) << said;
}

auto named = [](const auto& row) { return row.param.name; };
INSTANTIATE_TEST_SUITE_P(Sizes, Hostile, testing::ValuesIn(sizes()), named);
INSTANTIATE_TEST_SUITE_P(Depths, Hostile, testing::ValuesIn(depths()), named);
INSTANTIATE_TEST_SUITE_P(Addresses, Hostile, testing::ValuesIn(addresses()), named);

/// A call behind an alloca: the callee's variables lie elsewhere.
TEST(Stack, CallsKeepWhatWasAllocatedBeforeThem) {
  const std::string text =
      ".version 8.6\n.target sm_90a\n.address_size 64\n.func f(){ .local .align 4 .b8 d[64]; "
      "st.local.u32 [d], 7; st.local.u32 [d+16], 7; ret; }\n.visible .entry k(.param .u64 out)\n{\n"
      ".reg .b32 %r<4>;\n.reg .b64 %rd<4>;\nld.param.u64 %rd0, [out];\nalloca.u64 %rd1, 64, 16;\n"
      "st.local.u32 [%rd1], 5;\ncall.uni f;\nld.local.u32 %r1, [%rd1];\nst.global.u32 [%rd0], "
      "%r1;\nret;\n}\n";
  Machine machine(ptx::parse_target("sm_90a"));
  const std::uint64_t out = machine.allocate(4);
  Launch launch;
  launch.program = machine.load(ptx::parse(text, "alloca.ptx"));
  launch.entry = "k";
  launch.params.assign(8, std::byte{0});
  std::copy_n(reinterpret_cast<const std::byte*>(&out), 8, launch.params.begin());
  EXPECT_TRUE(machine.launch(launch).ok());
  std::uint32_t word = 0;
  machine.read(out, std::as_writable_bytes(std::span(&word, 1)));
  EXPECT_EQ(word, 5U);
}

}  // namespace
}  // namespace tilewright::emu
