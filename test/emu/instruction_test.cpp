// SPDX-License-Identifier: Apache-2.0
// A test of meaning for every row of test/data/ptx_isa_probe.txt up to sm_90a: a small kernel here,
// or a test of another file by name.
#include "emu/bench.h"

#include <bit>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <map>
#include <set>

namespace tilewright::emu {
namespace {

using test::Kernel;
using test::Outcome;
using Word = std::uint32_t;

/// Every thread stores %r30 at its word of buffer 0; buffer 1 has the words 1, 2, ..., 256.
struct Row {
  std::string feature, body;
  Word (*expected)(Word thread) = nullptr;
  std::string shared = {};
  Dim3 grid{1, 1, 1}, cluster{1, 1, 1};
};
std::ostream& operator<<(std::ostream& out, const Row& row) { return out << row.feature; }

const std::string kBar = ".shared .align 8 .b64 bar;\n";
const std::string kTile = ".shared .align 128 .b8 s[1024];\n";
/// %r12 is the thread's 16 bytes of s, %rd21 its 16 bytes of buffer 1, %p1 is set but in thread 0.
const std::string kChunks =
    "shl.b32 %r10, %r0, 4;\nmov.u32 %r11, s;\nadd.s32 %r12, %r11, %r10;\n"
    "mul.wide.u32 %rd20, %r0, 16;\nadd.s64 %rd21, %rd1, %rd20;\nsetp.ne.u32 %p1, %r0, 0;\n";
/// An mbarrier of `n` arrivals behind a block barrier.
std::string init(const std::string& n) {
  return "setp.ne.u32 %p1, %r0, 0;\n@!%p1 mbarrier.init.shared::cta.b64 [bar], " + n +
         ";\n@!%p1 fence.mbarrier_init.release.cluster;\nbar.sync 0;\n";
}
const std::string kWait =
    "W:\nmbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], 0;\n@!%p2 bra W;\n";
const std::string kLoadChunk = "ld.shared.u32 %r30, [%r12];\n";
/// %rd21 is the thread's word of buffer 1.
const std::string kWordOf1 = "mul.wide.u32 %rd20, %r0, 4;\nadd.s64 %rd21, %rd1, %rd20;\n";

Word chunk(Word t) { return 4 * t + 1; }
Word one(Word) { return 1; }
Word first(Word t) { return t == 0 ? 1 : 0; }

std::vector<Row> copy_rows() {
  auto ring = [](const std::string& copy) {
    return init("1") + kChunks +
           "@%p1 bra J;\nmbarrier.arrive.expect_tx.shared::cta.b64 %rd30, [bar], 512;\n" + copy +
           "\nJ:\n" + kWait + kLoadChunk;
  };
  const std::string stored =
      kChunks + "st.shared.v4.u32 [%r12], {%r0, %r0, %r0, %r0};\nfence.proxy.async;\nbar.sync 0;\n";
  return {
      {"cp.async.ca 16B",
       kChunks + "cp.async.ca.shared.global [%r12], [%rd21], 16;\ncp.async.wait_all;\n" +
           kLoadChunk,
       chunk, kTile},
      {"cp.async.cg + L2 hint",
       kChunks + "cp.async.cg.shared.global.L2::128B [%r12], [%rd21], 16;\ncp.async.wait_all;\n" +
           kLoadChunk,
       chunk, kTile},
      {"cp.async ignore-src pred",
       kChunks + "cp.async.ca.shared.global [%r12], [%rd21], 4, %p1;\ncp.async.wait_all;\n" +
           kLoadChunk,
       first, kTile},
      {"cp.async.mbarrier.arrive.noinc",
       init("32") + kChunks +
           "cp.async.ca.shared.global [%r12], [%rd21], "
           "16;\ncp.async.mbarrier.arrive.noinc.shared::cta.b64 [bar];\n" +
           kWait + "xor.b32 %r12, %r12, 16;\n" + kLoadChunk,
       [](Word t) { return chunk(t ^ 1); }, kTile + kBar},
      {"cp.async.bulk g->s::cluster",
       ring("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%rd1], 512, "
            "[bar];"),
       chunk, kTile + kBar},
      {"cp.async.bulk g->s::cta",
       ring("cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [s], [%rd1], 512, "
            "[bar];"),
       chunk, kTile + kBar},
      {"cp.async.bulk multicast",
       init("1") + kChunks +
           "@!%p1 mbarrier.arrive.expect_tx.shared::cta.b64 %rd30, [bar], "
           "512;\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\nmov.u32 %r2, "
           "%cluster_ctarank;\nor.b32 %r2, %r2, %r0;\nsetp.ne.u32 %p3, %r2, 0;\nmov.b16 %h0, "
           "3;\n@!%p3 "
           "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
           "[s], [%rd1], 512, [bar], %h0;\n" +
           kWait + kLoadChunk +
           "barrier.cluster.arrive;\nbarrier.cluster.wait;\nmul.lo.u32 %r31, %r1, 32;\nadd.u32 "
           "%r0, %r0, %r31;\n",
       [](Word t) { return chunk(t % 32); },
       kTile + kBar,
       {2, 1, 1},
       {2, 1, 1}},
      {"cp.async.bulk s->g",
       stored + "@%p1 bra E;\ncp.async.bulk.global.shared::cta.bulk_group [%rd1], [s], "
                "512;\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\nE:\nbar.sync "
                "0;\nld.global.u32 %r30, [%rd21];\n",
       [](Word t) { return t; }, kTile},
      {"cp.async.bulk s->s::cluster",
       init("1") + stored +
           "barrier.cluster.arrive;\nbarrier.cluster.wait;\n@%p1 bra "
           "J;\nmbarrier.arrive.expect_tx.shared::cta.b64 %rd30, [bar], 512;\nmov.u32 %r2, "
           "%cluster_ctarank;\nxor.b32 %r2, %r2, 1;\nmapa.shared::cluster.u32 %r3, s, "
           "%r2;\nmapa.shared::cluster.u32 %r4, bar, %r2;\nadd.u32 %r3, %r3, "
           "512;\ncp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r3], "
           "[s], 512, [%r4];\nJ:\n" +
           kWait +
           "ld.shared.u32 %r30, "
           "[%r12+512];\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\nmul.lo.u32 %r31, %r1, "
           "32;\nadd.u32 %r0, %r0, %r31;\n",
       [](Word t) { return t % 32; },
       kTile + kBar,
       {2, 1, 1},
       {2, 1, 1}},
      {"cp.reduce.async.bulk.add f32",
       kChunks + "mov.b32 %r2, 0f3F800000;\nst.shared.v4.u32 [%r12], {%r2, %r2, %r2, "
                 "%r2};\nfence.proxy.async;\nbar.sync 0;\n@%p1 bra "
                 "E;\ncp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%rd0], [s], "
                 "512;\ncp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%rd0], [s], "
                 "512;\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\nE:\nbar.sync "
                 "0;\nmul.wide.u32 %rd20, %r0, 4;\nadd.s64 %rd20, %rd0, %rd20;\nld.global.u32 "
                 "%r30, [%rd20];\n",
       [](Word) { return Word{0x40000000}; }, kTile},
      {"cp.async.bulk.prefetch.L2",
       "cp.async.bulk.prefetch.L2.global [%rd1], 512;\nmov.u32 %r30, 1;\n", one},
  };
}

std::vector<Row> mbarrier_rows() {
  const std::string peek = kTile + kBar;
  const std::string post =
      "shl.b32 %r10, %r0, 2;\nmov.u32 %r11, s;\nadd.s32 %r12, %r11, %r10;\nst.shared.u32 [%r12], "
      "%r0;\n";
  const std::string other = "xor.b32 %r12, %r12, 4;\n" + kLoadChunk;
  auto swap = [](Word t) { return t ^ 1; };
  return {
      {"mbarrier.init/arrive",
       init("32") + post + "mbarrier.arrive.shared::cta.b64 %rd30, [bar];\n" + kWait + other, swap,
       peek},
      {"mbarrier.test_wait (state)",
       init("32") + post +
           "mbarrier.arrive.shared::cta.b64 %rd30, [bar];\nW:\nmbarrier.test_wait.shared::cta.b64 "
           "%p2, [bar], %rd30;\n@!%p2 bra W;\n" +
           other,
       swap, peek},
      {"mbarrier.test_wait.parity",
       init("32") + post +
           "mbarrier.arrive.shared::cta.b64 %rd30, "
           "[bar];\nW:\nmbarrier.test_wait.parity.shared::cta.b64 %p2, [bar], 0;\n@!%p2 bra W;\n" +
           other,
       swap, peek},
      {"mbarrier.try_wait(.parity)",
       init("32") + post +
           "mbarrier.arrive.shared::cta.b64 %rd30, [bar];\nW:\nmbarrier.try_wait.shared::cta.b64 "
           "%p2, [bar], %rd30;\n@!%p2 bra W;\n" +
           other,
       swap, peek},
      {"mbarrier.arrive.expect_tx",
       init("32") + post +
           "@%p1 mbarrier.arrive.shared::cta.b64 %rd30, [bar];\n@!%p1 "
           "mbarrier.arrive.expect_tx.shared::cta.b64 %rd30, [bar], 8;\n@!%p1 "
           "mbarrier.complete_tx.shared::cta.b64 [bar], 8;\n" +
           kWait + other,
       swap, peek},
      {"mbarrier.arrive.relaxed",
       init("32") + "mbarrier.arrive.relaxed.cta.shared::cta.b64 %rd30, [bar];\n" + kWait +
           "mbarrier.pending_count.b64 %r2, %rd30;\nmov.u32 %r30, 1;\n",
       one, peek},
      {"mbarrier.try_wait.relaxed",
       init("32") + "mbarrier.arrive.shared::cta.b64 %rd30, "
                    "[bar];\nW:\nmbarrier.try_wait.relaxed.cta.shared::cta.b64 %p2, [bar], "
                    "%rd30;\n@!%p2 bra W;\nmov.u32 %r30, 1;\n",
       one, peek},
      {"fence.acquire / .release",
       post + "fence.release.gpu;\nbar.warp.sync -1;\nfence.acquire.gpu;\n" + other, swap, kTile},
      {"fence.acq_rel.cluster", post + "fence.acq_rel.cluster;\nbar.warp.sync -1;\n" + other, swap,
       kTile},
      {"fence...sync_restrict",
       post +
           "fence.release.sync_restrict::shared::cta.cluster;\nbar.warp.sync "
           "-1;\nfence.acquire.sync_restrict::shared::cluster.cluster;\n" +
           other,
       swap, kTile},
      {"fence.proxy.alias", "fence.proxy.alias;\nmov.u32 %r30, 1;\n", one},
      {"red.async",
       init("1") + kChunks +
           "setp.ne.u32 %p3, %r1, 0;\n@!%p1 st.shared.u32 [s], 5;\nor.pred %p3, %p3, %p1;\n@!%p1 "
           "mbarrier.arrive.expect_tx.shared::cta.b64 %rd30, [bar], "
           "4;\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\n@%p1 bra J;\nmov.u32 %r2, "
           "%cluster_ctarank;\nxor.b32 %r2, %r2, 1;\nmapa.shared::cluster.u32 %r3, s, "
           "%r2;\nmapa.shared::cluster.u32 %r4, bar, "
           "%r2;\nred.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 "
           "[%r3], 7, [%r4];\nJ:\n" +
           kWait +
           "ld.shared.u32 %r30, [s];\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\nmul.lo.u32 "
           "%r31, %r1, 32;\nadd.u32 %r0, %r0, %r31;\n",
       [](Word) { return Word{12}; },
       peek,
       {2, 1, 1},
       {2, 1, 1}},
  };
}

/// Element (r, c) of the 8 x 8 matrix is 8 r + c, as 16 bits.
std::vector<Row> matrix_rows() {
  const std::string rows8 =
      "and.b32 %r10, %r0, 7;\nshl.b32 %r11, %r10, 4;\nmov.u32 %r12, s;\nadd.u32 %r12, %r12, "
      "%r11;\n";
  const std::string fill =
      "shl.b32 %r2, %r0, 2;\nmov.u32 %r3, s;\nadd.u32 %r3, %r3, %r2;\nshl.b32 %r4, %r0, "
      "1;\nadd.u32 %r5, %r4, 1;\nshl.b32 %r5, %r5, 16;\nor.b32 %r4, %r4, %r5;\nst.shared.u32 "
      "[%r3], %r4;\nbar.warp.sync -1;\n";
  auto pair = [](Word t) { return 2 * t | (2 * t + 1) << 16; };
  auto across = [](Word t) {
    return (8 * (2 * (t % 4)) + t / 4) | (8 * (2 * (t % 4) + 1) + t / 4) << 16;
  };
  return {
      {"ldmatrix m8n8",
       fill + rows8 + "ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%r30}, [%r12];\n", across,
       kTile},
      {"stmatrix m8n8",
       rows8 + "shl.b32 %r4, %r0, 1;\nadd.u32 %r5, %r4, 1;\nshl.b32 %r5, %r5, 16;\nor.b32 %r4, "
               "%r4, %r5;\nstmatrix.sync.aligned.m8n8.x1.shared.b16 [%r12], {%r4};\nbar.warp.sync "
               "-1;\nshl.b32 %r2, %r0, 2;\nmov.u32 %r3, s;\nadd.u32 %r3, %r3, %r2;\nld.shared.u32 "
               "%r30, [%r3];\n",
       pair, kTile},
      {"movmatrix",
       "shl.b32 %r4, %r0, 1;\nadd.u32 %r5, %r4, 1;\nshl.b32 %r5, %r5, 16;\nor.b32 %r4, %r4, "
       "%r5;\nmovmatrix.sync.aligned.m8n8.trans.b16 %r30, %r4;\n",
       across},
      {"mma m8n8k4 f64",
       "shr.u32 %r2, %r0, 2;\nadd.u32 %r2, %r2, 1;\ncvt.rn.f64.u32 %fd0, %r2;\nand.b32 %r3, %r0, "
       "3;\nadd.u32 %r3, %r3, 1;\ncvt.rn.f64.u32 %fd1, %r3;\nmov.f64 %fd2, "
       "0d0000000000000000;\nmma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%fd4, %fd5}, {%fd0}, "
       "{%fd1}, {%fd2, %fd2};\nadd.f64 %fd4, %fd4, %fd5;\ncvt.rni.u32.f64 %r30, %fd4;\n",
       [](Word t) { return 20 * (t / 4 + 1); }},
      {"mma m16n8k16 f64",
       "mov.f64 %fd0, 0d3FF0000000000000;\nand.b32 %r3, %r0, 3;\nadd.u32 %r3, %r3, "
       "1;\ncvt.rn.f64.u32 %fd1, %r3;\nmov.f64 %fd2, "
       "0d0000000000000000;\nmma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%fd4, %fd5, %fd6, "
       "%fd7}, {%fd0, %fd0, %fd0, %fd0, %fd0, %fd0, %fd0, %fd0}, {%fd1, %fd1, %fd1, %fd1}, {%fd2, "
       "%fd2, %fd2, %fd2};\nadd.f64 %fd4, %fd4, %fd7;\ncvt.rni.u32.f64 %r30, %fd4;\n",
       [](Word) { return Word{80}; }},
      {"mma m16n8k32 e4m3 ->f16",
       "mov.b32 %r2, 0x38383838;\nmov.b32 %r3, 0x40404040;\nmov.b32 %r4, "
       "0;\nmma.sync.aligned.m16n8k32.row.col.f16.e4m3.e4m3.f16 {%r30, %r31}, {%r2, %r2, %r2, "
       "%r2}, {%r3, %r3}, {%r4, %r4};\n",
       [](Word) { return Word{0x54005400}; }},
      {"setmaxnreg", "setmaxnreg.dec.sync.aligned.u32 24;\nmov.u32 %r30, 1;\n", one},
  };
}

std::vector<Row> warp_rows() {
  return {
      {"elect.sync", "elect.sync %r2|%p3, -1;\nselp.u32 %r30, 1, 0, %p3;\nbar.warp.sync -1;\n",
       [](Word t) { return Word{t == 0}; }},
      {"redux.sync.add", "redux.sync.add.u32 %r30, %r0, -1;\n", [](Word) { return Word{496}; }},
      {"shfl/vote/match .sync",
       "shfl.sync.bfly.b32 %r2|%p3, %r0, 3, 31, -1;\nsetp.lt.u32 %p4, %r0, "
       "4;\nvote.sync.ballot.b32 %r3, %p4, -1;\nand.b32 %r4, %r0, 24;\nmatch.any.sync.b32 %r5, "
       "%r4, -1;\npopc.b32 %r5, %r5;\nmad.lo.u32 %r30, %r3, 100, %r2;\nadd.u32 %r30, %r30, %r5;\n",
       [](Word t) { return 1500 + (t ^ 3) + 8; }},
      {"barrier.cta.red",
       "setp.lt.u32 %p3, %r0, 9;\nbarrier.cta.red.popc.aligned.u32 %r30, 0, %p3;\n",
       [](Word) { return Word{9}; }},
      {"griddepcontrol",
       "griddepcontrol.wait;\ngriddepcontrol.launch_dependents;\nmov.u32 %r30, 1;\n", one},
      {"nanosleep", "nanosleep.u32 50;\nmov.u32 %r30, 1;\n", one},
      {"applypriority/discard/createpolicy",
       "createpolicy.fractional.L2::evict_last.b64 %rd20, "
       "0f3F800000;\napplypriority.global.L2::evict_normal [%rd1], 128;\nsetp.ne.u32 %p1, %r0, "
       "0;\n@!%p1 discard.global.L2 [%rd1+128], 128;\nld.global.L2::cache_hint.u32 %r30, [%rd1], "
       "%rd20;\n",
       one},
      {".b8/.explicitcluster: stacksave/alloca",
       "stacksave.u64 %rd20;\nalloca.u64 %rd21, 16, 16;\nst.local.u32 [%rd21], %r0;\nld.local.u32 "
       "%r30, [%rd21];\nstackrestore.u64 %rd20;\n",
       [](Word t) { return t; }},
      {"barrier.cluster",
       "mov.u32 %r2, s;\nsetp.ne.u32 %p1, %r0, 0;\n@!%p1 st.shared.u32 [s], "
       "%r1;\nbarrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;\nxor.b32 %r3, %r1, "
       "1;\nmapa.shared::cluster.u32 %r4, %r2, %r3;\nld.shared::cluster.u32 %r30, "
       "[%r4];\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\nmul.lo.u32 %r31, %r1, 32;\nadd.u32 "
       "%r0, %r0, %r31;\n",
       [](Word t) { return t / 32 ^ 1; },
       kTile,
       {2, 1, 1},
       {2, 1, 1}},
      {"mapa / getctarank",
       "mov.u32 %r2, s;\nmapa.shared::cluster.u32 %r3, %r2, 1;\ngetctarank.shared::cluster.u32 "
       "%r4, %r3;\ngetctarank.shared::cluster.u32 %r5, %r2;\nmad.lo.u32 %r30, %r4, 10, "
       "%r5;\nmul.lo.u32 %r31, %r1, 32;\nadd.u32 %r0, %r0, %r31;\n",
       [](Word t) { return 10 + t / 32; },
       kTile,
       {2, 1, 1},
       {2, 1, 1}},
      {"isspacep.shared::cluster",
       "mov.u64 %rd20, s;\ncvta.shared.u64 %rd20, %rd20;\nmapa.u64 %rd21, %rd20, "
       "1;\nisspacep.shared::cluster %p3, %rd21;\nisspacep.shared::cta %p4, "
       "%rd21;\nisspacep.shared::cluster %p5, %rd0;\nselp.u32 %r30, 4, 0, %p3;\n@%p4 add.u32 %r30, "
       "%r30, 2;\n@%p5 add.u32 %r30, %r30, 1;\nmul.lo.u32 %r31, %r1, 32;\nadd.u32 %r0, %r0, "
       "%r31;\n",
       [](Word t) { return t < 32 ? Word{4} : Word{6}; },
       kTile,
       {2, 1, 1},
       {2, 1, 1}},
      {"%cluster_ctaid sreg",
       "mov.u32 %r2, %cluster_ctaid.x;\nmov.u32 %r3, %cluster_nctaid.x;\nmad.lo.u32 %r30, %r3, 10, "
       "%r2;\nmul.lo.u32 %r31, %r1, 32;\nadd.u32 %r0, %r0, %r31;\n",
       [](Word t) { return 20 + t / 32; },
       "",
       {2, 1, 1},
       {2, 1, 1}},
      {"%total_smem_size",
       "mov.u32 %r2, %total_smem_size;\nsetp.ge.u32 %p3, %r2, 1024;\nselp.u32 %r30, 1, 0, "
       "%p3;\nsetp.ne.u32 %p1, %r0, 0;\n@!%p1 st.shared.u32 [s], 0;\n",
       one, kTile},
      {"%aggr_smem_size",
       "mov.u32 %r2, %aggr_smem_size;\nsetp.ge.u32 %p3, %r2, 1024;\nselp.u32 %r30, 1, 0, "
       "%p3;\nsetp.ne.u32 %p1, %r0, 0;\n@!%p1 st.shared.u32 [s], 0;\n",
       one, kTile},
      {"%is_explicit_cluster",
       "mov.pred %p3, %is_explicit_cluster;\nselp.u32 %r30, 1, 0, %p3;\nmul.lo.u32 %r31, %r1, "
       "32;\nadd.u32 %r0, %r0, %r31;\n",
       one,
       "",
       {2, 1, 1},
       {2, 1, 1}},
      {"%globaltimer",
       "mov.u64 %rd20, %globaltimer;\nnanosleep.u32 1000;\nmov.u64 %rd21, "
       "%globaltimer;\nsetp.ge.u64 %p3, %rd21, %rd20;\nselp.u32 %r30, 1, 0, %p3;\n",
       one},
  };
}

std::vector<Row> memory_rows() {
  const std::string own = "mul.wide.u32 %rd20, %r0, 4;\nadd.s64 %rd20, %rd0, %rd20;\n";
  const std::string back = "bar.warp.sync -1;\n" + own + "ld.global.u32 %r30, [%rd20];\n";
  auto load = [](const std::string& how) { return kWordOf1 + how + " %r30, [%rd21];\n"; };
  auto word = [](Word t) { return t + 1; };
  return {
      {"atom.global.v4.f32",
       "setp.ne.u32 %p1, %r0, 0;\n@%p1 bra E;\natom.global.add.v4.f32 {%f4, %f5, %f6, %f7}, "
       "[%rd0], {0f3F800000, 0f40000000, 0f40400000, 0f40800000};\nE:\n" +
           back,
       [](Word t) { return t < 4 ? std::bit_cast<Word>(static_cast<float>(t + 1)) : 0; }},
      {"red.global.v8.bf16 noftz",
       "setp.ne.u32 %p1, %r0, 0;\nmov.b16 %h0, 0x3f80;\n@!%p1 red.global.add.noftz.v8.bf16 [%rd0], "
       "{%h0, %h0, %h0, %h0, %h0, %h0, %h0, %h0};\n" +
           back,
       [](Word t) { return t < 4 ? Word{0x3f803f80} : Word{0}; }},
      {"red.global v2.f32", "red.global.add.v2.f32 [%rd0], {0f3F800000, 0f40000000};\n" + back,
       [](Word t) { return t == 0   ? Word{0x42000000}
                           : t == 1 ? Word{0x42800000}
                                    : Word{0}; }},
      {"atom.cas.b128",
       ".reg .b128 %q<4>;\nsetp.ne.u32 %p1, %r0, 0;\n@%p1 bra E;\nmov.b64 %rd20, 0;\nmov.b64 "
       "%rd21, 7;\nmov.b128 %q0, {%rd20, %rd20};\nmov.b128 %q1, {%rd21, "
       "%rd21};\natom.global.cas.b128 %q2, [%rd0], %q0, %q1;\natom.global.cas.b128 %q2, [%rd0], "
       "%q0, %q0;\nE:\n" +
           back,
       [](Word t) { return t == 0 || t == 2 ? Word{7} : Word{0}; }},
      {"ld.b128",
       ".reg .b128 %q<2>;\nmul.wide.u32 %rd20, %r0, 16;\nadd.s64 %rd21, %rd1, "
       "%rd20;\nld.global.b128 %q0, [%rd21];\nmov.b128 {%rd22, %rd23}, %q0;\nshr.u64 %rd23, %rd23, "
       "32;\ncvt.u32.u64 %r30, %rd23;\n",
       [](Word t) { return 4 * t + 4; }},
      {"ld.relaxed.cluster", load("ld.relaxed.cluster.global.u32"), word},
      {"ld.acquire.sys / st.release",
       kWordOf1 +
           "st.release.sys.global.u32 [%rd21], %r0;\nld.acquire.sys.global.u32 %r30, [%rd21];\n",
       [](Word t) { return t; }},
      {"ld.mmio", load("ld.mmio.relaxed.sys.global.u32"), word},
      {"ld L1::no_allocate", load("ld.global.L1::no_allocate.u32"), word},
  };
}

std::vector<Row> number_rows() {
  auto float_of_thread = "cvt.rn.f32.u32 %f0, %r0;\n";
  return {
      {"cvt rn.bf16x2.f32", "cvt.rn.bf16x2.f32 %r30, 0f3F804000, 0f40490FDB;\n",
       [](Word) { return Word{0x3f804049}; }},
      {"cvt rna.tf32.f32", "cvt.rna.tf32.f32 %r30, 0f3F801000;\n",
       [](Word) { return Word{0x3f802000}; }},
      {"cvt e4m3x2.f32",
       "cvt.rn.satfinite.e4m3x2.f32 %h0, 0f44800000, 0f3FC00000;\ncvt.u32.u16 %r30, %h0;\n",
       [](Word) { return Word{0x7e3c}; }},
      {"cvt f16x2.e4m3x2", "mov.b16 %h0, 0xb83c;\ncvt.rn.f16x2.e4m3x2 %r30, %h0;\n",
       [](Word) { return Word{0xbc003e00}; }},
      {"cvt bf16.s32 etc.", "cvt.rn.bf16.s32 %h0, %r0;\ncvt.rni.s32.bf16 %r30, %h0;\n",
       [](Word t) { return t; }},
      {"ex2.approx.ftz.bf16x2 / tanh",
       "mov.b32 %r2, 0x40004040;\nex2.approx.ftz.bf16x2 %r30, %r2;\nmov.b32 %r3, "
       "0x00004300;\ntanh.approx.bf16x2 %r3, %r3;\nadd.u32 %r30, %r30, %r3;\n",
       [](Word) { return Word{0x40804100} + 0x3f80; }},
      {"tanh.approx.f32",
       "mov.f32 %f0, 0f42C80000;\ntanh.approx.f32 %f1, %f0;\nmov.b32 %r30, %f1;\n",
       [](Word) { return Word{0x3f800000}; }},
      {"min/max xorsign.abs",
       std::string(float_of_thread) +
           "min.xorsign.abs.f32 %f1, %f0, 0fC0400000;\nmov.b32 %r30, %f1;\n",
       [](Word t) { return std::bit_cast<Word>(-static_cast<float>(t < 3 ? t : 3)); }},
      {"fma.relu.bf16x2",
       "mov.b32 %r2, 0x40004000;\nmov.b32 %r3, 0xc0003f80;\nmov.b32 %r4, 0;\nfma.rn.relu.bf16x2 "
       "%r30, %r2, %r3, %r4;\n",
       [](Word) { return Word{0x00004000}; }},
      {"szext / bmsk",
       "szext.wrap.s32 %r2, 0xf0, 8;\nbmsk.clamp.b32 %r3, 4, 3;\nxor.b32 %r30, %r2, %r3;\n",
       [](Word) { return Word{0xfffffff0 ^ 0x70}; }},
  };
}

std::vector<Row> rows() {
  std::vector<Row> all;
  for (const auto& part :
       {copy_rows(), mbarrier_rows(), matrix_rows(), warp_rows(), memory_rows(), number_rows()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

class Instruction : public testing::TestWithParam<Row> {};

TEST_P(Instruction, DoesWhatTheManualSays) {
  const Row& row = GetParam();
  Kernel k;
  const auto threads = static_cast<std::size_t>(32 * row.grid.x);
  k.buffers = {std::max<std::int64_t>(4 * static_cast<std::int64_t>(threads), 512), 1024};
  k.body =
      row.body +
      "mul.wide.u32 %rd20, %r0, 4;\nadd.s64 %rd20, %rd0, %rd20;\nst.global.u32 [%rd20], %r30;\n";
  k.shared = row.shared;
  k.grid = row.grid;
  k.cluster = row.cluster;
  std::vector<Word> numbers(256), expected(threads);
  for (Word i = 0; i < 256; ++i)
    numbers[i] = i + 1;
  for (Word i = 0; i < threads; ++i)
    expected[i] = row.expected(i);
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    Options o;
    o.seed = seed;
    o.delivery = static_cast<Delivery>(seed % 3);
    o.divergence = static_cast<Divergence>(seed / 2);
    const Outcome out = test::run(k, o, {std::vector<Word>(threads), numbers});
    EXPECT_TRUE(out.report.ok() && out.report.findings.empty())
        << "seed " << seed << ": " << out.text();
    const std::vector<Word> words(out.words[0].begin(),
                                  out.words[0].begin() + static_cast<std::ptrdiff_t>(threads));
    EXPECT_EQ(words, expected) << "seed " << seed;
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Probe, Instruction, testing::ValuesIn(rows()), [](const auto& row) {
  std::string name;
  for (const char c : row.param.feature)
    name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return name;
});

std::string read(const std::string& path) {
  std::ifstream in(std::string(TILEWRIGHT_SOURCE_DIR) + "/" + path);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

/// Rows whose meaning another file tests: the file, and the text that begins the test's row.
const std::map<std::string, std::pair<std::string, std::string>> kElsewhere = {
    {"mbarrier.arrive shared::cluster", {"test/emu/idioms_test.cpp", "{\"remote_barrier\""}},
    {"fence.mbarrier_init", {"test/emu/checks_test.cpp", "fence.mbarrier_init.release.cluster"}},
    {"fence.proxy.async", {"test/emu/checks_test.cpp", "a bulk store without a proxy fence"}},
    {"fence.proxy.async.shared::cta",
     {"test/emu/checks_test.cpp", "a bulk store behind a proxy fence"}},
    {"fence.proxy.tensormap acquire", {"test/emu/tensor_test.cpp", "EditsAMapInPlace"}},
    {"cp.async.bulk.tensor 2d tile", {"test/emu/tensor_test.cpp", "MovesABoxInsideTheTensor"}},
    {"cp.async.bulk.tensor ->shared::cta", {"test/emu/tensor_test.cpp", "LoadsIntoTheBlockItself"}},
    {"cp.async.bulk.tensor im2col", {"test/emu/tensor_test.cpp", "TakesTheColumnsOfAConvolution"}},
    {"cp.async.bulk.tensor store", {"test/emu/tensor_test.cpp", "SkipsWhatLiesOutside"}},
    {"cp.reduce.async.bulk.tensor", {"test/emu/tensor_test.cpp", "ReducesIntoGlobalMemory"}},
    {"tensormap.replace", {"test/emu/tensor_test.cpp", "EditsAMapInPlace"}},
    {"mma m16n8k16 bf16", {"test/emu/matrix_test.cpp", "{\"Bf16\""}},
    {"mma m16n8k8 tf32", {"test/emu/matrix_test.cpp", "{\"Tf32\""}},
    {"mma m16n8k32 s8", {"test/emu/matrix_test.cpp", "{\"S8\""}},
    {"mma m16n8k64 s4", {"test/emu/matrix_test.cpp", "{\"S4ByU4\""}},
    {"mma m16n8k32 e4m3 ->f32", {"test/emu/matrix_test.cpp", "{\"E4m3\""}},
    {"mma.sp m16n8k32 f16", {"test/emu/matrix_test.cpp", "{\"SparseF16Wide\""}},
    {"mma.sp::ordered_metadata", {"test/emu/matrix_test.cpp", "{\"SparseBf16Ordered\""}},
    {"wgmma m64n8k16 f16", {"test/emu/corpus_test.cpp", "k18_wgmma"}},
    {"wgmma e4m3", {"test/emu/matrix_test.cpp", "WgmmaRow{\"E4m3\""}},
    {"wgmma.sp", {"test/emu/matrix_test.cpp", "WgmmaRow{\"SparseF16\""}},
    {"st.async", {"test/emu/programs_test.cpp", "{\"remote_store\""}},
    {"multimem.ld_reduce f32", {"test/emu/multimem_test.cpp", "ReducesFloats"}},
    {"multimem.ld_reduce v4.bf16x2 acc f32", {"test/emu/multimem_test.cpp", "ReducesFloats"}},
    {"multimem.st / red", {"test/emu/multimem_test.cpp", "ReducesAndWritesEveryMember"}},
};

/// "mma m8n8k4 f64 |7.0 |80,...,90a,...|": the feature, if sm_90a has it.
std::string feature_of(const std::string& line) {
  const std::size_t bar = line.find('|');
  if (bar == std::string::npos || line.find("90a", bar) == std::string::npos) return "";
  return line.substr(0, line.find_last_not_of(' ', bar - 1) + 1);
}

TEST(Probe, EveryFeatureUpToSm90aIsTested) {
  std::set<std::string> here;
  for (const Row& row : rows())
    here.insert(row.feature);
  std::ifstream probe(std::string(TILEWRIGHT_SOURCE_DIR) + "/test/data/ptx_isa_probe.txt");
  int features = 0;
  for (std::string line; std::getline(probe, line);) {
    const std::string feature = feature_of(line);
    if (feature.empty()) continue;
    ++features;
    const auto found = kElsewhere.find(feature);
    if (found == kElsewhere.end()) {
      EXPECT_TRUE(here.contains(feature)) << feature << " has no test";
      continue;
    }
    const auto& [file, text] = found->second;
    EXPECT_NE(read(file).find(text), std::string::npos)
        << feature << ": " << file << " lacks " << text;
  }
  EXPECT_GT(features, 80);
}

}  // namespace
}  // namespace tilewright::emu
