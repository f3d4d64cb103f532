// SPDX-License-Identifier: Apache-2.0
// Each check reports its planted defect, and says nothing about the corrected kernel.
#include "emu/rows.h"

namespace tilewright::emu {
namespace {

using test::Row;

const std::string kOutAddress = "mul.wide.u32 %rd20, %r0, 4;\nadd.s64 %rd21, %rd0, %rd20;\n";
const std::string kShared = ".shared .align 16 .b8 s[256];\n";
const std::string kSharedAddress =
    "shl.b32 %r10, %r0, 2;\nmov.u32 %r11, s;\nadd.s32 %r12, %r11, %r10;\n";
const std::string kSmall = ".shared .align 4 .b8 a[62];\n.shared .align 4 .b8 b[64];\n";
const std::string kBar = ".shared .align 8 .b64 bar;\n";
const std::string kBars = ".shared .align 8 .b64 bars[2];\n";

/// Both warps of a block read a word, the second one in a later epoch.
const std::string kListOfReaders =
    "setp.lt.u32 %p3, %r0, 32;\n@%p3 bra LOAD;\nbar.warp.sync -1;\nLOAD:\n"
    "ld.global.u32 %r4, [%rd0];\n";

std::vector<Row> memory_rows() {
  return {
      {"a store inside is clean", {kOutAddress + "st.global.u32 [%rd21], %r0;", "", {128}}, ""},
      {"a store past the end",
       {kOutAddress + "st.global.u32 [%rd21+4], %r0;", "", {128}},
       "out_of_bounds"},
      {"a null pointer",
       {"mov.u64 %rd22, 0;\nst.global.u32 [%rd22], %r0;", "", {}},
       "out_of_bounds"},
      {"a shared address through .global",
       {"mov.u64 %rd22, s;\ncvta.shared.u64 %rd23, %rd22;\nst.global.u32 [%rd23], %r0;",
        kShared,
        {}},
       "out_of_bounds"},
      {"shared memory past the end", {"st.shared.u32 [s+256], %r0;", kShared, {}}, "out_of_bounds"},
      {"a byte past a variable in front of another",
       {"mov.u32 %r3, a;\nld.shared.u8 %h1, [%r3+62];", kSmall, {}},
       "out_of_bounds"},
      {"the last bytes of two variables",
       {"st.shared.u8 [a+61], 1;\nst.shared.u32 [b+60], 1;", kSmall, {}, {}, {1, 1, 1}},
       ""},
      {"a byte past the last variable", {"st.shared.u8 [a+62], 1;", kSmall, {}}, "out_of_bounds"},
      {"a bulk copy over the end of a variable",
       {"mov.u32 %r3, c;\ncp.async.bulk.global.shared::cta.bulk_group [%rd0], [%r3], 32;",
        ".shared .align 16 .b8 c[16];\n.shared .align 16 .b8 d[64];\n",
        {128},
        {},
        {1, 1, 1}},
       "out_of_bounds"},
      {"an entry has room for the variables that it reaches",
       {"call used;",
        "",
        {},
        {},
        {1, 1, 1},
        {},
        true,
        ".shared .align 4 .b8 unused[200000];\n.func other() {\n.shared .b8 o[200000];\n"
        "st.shared.u8 [o], 1;\nret;\n}\n.func used() {\n.shared .b8 o[100000];\n"
        "st.shared.u8 [o+99999], 1;\nret;\n}\n"},
       ""},
      {"a bit-field in a word that nothing wrote",
       {"mov.u64 %rd22, d;\nld.local.u32 %r3, [%rd22];\nand.b32 %r4, %r3, -256;\n"
        "or.b32 %r5, %r4, 7;\nst.local.u32 [%rd22], %r5;\nld.local.u32 %r6, [%rd22];\n"
        "and.b32 %r7, %r6, 255;\n" +
            kOutAddress + "st.global.u32 [%rd21], %r7;",
        ".local .align 4 .b8 d[4];\n",
        {128}},
       ""},
      {"bits of a word that nothing wrote",
       {"mov.u64 %rd22, d;\nld.local.u32 %r3, [%rd22];\nand.b32 %r4, %r3, 255;\n" + kOutAddress +
            "st.global.u32 [%rd21], %r4;",
        ".local .align 4 .b8 d[4];\n",
        {128}},
       "uninitialized_read"},
      {"an odd address", {kOutAddress + "st.global.u32 [%rd21+2], %r0;", "", {256}}, "misaligned"},
      {"a vector needs its whole alignment",
       {"st.global.v2.u32 [%rd0+4], {%r0, %r0};", "", {256}, {}, {1, 1, 1}},
       "misaligned"},
      {"reading what nothing wrote",
       {kOutAddress + "ld.global.u32 %r3, [%rd21];\nst.global.u32 [%rd21], %r3;",
        "",
        {128},
        {},
        {32, 1, 1},
        {},
        false},
       "uninitialized_read"},
      {"storing an undefined register",
       {kOutAddress + "st.global.u32 [%rd21], %r5;", "", {128}},
       "uninitialized_read"},
      {"copying an undefined register is no use",
       {"mov.u32 %r6, %r5;\n" + kOutAddress + "st.global.u32 [%rd21], %r0;", "", {128}},
       ""},
      {"branching on an undefined predicate",
       {"@%p3 bra L1;\nL1:\n", "", {}},
       "uninitialized_read"},
      {"local memory past the end",
       {"mov.u64 %rd22, d;\nst.local.u32 [%rd22+16], %r0;", ".local .align 16 .b8 d[16];\n", {}},
       "out_of_bounds"},
  };
}

/// In place on elements of two bytes: each thread reads one, its own or the other of the word, and
/// writes its own. Parties that share a word: lanes, warps, blocks.
std::vector<Row> half_rows() {
  const std::string lanes = "shl.b32 %r5, %r0, 1;\n";
  const std::string warps =
      "and.b32 %r5, %r0, 31;\nshl.b32 %r5, %r5, 2;\nshr.u32 %r6, %r0, 5;\nshl.b32 %r6, %r6, 1;\n"
      "add.s32 %r5, %r5, %r6;\n";
  const std::string blocks = "shl.b32 %r5, %r0, 2;\nshl.b32 %r6, %r1, 1;\nadd.s32 %r5, %r5, %r6;\n";
  const std::string own = "cvt.u64.u32 %rd21, %r5;\nadd.s64 %rd21, %rd0, %rd21;\n";
  auto body = [&](const std::string& mine, const std::string& other) {
    return mine + own + "xor.b64 %rd22, %rd21, " + other +
           ";\nld.global.u16 %h1, [%rd22];\nadd.u16 %h1, %h1, 1;\nst.global.u16 [%rd21], %h1;";
  };
  return {
      {"lanes update halves of a word", {body(lanes, "0"), "", {64}}, ""},
      {"lanes read each other's half", {body(lanes, "2"), "", {64}}, "unordered"},
      {"warps update halves of a word", {body(warps, "0"), "", {128}, {}, {64, 1, 1}}, ""},
      {"warps read each other's half", {body(warps, "2"), "", {128}, {}, {64, 1, 1}}, "race"},
      {"blocks update halves of a word", {body(blocks, "0"), "", {128}, {2, 1, 1}}, ""},
      {"blocks read each other's half", {body(blocks, "2"), "", {128}, {2, 1, 1}}, "race"},
  };
}

/// Two blocks swap numbers in global memory. `meetings`: after the writes, and after the reads.
std::string swap_of_blocks(int meetings) {
  std::string text =
      "mul.wide.u32 %rd20, %r1, 4;\nadd.s64 %rd21, %rd0, %rd20;\nxor.b32 %r2, %r1, 1;\n"
      "mul.wide.u32 %rd22, %r2, 4;\nadd.s64 %rd23, %rd0, %rd22;\nst.global.u32 [%rd21], %r1;\n";
  for (int i = 1; i <= 3; ++i) {
    const std::string n = std::to_string(i);
    if (i == 2) text += "ld.global.u32 %r4, [%rd23];\n";
    if (i == 3) text += "st.global.u32 [%rd21], %r4;\n";
    if (i == 2 && meetings == 2) continue;
    text += "fence.acq_rel.gpu;\nred.relaxed.gpu.global.add.u32 [%rd1], 1;\nL" + n +
            ":\nld.relaxed.gpu.global.u32 %r3, [%rd1];\nsetp.lt.u32 %p1, %r3, " +
            (i == 3 ? std::to_string(2 * meetings) : std::to_string(2 * i)) + ";\n@%p1 bra L" + n +
            ";\nfence.acq_rel.gpu;\n";
  }
  return text;
}

std::vector<Row> race_rows() {
  const std::string reversed =
      "st.shared.u32 [%r12], %r0;\n{SYNC}sub.s32 %r13, 63, %r0;\nshl.b32 %r14, %r13, 2;\n"
      "add.s32 %r15, %r11, %r14;\nld.shared.u32 %r16, [%r15];\n" +
      kOutAddress + "st.global.u32 [%rd21], %r16;";
  auto with = [](std::string body, const std::string& sync) {
    body.replace(body.find("{SYNC}"), 6, sync);
    return body;
  };
  const std::string flag =
      "setp.ne.u32 %p1, %r1, 0;\n@%p1 bra READ;\nst.global.u32 [%rd0], 7;\n{SYNC}bra END;\n"
      "READ:\nld.acquire.gpu.global.u32 %r3, [%rd1];\nsetp.eq.u32 %p2, %r3, 0;\n@%p2 bra READ;\n"
      "ld.global.u32 %r4, [%rd0];\nst.global.u32 [%rd2], %r4;\nEND:\n";
  // Warps that read in several epochs are a list, which the block empties at its next barrier.
  const std::string readers =
      "setp.ne.u32 %p1, %r1, 0;\n@%p1 bra WRITE;\n" + kListOfReaders +
      "bar.sync 0;\nsetp.ne.u32 %p2, %r0, 0;\n@%p2 bra END;\n{SYNC}bra END;\n"
      "WRITE:\nsetp.ne.u32 %p2, %r0, 0;\n@%p2 bra END;\nSPIN:\n"
      "ld.acquire.gpu.global.u32 %r3, [%rd1];\nsetp.eq.u32 %p2, %r3, 0;\n@%p2 bra SPIN;\n"
      "st.global.u32 [%rd0], 7;\nEND:\n";
  // A lane arrives alone, then its warp does: what lanes do after that is later than both.
  const std::string store = "@%p3 st.shared.u32 [%r12], 1;\n";
  auto arrivals = [&](const std::string& before, const std::string& after) {
    return kSharedAddress +
           "setp.eq.u32 %p1, %r0, 0;\nsetp.lt.u32 %p2, %r0, 32;\nsetp.eq.u32 %p3, %r0, 5;\n"
           "@%p1 mbarrier.init.shared.b64 [bars], 1;\n"
           "@%p1 mbarrier.init.shared.b64 [bars+8], 32;\nbar.sync 0;\n@!%p2 bra WAIT;\n"
           "@%p1 mbarrier.arrive.shared.b64 _, [bars];\n" +
           before + "mbarrier.arrive.shared.b64 _, [bars+8];\n" + after +
           "bra END;\nWAIT:\nmbarrier.try_wait.parity.shared.b64 %p4, [bars+8], 0;\n"
           "@!%p4 bra WAIT;\nld.shared.u32 %r3, [s+20];\nEND:\n";
  };
  return {
      {"a write in front of its warp's arrival",
       {arrivals(store, ""), kShared + kBars, {}, {}, {64, 1, 1}},
       ""},
      {"a write behind its warp's arrival",
       {arrivals("", store), kShared + kBars, {}, {}, {64, 1, 1}},
       "race"},
      {"a write behind the readers of another block",
       {with(readers, "st.release.gpu.global.u32 [%rd1], 1;\n"), "", {4, 4}, {2, 1, 1}, {64, 1, 1}},
       ""},
      {"a write that is not ordered behind the readers of another block",
       {with(readers, "st.relaxed.gpu.global.u32 [%rd1], 1;\n"), "", {4, 4}, {2, 1, 1}, {64, 1, 1}},
       "race"},
      {"shared memory behind a barrier",
       {kSharedAddress + with(reversed, "bar.sync 0;\n"), kShared, {256}, {}, {64, 1, 1}},
       ""},
      {"shared memory without a barrier",
       {kSharedAddress + with(reversed, ""), kShared, {256}, {}, {64, 1, 1}},
       "race"},
      {"a warp's barrier is not enough for two warps",
       {kSharedAddress + with(reversed, "bar.warp.sync -1;\n"), kShared, {256}, {}, {64, 1, 1}},
       "race"},
      {"a missing barrier is a race, also where lanes of a warp meet",
       {kSharedAddress +
            "xor.b32 %r13, %r0, 1;\n"
            "st.shared.u32 [%r12], %r0;\nshl.b32 %r14, %r13, 2;\nadd.s32 %r15, %r11, %r14;\n"
            "ld.shared.u32 %r16, [%r15];\nxor.b32 %r15, %r15, 128;\n"
            "ld.shared.u32 %r17, [%r15];\nadd.s32 %r16, %r16, %r17;\n" +
            kOutAddress + "st.global.u32 [%rd21], %r16;",
        kShared,
        {256},
        {},
        {64, 1, 1}},
       "race, unordered"},
      {"blocks meet before and after they read",
       {swap_of_blocks(3), "", {8, 4}, {2, 1, 1}, {1, 1, 1}},
       ""},
      {"blocks that read late do not hide that they never met",
       {swap_of_blocks(2), "", {8, 4}, {2, 1, 1}, {1, 1, 1}},
       "race"},
      {"a flag released at gpu scope",
       {with(flag, "st.release.gpu.global.u32 [%rd1], 1;\n"), "", {4, 4, 4}, {2, 1, 1}, {1, 1, 1}},
       ""},
      {"a flag stored behind a fence",
       {with(flag, "fence.acq_rel.gpu;\nst.relaxed.gpu.global.u32 [%rd1], 1;\n"),
        "",
        {4, 4, 4},
        {2, 1, 1},
        {1, 1, 1}},
       ""},
      {"a relaxed flag",
       {with(flag, "st.relaxed.gpu.global.u32 [%rd1], 1;\n"), "", {4, 4, 4}, {2, 1, 1}, {1, 1, 1}},
       "race"},
      {"a flag released at block scope",
       {with(flag, "st.release.cta.global.u32 [%rd1], 1;\n"), "", {4, 4, 4}, {2, 1, 1}, {1, 1, 1}},
       "race"},
      {"a plain flag",
       {with(flag, "st.global.u32 [%rd1], 1;\n"), "", {4, 4, 4}, {2, 1, 1}, {1, 1, 1}},
       "race"},
      {"blocks that update by atomics", {"red.global.add.u32 [%rd0], 1;", "", {4}, {4, 1, 1}}, ""},
      {"blocks that store different values",
       {"st.global.u32 [%rd0], %r1;", "", {4}, {4, 1, 1}, {1, 1, 1}},
       "race"},
      {"lanes behind bar.warp.sync",
       {kSharedAddress +
            "st.shared.u32 [%r12], %r0;\nbar.warp.sync -1;\nxor.b32 %r13, %r12, 4;\n"
            "ld.shared.u32 %r16, [%r13];\n" +
            kOutAddress + "st.global.u32 [%rd21], %r16;",
        kShared,
        {128}},
       ""},
      {"lanes without bar.warp.sync",
       {kSharedAddress +
            "st.shared.u32 [%r12], %r0;\nxor.b32 %r13, %r12, 4;\n"
            "ld.shared.u32 %r16, [%r13];\n" +
            kOutAddress + "st.global.u32 [%rd21], %r16;",
        kShared,
        {128}},
       "unordered"},
      {"a shuffle orders no memory",
       {kSharedAddress +
            "st.shared.u32 [%r12], %r0;\nshfl.sync.idx.b32 %r3, %r0, 0, 31, -1;\n"
            "xor.b32 %r13, %r12, 4;\nld.shared.u32 %r16, [%r13];\n" +
            kOutAddress + "st.global.u32 [%rd21], %r16;",
        kShared,
        {128}},
       "unordered"},
  };
}

std::vector<Row> barrier_rows() {
  const std::string odd = "and.b32 %r3, %r0, 1;\nsetp.eq.u32 %p1, %r3, 1;\n";
  return {
      {"a barrier that half a warp skips",
       {odd + "@%p1 bra L;\nbar.sync 0;\nL:\n", "", {}},
       "barrier_divergence"},
      {"a barrier in both branches is two barriers",
       {odd + "@%p1 bra L;\nbar.sync 0;\nbra E;\nL:\nbar.sync 0;\nE:\n", "", {}},
       "barrier_divergence"},
      {"barrier.sync may diverge",
       {odd + "@%p1 bra L;\nbarrier.sync 0;\nbra E;\nL:\nbarrier.sync 0;\nE:\n", "", {}},
       ""},
      {"a count that is no multiple of 32",
       {"mov.u32 %r5, 33;\nbar.sync 0, %r5;", "", {}, {}, {64, 1, 1}},
       "barrier_mismatch"},
      {"a barrier that waits for more than the block",
       {"bar.sync 1, 64;", "", {}},
       "barrier_mismatch, deadlock"},
      {"a barrier with two counts",
       {"setp.lt.u32 %p1, %r0, 32;\n@%p1 bar.sync 1, 64;\n@!%p1 bar.sync 1, 96;",
        "",
        {},
        {},
        {96, 1, 1}},
       "barrier_mismatch"},
      {"a count does not include warps that ended",
       {"setp.lt.u32 %p1, %r0, 32;\n@%p1 exit;\nbar.sync 1, 64;", "", {}, {}, {64, 1, 1}},
       "deadlock"},
      {"the barrier of the block does not wait for warps that ended",
       {"setp.lt.u32 %p1, %r0, 32;\n@%p1 exit;\nbar.sync 1;", "", {}, {}, {64, 1, 1}},
       ""},
      {"a warp that arrived may end",
       {"setp.lt.u32 %p1, %r0, 32;\n@!%p1 bra W;\nbar.arrive 1, 64;\nexit;\nW:\nbar.sync 1, 64;",
        "",
        {},
        {},
        {64, 1, 1}},
       ""},
      {"a named barrier of half the block",
       {"setp.lt.u32 %p1, %r0, 64;\n@%p1 bar.sync 1, 64;", "", {}, {}, {128, 1, 1}},
       ""},
      {"a shuffle that names lanes elsewhere",
       {odd + "@%p1 bra L;\nshfl.sync.idx.b32 %r4, %r0, 0, 31, -1;\nbra E;\nL:\n"
              "bar.warp.sync 0xaaaaaaaa;\nE:\nbar.warp.sync -1;\n",
        "",
        {}},
       "shuffle_mask"},
      {"a mask without the lane itself",
       {"shfl.sync.idx.b32 %r4, %r0, 0, 31, 1;", "", {}},
       "shuffle_mask"},
      {"a spin on a word that nobody writes",
       {"L:\nld.volatile.global.u32 %r3, [%rd0];\nsetp.eq.u32 %p1, %r3, 0;\n@%p1 bra L;", "", {4}},
       "deadlock"},
      {"two locks in opposite order",
       {"setp.eq.u32 %p1, %r1, 0;\nselp.b64 %rd20, %rd0, %rd1, %p1;\n"
        "selp.b64 %rd21, %rd1, %rd0, %p1;\nA:\natom.global.acquire.gpu.cas.b32 %r3, [%rd20], 0, "
        "1;\n"
        "setp.ne.u32 %p2, %r3, 0;\n@%p2 bra A;\nred.global.add.u32 [%rd2], 1;\n"
        "W:\nld.volatile.global.u32 %r4, [%rd2];\nsetp.lt.u32 %p3, %r4, 2;\n@%p3 bra W;\n"
        "B:\natom.global.acquire.gpu.cas.b32 %r3, [%rd21], 0, 1;\nsetp.ne.u32 %p2, %r3, 0;\n"
        "@%p2 bra B;",
        "",
        {4, 4, 4},
        {2, 1, 1},
        {1, 1, 1}},
       "deadlock"},
      {"a trap", {"trap;", "", {}}, "illegal_instruction"},
  };
}

/// Two blocks of a cluster store into each other's shared memory, in two places by turns.
std::string rounds(int count) {
  std::string text =
      "mbarrier.init.shared::cta.b64 [full], 1;\nmbarrier.init.shared::cta.b64 [full+8], 1;\n"
      "fence.mbarrier_init.release.cluster;\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\n"
      "mov.u32 %r2, %cluster_ctarank;\nxor.b32 %r2, %r2, 1;\nmov.u32 %r3, full;\n"
      "mov.u32 %r4, box;\nmapa.shared::cluster.u32 %r3, %r3, %r2;\n"
      "mapa.shared::cluster.u32 %r4, %r4, %r2;\n";
  for (int i = 0; i < count; ++i) {
    const std::string s = std::to_string(i % 2 * 8), word = std::to_string(i % 2 * 4);
    const std::string n = std::to_string(i);
    text += "mbarrier.arrive.expect_tx.shared::cta.b64 %rd30, [full+" + s + "], 4;\n" +
            "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r4+" + word +
            "], %r0, [%r3+" + s + "];\nW" + n +
            ":\nmbarrier.try_wait.parity.shared::cta.b64 %p1, [full+" + s + "], " +
            std::to_string(i / 2 % 2) + ";\n@!%p1 bra W" + n + ";\nld.shared.u32 %r5, [box+" +
            word + "];\n";
  }
  return text + "barrier.cluster.arrive;\nbarrier.cluster.wait;\n";
}

std::vector<Row> async_rows() {
  const std::string copy =
      "shl.b32 %r10, %r0, 4;\nmov.u32 %r11, s;\nadd.s32 %r12, %r11, %r10;\n"
      "mul.wide.u32 %rd20, %r0, 16;\nadd.s64 %rd21, %rd0, %rd20;\n"
      "cp.async.cg.shared.global [%r12], [%rd21], 16;\ncp.async.commit_group;\n";
  const std::string big = ".shared .align 128 .b8 s[512];\n";
  const std::string use = "ld.shared.u32 %r13, [%r12];\nst.global.u32 [%rd21], %r13;";
  const std::string init =
      "setp.ne.u32 %p1, %r0, 0;\n@%p1 bra I;\nmbarrier.init.shared::cta.b64 [bar], 1;\n"
      "fence.mbarrier_init.release.cluster;\nI:\nbar.sync 0;\n";
  const std::string load =
      "@%p1 bra J;\nmbarrier.arrive.expect_tx.shared::cta.b64 %rd30, [bar], 512;\n"
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%rd0], 512, [bar];\n"
      "J:\n";
  const std::string wait =
      "K:\nmbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], 0;\n@!%p2 bra K;\n";
  const std::string read =
      "ld.shared.u32 %r13, [s];\nmul.wide.u32 %rd20, %r0, 4;\nadd.s64 %rd21, %rd1, %rd20;\n"
      "st.global.u32 [%rd21], %r13;";
  const std::string store =
      "shl.b32 %r10, %r0, 2;\nmov.u32 %r11, s;\nadd.s32 %r12, %r11, %r10;\n"
      "st.shared.u32 [%r12], %r0;\n{FENCE}bar.sync 0;\nsetp.ne.u32 %p1, %r0, 0;\n@%p1 bra E;\n"
      "cp.async.bulk.global.shared::cta.bulk_group [%rd0], [s], 128;\n"
      "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group.read 0;\nE:\n";
  auto fenced = [&](const std::string& fence) {
    std::string text = store;
    return text.replace(text.find("{FENCE}"), 7, fence);
  };
  return {
      {"cp.async behind its wait", {copy + "cp.async.wait_group 0;\n" + use, big, {512}}, ""},
      {"cp.async read before its wait",
       {copy + use, big, {512}},
       "async_in_flight, exit_in_flight"},
      {"cp.async waited for too late",
       {copy + "cp.async.wait_group 1;\n" + use + "\ncp.async.wait_all;", big, {512}},
       "async_in_flight"},
      {"another lane's cp.async needs a barrier",
       {copy + "cp.async.wait_all;\nxor.b32 %r12, %r12, 16;\n" + use, big, {512}},
       "async_in_flight"},
      {"a bulk load behind its mbarrier", {init + load + wait + read, big + kBar, {512, 128}}, ""},
      {"a bulk load read early",
       {init + load + read + "\n" + wait, big + kBar, {512, 128}},
       "async_in_flight"},
      {"a bulk load that nobody waits for", {init + load, big + kBar, {512}}, "exit_in_flight"},
      {"an mbarrier without init",
       {"setp.ne.u32 %p1, %r0, 0;\n" + load + wait, big + kBar, {512}},
       "mbarrier_misuse"},
      {"an mbarrier used before the barrier that orders its init",
       {"setp.ne.u32 %p1, %r0, 0;\nsetp.lt.u32 %p2, %r0, 32;\n@%p1 bra I;\n"
        "mbarrier.init.shared::cta.b64 [bar], 32;\nI:\n"
        "@!%p2 mbarrier.arrive.shared::cta.b64 %rd30, [bar];",
        kBar,
        {},
        {},
        {64, 1, 1}},
       "race"},
      {"too many arrivals",
       {init + "@%p1 bra J;\nmbarrier.arrive.shared::cta.b64 %rd30, [bar], 2;\nJ:\n", kBar, {}},
       "mbarrier_misuse"},
      {"a bulk store behind a proxy fence",
       {fenced("fence.proxy.async.shared::cta;\n"), big, {128}},
       ""},
      {"a bulk store without a proxy fence", {fenced(""), big, {128}}, "proxy_fence"},
      {"an unlimited wait that looks at the time",
       {init + "mov.u64 %rd20, %globaltimer;\nW:\n"
               "mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], 0;\n@%p2 bra E;\n"
               "mov.u64 %rd21, %globaltimer;\nsub.s64 %rd22, %rd21, %rd20;\nsetp.lt.s64 %p3, "
               "%rd22, 1000;\n"
               "@%p3 bra W;\nnanosleep.u32 1000;\nbra W;\nE:\n",
        kBar,
        {},
        {},
        {64, 1, 1}},
       "deadlock"},
      {"a wait that gives up after a while",
       {init + "mov.u64 %rd20, %globaltimer;\nW:\n"
               "mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], 0;\n@%p2 bra E;\n"
               "mov.u64 %rd21, %globaltimer;\nsub.s64 %rd22, %rd21, %rd20;\n"
               "setp.lt.s64 %p3, %rd22, 4000000;\n@%p3 bra W;\nE:\n",
        kBar,
        {},
        {},
        {64, 1, 1}},
       ""},
      {"partners hand two buffers to and fro",
       {rounds(4),
        ".shared .align 8 .b64 full[2];\n.shared .align 4 .b32 box[2];\n",
        {},
        {2, 1, 1},
        {1, 1, 1},
        {2, 1, 1}},
       ""},
      {"a bulk copy of 24 bytes",
       {"cp.async.bulk.global.shared::cta.bulk_group [%rd0], [s], 24;", big, {128}, {}, {1, 1, 1}},
       "misaligned"},
  };
}

/// Warp 1 reads what a bulk copy brought and hands the stage back by a plain arrival; then warp 0
/// overwrites it by the next copy.
test::Kernel stage_of(const std::string& behind_the_reads) {
  const std::string copy =
      "mbarrier.arrive.expect_tx.shared::cta.b64 %rd30, [full], 128;\n"
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%rd0], 128, "
      "[full];\n";
  const std::string body =
      "setp.ne.u32 %p1, %r0, 0;\n@%p1 bra I;\nmbarrier.init.shared::cta.b64 [full], 1;\n"
      "mbarrier.init.shared::cta.b64 [empty], 32;\nI:\nbar.sync 0;\n"
      "setp.ge.u32 %p2, %r0, 32;\n@%p2 bra C;\n@%p1 bra E;\n" +
      copy + "A:\nmbarrier.try_wait.parity.shared::cta.b64 %p3, [empty], 0;\n@!%p3 bra A;\n" +
      copy +
      "B:\nmbarrier.try_wait.parity.shared::cta.b64 %p3, [full], 1;\n@!%p3 bra B;\nbra E;\n"
      "C:\nmbarrier.try_wait.parity.shared::cta.b64 %p3, [full], 0;\n@!%p3 bra C;\n"
      "and.b32 %r5, %r0, 31;\nshl.b32 %r5, %r5, 2;\nmov.u32 %r6, s;\nadd.s32 %r6, %r6, %r5;\n"
      "ld.shared.u32 %r7, [%r6];\n" +
      behind_the_reads + "mbarrier.arrive.shared::cta.b64 %rd31, [empty];\nE:\n";
  return {body,
          ".shared .align 128 .b8 s[128];\n.shared .align 8 .b64 full;\n"
          ".shared .align 8 .b64 empty;\n",
          {128},
          {1, 1, 1},
          {64, 1, 1}};
}

/// The end of an mbarrier at which two warps have arrived and waited.
std::vector<Row> invalidation_rows() {
  const std::string use =
      "setp.ne.u32 %p1, %r0, 0;\n@%p1 bra I;\nmbarrier.init.shared::cta.b64 [bar], 64;\nI:\n"
      "bar.sync 0;\nmbarrier.arrive.shared::cta.b64 %rd30, [bar];\nW:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], 0;\n@!%p2 bra W;\n";
  const std::string invalidate = "@!%p1 mbarrier.inval.shared::cta.b64 [bar];\n";
  const std::string barrier = "bar.sync 0;\n";
  const std::string reuse = "setp.ne.u32 %p4, %r0, 63;\n@!%p4 st.shared.u32 [bar], %r0;\n";
  auto two_warps = [&](const std::string& end) {
    return test::Kernel{use + end, kBar, {}, {}, {64, 1, 1}};
  };
  return {
      {"an mbarrier invalidated behind its users", two_warps(barrier + invalidate), ""},
      {"an mbarrier invalidated while another warp may wait", two_warps(invalidate), "race"},
      {"an mbarrier's bytes used again behind a barrier",
       two_warps(barrier + invalidate + barrier + reuse), ""},
      {"an mbarrier's bytes used again by another thread", two_warps(barrier + invalidate + reuse),
       "race"},
  };
}

/// Each of two blocks arrives at the other's mbarrier. `init`: what thread 0 does behind its init.
std::vector<Row> cluster_init_rows() {
  auto two_blocks = [](const std::string& init, const std::string& arrive) {
    const std::string text =
        "setp.ne.u32 %p1, %r0, 0;\n@%p1 bra I;\nmbarrier.init.shared::cta.b64 [bar], 32;\n" + init +
        "I:\nbarrier.cluster." + arrive +
        ".aligned;\nbarrier.cluster.wait.acquire.aligned;\nmov.u32 %r2, %cluster_ctarank;\n"
        "xor.b32 %r2, %r2, 1;\nmov.u32 %r3, bar;\nmapa.shared::cluster.u32 %r3, %r3, %r2;\n"
        "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r3];\nW:\n"
        "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [bar], 0;\n@!%p2 bra W;\n"
        "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n";
    return test::Kernel{text, kBar, {}, {2, 1, 1}, {32, 1, 1}, {2, 1, 1}};
  };
  const std::string fence = "fence.mbarrier_init.release.cluster;\n";
  return {
      {"an init shown by its fence and a relaxed arrival", two_blocks(fence, "arrive.relaxed"), ""},
      {"an init without its fence in front of a relaxed arrival", two_blocks("", "arrive.relaxed"),
       "race"},
      {"an init shown by an arrival that releases", two_blocks("", "arrive.release"), ""},
  };
}

/// The first warp of each block of a cluster reads a word; the second one's arrival shows the
/// block's reads to the cluster. `before`: what they do between. Then a thread of block 0 writes
/// it.
std::vector<Row> cluster_reader_rows() {
  auto readers = [](const std::string& before, std::uint32_t blocks) {
    const std::string text =
        "setp.lt.u32 %p1, %r0, 32;\n@%p1 ld.global.u32 %r4, [%rd0];\n" + before +
        "@%p1 bra RELAXED;\nbarrier.cluster.arrive.release.aligned;\nbra ARRIVED;\n"
        "RELAXED:\nbarrier.cluster.arrive.relaxed.aligned;\nARRIVED:\nbar.sync 0;\n"
        "barrier.cluster.wait.acquire.aligned;\nor.b32 %r5, %r0, %r1;\n"
        "setp.eq.u32 %p2, %r5, 0;\n@%p2 st.global.u32 [%rd0], 7;\n";
    return test::Kernel{text, "", {4}, {blocks, 1, 1}, {64, 1, 1}, {blocks, 1, 1}};
  };
  return {
      {"readers of eight blocks behind a barrier of each", readers("bar.sync 0;\n", 8), ""},
      {"two blocks of which a warp that did not read releases", readers("", 2), "race"},
      {"eight blocks of which a warp that did not read releases", readers("", 8), "race"},
  };
}

std::vector<Row> overtaken_rows() {
  const std::string fence = "fence.proxy.async.shared::cta;\n", checks = "all,overtaken_read";
  return {
      {"a stage handed back by a plain arrival, as is usual", stage_of(""), ""},
      {"the same where reads are held against the proxy", stage_of(""), "overtaken_read", checks},
      {"a stage handed back behind a proxy fence", stage_of(fence), "", checks},
  };
}

class Check : public testing::TestWithParam<Row> {};

TEST_P(Check, ReportsWhatIsPlanted) { test::expect_kinds(GetParam()); }

TEST(ReadersOfABlock, RaceWithAWriteAlsoOnceItHasEnded) {
  const std::string body = "setp.ne.u32 %p1, %r1, 0;\n@%p1 bra WRITE;\n" + kListOfReaders +
                           "bra END;\nWRITE:\nst.global.u32 [%rd0], %r0;\nEND:\n";
  Options o;
  o.residency = Residency::one;
  const test::Outcome out = test::run({body, "", {4}, {2, 1, 1}, {64, 1, 1}}, o);
  EXPECT_EQ(out.kinds(), "race, unordered") << out.text();
}

INSTANTIATE_TEST_SUITE_P(Memory, Check, testing::ValuesIn(memory_rows()), test::test_name);
INSTANTIATE_TEST_SUITE_P(Races, Check, testing::ValuesIn(race_rows()), test::test_name);
INSTANTIATE_TEST_SUITE_P(Halves, Check, testing::ValuesIn(half_rows()), test::test_name);
INSTANTIATE_TEST_SUITE_P(ClusterInit, Check, testing::ValuesIn(cluster_init_rows()),
                         test::test_name);
INSTANTIATE_TEST_SUITE_P(ClusterReaders, Check, testing::ValuesIn(cluster_reader_rows()),
                         test::test_name);
INSTANTIATE_TEST_SUITE_P(Invalidation, Check, testing::ValuesIn(invalidation_rows()),
                         test::test_name);
INSTANTIATE_TEST_SUITE_P(Overtaken, Check, testing::ValuesIn(overtaken_rows()), test::test_name);
INSTANTIATE_TEST_SUITE_P(Barriers, Check, testing::ValuesIn(barrier_rows()), test::test_name);
INSTANTIATE_TEST_SUITE_P(Asynchronous, Check, testing::ValuesIn(async_rows()), test::test_name);

}  // namespace
}  // namespace tilewright::emu
