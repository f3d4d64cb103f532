// SPDX-License-Identifier: Apache-2.0
// The race check by the byte: parties that share words but no bytes are clean, whatever the widths
// of their accesses, and those that share one byte are found.
#include "emu/rows.h"

namespace tilewright::emu {
namespace {

using test::Kernel;
using test::Row;

/// Code of the first thread of one warp.
std::string warp(int number, const std::string& code) {
  const std::string n = std::to_string(number);
  return "setp.ne.u32 %p1, %r0, " + std::to_string(32 * number) + ";\n@%p1 bra P" + n + ";\n" +
         code + "\nP" + n + ":\n";
}
Kernel four_warps(const std::string& body) {
  return {
      body, ".shared .align 16 .b8 s[64];\n.reg .b128 %q;\n", {256, 256}, {1, 1, 1}, {128, 1, 1}};
}

/// In place on bytes: each thread reads one, its own or another of the word, and writes its own.
/// Parties that share a word: lanes, warps, blocks.
std::vector<Row> in_place_rows() {
  const std::string lanes = "mov.u32 %r5, %r0;\n";
  const std::string warps =
      "and.b32 %r5, %r0, 31;\nshl.b32 %r5, %r5, 2;\nshr.u32 %r6, %r0, 5;\nadd.s32 %r5, %r5, %r6;\n";
  const std::string blocks = "shl.b32 %r5, %r0, 2;\nadd.s32 %r5, %r5, %r1;\n";
  const std::string own = "cvt.u64.u32 %rd21, %r5;\nadd.s64 %rd21, %rd0, %rd21;\n";
  auto body = [&](const std::string& mine, const std::string& other) {
    return mine + own + "xor.b64 %rd22, %rd21, " + other +
           ";\nld.global.u8 %h1, [%rd22];\nadd.u16 %h1, %h1, 1;\nst.global.u8 [%rd21], %h1;";
  };
  const Dim3 one{1, 1, 1}, four{4, 1, 1}, warp{32, 1, 1}, all{128, 1, 1};
  return {
      {"lanes update bytes of a word", {body(lanes, "0"), "", {128}}, ""},
      {"lanes read the next byte", {body(lanes, "1"), "", {128}}, "unordered"},
      {"lanes read a byte of the other half", {body(lanes, "3"), "", {128}}, "unordered"},
      {"warps update bytes of a word", {body(warps, "0"), "", {128}, one, all}, ""},
      {"warps read the next byte", {body(warps, "1"), "", {128}, one, all}, "race"},
      {"warps read a byte of the other half", {body(warps, "2"), "", {128}, one, all}, "race"},
      {"blocks update bytes of a word", {body(blocks, "0"), "", {128}, four, warp}, ""},
      {"blocks read the next byte", {body(blocks, "1"), "", {128}, four, warp}, "race"},
      {"blocks read a byte of the other half", {body(blocks, "2"), "", {128}, four, warp}, "race"},
  };
}

/// Weak accesses of several widths to the word at s.
std::vector<Row> width_rows() {
  const std::string init = "setp.eq.u32 %p1, %r0, 0;\n@%p1 st.shared.b64 [s], 0;\nbar.sync 0;\n";
  auto three = [&](const std::string& a, const std::string& b, const std::string& c) {
    return four_warps(init + warp(1, a) + warp(2, b) + warp(3, c));
  };
  return {
      {"a later writer of another byte hides no writer",
       three("st.shared.u8 [s], 1;", "st.shared.u8 [s+1], 2;", "ld.shared.u8 %r5, [s];"), "race"},
      {"a reader of a byte that nobody writes",
       three("st.shared.u8 [s], 1;", "st.shared.u8 [s+1], 2;", "ld.shared.u8 %r5, [s+2];"), ""},
      {"writers of a half and of a byte in it",
       three("st.shared.u16 [s+2], 1;", "st.shared.u8 [s+1], 2;", "st.shared.u8 [s+3], 3;"),
       "race"},
      {"writers of a half and of two bytes beside it",
       three("st.shared.u16 [s+2], 1;", "st.shared.u8 [s+1], 2;", "st.shared.u8 [s], 3;"), ""},
      {"a reader of the word and a writer of its last byte",
       three("ld.shared.u16 %r5, [s];", "ld.shared.u32 %r6, [s];", "st.shared.u8 [s+3], 3;"),
       "race"},
      {"readers of other bytes and a writer of the last",
       three("ld.shared.u16 %r5, [s];", "ld.shared.u8 %r6, [s+2];", "st.shared.u8 [s+3], 3;"), ""},
      {"writers of bytes and a reader of eight bytes",
       three("st.shared.u8 [s+5], 1;", "st.shared.u8 [s+6], 2;", "ld.shared.b64 %rd21, [s];"),
       "race"},
      {"a barrier between widths",
       four_warps(init + warp(1, "st.shared.u8 [s+1], 1;") + warp(2, "st.shared.u16 [s+2], 2;") +
                  "bar.sync 0;\nld.shared.u32 %r5, [s];\nbar.sync 0;\n" +
                  warp(3, "st.shared.u32 [s], 7;")),
       ""},
      {"a missing barrier between widths",
       four_warps(init + warp(1, "st.shared.u8 [s+1], 1;") + warp(2, "st.shared.u16 [s+2], 2;") +
                  "bar.sync 0;\n" + warp(0, "ld.shared.u32 %r5, [s];") +
                  warp(3, "st.shared.u8 [s], 7;")),
       "race"},
  };
}

/// One warp reads rows of halves, another rows of words, of which it then writes a half.
Kernel rows_then_half(const std::string& half) {
  return {
      "and.b32 %r5, %r0, 31;\nshl.b32 %r5, %r5, 2;\ncvt.u64.u32 %rd21, %r5;\n"
      "add.s64 %rd21, %rd0, %rd21;\nsetp.lt.u32 %p1, %r0, 32;\n@%p1 bra A;\n"
      "ld.global.u32 %r6, [%rd21];\nst.global.u16 [%rd21+" +
          half + "], 1;\nbra E;\nA:\nld.global.u16 %h1, [%rd21];\nE:\n",
      "",
      {128},
      {1, 1, 1},
      {64, 1, 1}};
}

std::vector<Row> row_rows() {
  return {
      {"the half that only the writer has read", rows_then_half("2"), ""},
      {"the half that another warp has read", rows_then_half("0"), "race"},
  };
}

/// Strong accesses race if they overlap without covering each other. PTX ISA, morally strong
/// operations.
std::vector<Row> strong_rows() {
  auto two = [](const std::string& a, const std::string& b) {
    return four_warps(warp(1, a) + warp(2, b));
  };
  return {
      {"strong accesses of one size",
       two("st.relaxed.gpu.global.u32 [%rd0], 1;", "ld.relaxed.gpu.global.u32 %r5, [%rd0];"), ""},
      {"a strong half of a strong word",
       two("st.relaxed.gpu.global.u32 [%rd0], 1;", "ld.relaxed.gpu.global.u16 %h5, [%rd0];"),
       "race"},
      {"strong bytes beside each other",
       two("st.relaxed.gpu.global.u8 [%rd0], 1;", "st.relaxed.gpu.global.u8 [%rd0+1], 2;"), ""},
      {"a strong byte of a strong half",
       two("st.relaxed.gpu.global.u16 [%rd0], 1;", "st.relaxed.gpu.global.u8 [%rd0+1], 2;"),
       "race"},
      {"the upper word of a strong eight bytes",
       two("red.relaxed.gpu.global.add.u64 [%rd0], 1;",
           "red.relaxed.gpu.global.add.u32 [%rd0+4], 1;"),
       "race"},
      {"updates of eight bytes",
       two("red.relaxed.gpu.global.add.u64 [%rd0], 1;",
           "red.relaxed.gpu.global.add.u64 [%rd0], 1;"),
       ""},
      {"updates of one size by whole warps",
       {"red.global.add.u32 [%rd0], 1;\nred.global.add.u32 [%rd0], 1;", "", {8}, {2, 1, 1}},
       ""},
      {"updates of two sizes by whole warps",
       {"red.global.add.u32 [%rd0], 1;\nred.global.add.u64 [%rd0], 1;",
        "",
        {8},
        {1, 1, 1},
        {32, 1, 1}},
       "unordered"},
      {"strong vectors are their elements",
       two("st.volatile.global.v2.u32 [%rd0], {1, 2};", "ld.volatile.global.u32 %r5, [%rd0+4];"),
       ""},
      {"a strong vector of halves and a strong word",
       two("st.volatile.global.v2.u16 [%rd0], {1, 2};", "ld.volatile.global.u32 %r5, [%rd0];"),
       "race"},
      {"strong eight bytes and two strong words",
       two("st.volatile.global.u64 [%rd0], 1;", "ld.volatile.global.v2.u32 {%r5, %r6}, [%rd0];"),
       "race"},
      {"updates of sixteen bytes",
       two("mov.b128 %q, {%rd0, %rd0};\natom.relaxed.gpu.global.exch.b128 %q, [%rd0], %q;",
           "mov.b128 %q, {%rd1, %rd1};\natom.relaxed.gpu.global.exch.b128 %q, [%rd0], %q;"),
       ""},
      {"updates of sixteen and of eight bytes",
       two("mov.b128 %q, {%rd0, %rd0};\natom.relaxed.gpu.global.exch.b128 %q, [%rd0], %q;",
           "red.relaxed.gpu.global.add.u64 [%rd0+8], 1;"),
       "race"},
      {"vector updates and updates of one element",
       two("red.global.add.v2.f32 [%rd0], {0f3F800000, 0f3F800000};",
           "red.global.add.f32 [%rd0+4], 0f3F800000;"),
       ""},
      {"halves of a word by compare and swap",
       two("atom.global.cas.b16 %h1, [%rd0], 0, 1;", "atom.global.cas.b16 %h2, [%rd0+2], 0, 1;"),
       ""},
  };
}

/// Who else has read the word is not forgotten.
std::vector<Row> reader_rows() {
  const std::string flag = "fence.acq_rel.cta;\nst.relaxed.cta.global.u32 [%rd1], 1;";
  const std::string await =
      "W:\nld.acquire.cta.global.u32 %r8, [%rd1];\nsetp.eq.u32 %p2, %r8, 0;\n@%p2 bra W;\n";
  const std::string read = "ld.global.u32 %r5, [%rd0];\n";
  const std::string poll = "ld.relaxed.gpu.global.u32 %r5, [%rd0];\n";
  auto of = [](const std::string& body) { return four_warps(body); };
  const std::string epoch = "fence.acq_rel.cta;\n";
  return {
      {"a reader of a later epoch hides no reader",
       of(warp(0, read) + warp(1, read) + warp(2, epoch + read + flag) +
          warp(3, await + "st.global.u32 [%rd0], 1;")),
       "race"},
      {"readers of two epochs behind the flag",
       of(warp(2, epoch + read + epoch + read + flag) +
          warp(3, await + "st.global.u32 [%rd0], 1;")),
       ""},
      {"a weak reader behind the flag and a strong one beside it",
       of(warp(1, poll) + warp(2, read + flag) +
          warp(3, await + "st.relaxed.gpu.global.u32 [%rd0], 1;")),
       ""},
      {"a weak reader beside the flag and a strong one",
       of(warp(0, read) + warp(1, poll) + warp(2, poll + flag) +
          warp(3, await + "st.relaxed.gpu.global.u32 [%rd0], 1;")),
       "race"},
      {"a strong read hides no weak one of the same thread",
       of(warp(1, read + poll) + warp(2, "st.relaxed.gpu.global.u32 [%rd0], 1;")), "race"},
      {"readers of a block that has ended",
       {"setp.ne.u32 %p3, %r1, 0;\n@%p3 bra B;\nshr.u32 %r6, %r0, 5;\nsetp.ne.u32 %p1, %r6, 0;\n"
        "@%p1 bra A;\nfence.acq_rel.gpu;\nA:\nld.global.u32 %r5, [%rd0];\nbra E;\n"
        "B:\nsetp.ne.u32 %p1, %r0, 0;\n@!%p1 st.global.u32 [%rd0], 1;\nE:\n",
        "",
        {8},
        {2, 1, 1},
        {64, 1, 1}},
       "race"},
  };
}

/// A release is acquired by reads of its bytes alone.
std::vector<Row> flag_rows() {
  auto message = [](const std::string& at) {
    return Kernel{
        "setp.ne.u32 %p1, %r1, 0;\n@%p1 bra B;\nst.global.u32 [%rd0], 7;\n"
        "st.release.gpu.global.u16 [%rd1], 1;\nbra E;\nB:\n"
        "setp.ne.u32 %p1, %r1, 1;\n@%p1 bra C;\n"
        "st.release.gpu.global.u16 [%rd1+2], 1;\nbra E;\nC:\n"
        "ld.acquire.gpu.global.u16 %h1, [%rd1+" +
            at + "];\nsetp.eq.u16 %p2, %h1, 0;\n@%p2 bra C;\nld.global.u32 %r4, [%rd0];\nE:\n",
        "",
        {4, 4},
        {3, 1, 1},
        {1, 1, 1}};
  };
  return {
      {"the flag in its own half", message("0"), ""},
      {"the flag in the other half", message("2"), "race"},
  };
}

class Bytes : public testing::TestWithParam<Row> {};
TEST_P(Bytes, AreJudgedApart) { test::expect_kinds(GetParam()); }

INSTANTIATE_TEST_SUITE_P(InPlace, Bytes, testing::ValuesIn(in_place_rows()), test::test_name);
INSTANTIATE_TEST_SUITE_P(Widths, Bytes, testing::ValuesIn(width_rows()), test::test_name);
INSTANTIATE_TEST_SUITE_P(Rows, Bytes, testing::ValuesIn(row_rows()), test::test_name);
INSTANTIATE_TEST_SUITE_P(Strong, Bytes, testing::ValuesIn(strong_rows()), test::test_name);
INSTANTIATE_TEST_SUITE_P(Readers, Bytes, testing::ValuesIn(reader_rows()), test::test_name);
INSTANTIATE_TEST_SUITE_P(Flags, Bytes, testing::ValuesIn(flag_rows()), test::test_name);

}  // namespace
}  // namespace tilewright::emu
