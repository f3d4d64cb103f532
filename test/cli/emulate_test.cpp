// SPDX-License-Identifier: Apache-2.0
// `tilewright emulate`: launches, arguments, cases, findings.
#include "cli/process.h"
#include "tilewright/npy.h"

#include <nlohmann/json.hpp>

namespace tilewright::test {
namespace {

// out[i] = in[i] + add, without a bound check: 64 threads.
constexpr const char* kAdd = R"(.version 8.0
.target sm_90a
.address_size 64
.visible .entry add(.param .u64 in, .param .u64 out, .param .u32 add)
{
  .reg .b32 %r<4>;
  .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [in];
  ld.param.u64 %rd2, [out];
  ld.param.u32 %r1, [add];
  mov.u32 %r2, %tid.x;
  mul.wide.u32 %rd3, %r2, 4;
  add.u64 %rd4, %rd1, %rd3;
  add.u64 %rd5, %rd2, %rd3;
  ld.global.u32 %r3, [%rd4];
  add.u32 %r3, %r3, %r1;
  st.global.u32 [%rd5], %r3;
  ret;
}
)";

TEST(Emulate, RunsAndPrintsOutputs) {
  const Folder folder;
  folder.write("add.ptx", kAdd);
  const Outcome outcome = tilewright(
      folder, "emulate add.ptx --block 64 --arg iota:u32:64 --arg out:u32:64 --arg i32:5");
  EXPECT_EQ(outcome.code, 0) << outcome.err << outcome.out;
  EXPECT_NE(
      outcome.out.find("out:u32:64: u32[64] = 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 ..."),
      std::string::npos)
      << outcome.out;
  EXPECT_NE(outcome.out.find("1 schedule, "), std::string::npos);
  EXPECT_NE(outcome.out.find(", 0 findings"), std::string::npos);
}

TEST(Emulate, ReadsAndSavesFiles) {
  const Folder folder;
  folder.write("add.ptx", kAdd);
  write_npy(folder / "in.npy", make_array("in", Type::s32, {2}, std::vector<double>{-7, 4}));
  const Outcome outcome = tilewright(
      folder, "emulate add.ptx --block 2 --arg @in.npy --arg out:i32:2=y.npy --arg i32:-1");
  EXPECT_EQ(outcome.code, 0) << outcome.err << outcome.out;
  EXPECT_EQ(to_doubles(read_npy(folder / "y.npy")), (std::vector<double>{-8, 3}));
}

TEST(Emulate, FindingsEndWithThree) {
  const Folder folder;
  folder.write("add.ptx", kAdd);
  const Outcome outcome = tilewright(
      folder,
      "emulate add.ptx --block 65 --arg iota:u32:64 --arg out:u32:65 --arg i32:0 --json --seeds 3");
  EXPECT_EQ(outcome.code, 3) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  ASSERT_GE(json["findings"].size(), 1U);
  EXPECT_EQ(json["findings"][0]["kind"], "out_of_bounds");
  EXPECT_EQ(json["findings"][0]["place"]["instruction"], "ld.global.u32");
  EXPECT_EQ(json["findings"][0]["place"]["thread"], (nlohmann::json{64, 0, 0}));
  EXPECT_EQ(json["findings"][0]["seed"], 0);
}

TEST(Emulate, CountsByInstruction) {
  const Folder folder;
  folder.write("add.ptx", kAdd);
  const Outcome outcome = tilewright(folder,
                                     "emulate add.ptx --block 64 --counters --json --arg "
                                     "iota:u32:64 --arg out:u32:64 --arg i32:5");
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["counters"]["global_read_bytes"], 256);
  bool seen = false;
  for (const auto& row : json["counters"]["instructions"]) {
    if (row["instruction"] != "ld.global.u32") continue;
    seen = true;
    EXPECT_EQ(row["executions"], 2);
    EXPECT_EQ(row["sectors"], row["ideal_sectors"]);
  }
  EXPECT_TRUE(seen);
}

/// 512 bytes at 4.8 TB/s; 640 instructions of threads at 128 a cycle of 132 SMs at 1.83 GHz.
TEST(Emulate, BoundsTheTimeOnAGpu) {
  const Folder folder;
  folder.write("add.ptx", kAdd);
  const std::string run =
      "emulate add.ptx --block 64 --arg iota:u32:64 --arg out:u32:64 --arg i32:5 --roofline ";
  const auto json =
      nlohmann::json::parse(tilewright(folder, run + "'NVIDIA H200' --json").out)["roofline"];
  EXPECT_EQ(json["bounds"][0]["amount"], 512);
  EXPECT_DOUBLE_EQ(json["bounds"][0]["us"], 512 / 4.8e12 * 1e6);
  const double threads = json["bounds"][2]["amount"];
  EXPECT_DOUBLE_EQ(json["bounds"][2]["us"], threads / (128 * 132 * 1.83e9) * 1e6);
  EXPECT_EQ(json["bound_by"], "global memory");
  const Outcome text = tilewright(folder, run + "'NVIDIA H200'");
  EXPECT_NE(text.out.find("bound     0.0001 us by global memory"), std::string::npos) << text.out;
  EXPECT_EQ(tilewright(folder, run + "H2").err,
            "tilewright: error: --roofline H2: the GPUs with known rates are NVIDIA "
            "A100-SXM4-80GB, NVIDIA H100 80GB HBM3, NVIDIA H200\n");
}

TEST(Emulate, BadUsageEndsWithTwo) {
  const Folder folder;
  folder.write("add.ptx", kAdd);
  folder.write("bad.ptx", ".version 8.0\n.target sm_90a\n.address_size 64\nfoo\n");
  struct Row {
    const char* arguments;
    const char* message;
  };
  const Row rows[] = {
      {"missing.ptx", "missing.ptx: cannot open: No such file or directory\n"},
      {"add.ptx --entry sub", "add.ptx: no entry is named 'sub'; it has add\n"},
      {"add.ptx --grid 0", "--grid 0: write one to three positive numbers: 64 or 8,4,1\n"},
      {"add.ptx --grid 1,2,3,4",
       "--grid 1,2,3,4: write one to three positive numbers: 64 or 8,4,1\n"},
      {"add.ptx --residency some", "--residency some: it is one of all, estimate, one\n"},
      {"add.ptx",
       "add takes 3 parameters (u64, u64, u32) but 0 are given; repeat --arg, one a parameter\n"},
      {"add.ptx --arg i32:1 --arg i32:1 --arg i32:1",
       "--arg i32:1: parameter 0 of add is u64 of 8 bytes, the argument has 4\n"},
      {"add.ptx --arg out:u32",
       "--arg out:u32: the number of elements is missing; write @FILE, out:TYPE:N[=FILE], "
       "iota:TYPE:N or TYPE:NUMBER such as i32:5\n"},
      {"add.ptx --arg i32:99999999999",
       "--arg i32:99999999999: 99999999999 does not fit s32; write @FILE, out:TYPE:N[=FILE], "
       "iota:TYPE:N or TYPE:NUMBER such as i32:5\n"},
      {"add.ptx --arg half:1",
       "--arg half:1: 'half' is no scalar type; write @FILE, out:TYPE:N[=FILE], iota:TYPE:N or "
       "TYPE:NUMBER such as i32:5\n"},
  };
  for (const Row& row : rows) {
    const Outcome outcome = tilewright(folder, std::string("emulate ") + row.arguments);
    EXPECT_EQ(outcome.code, 2) << row.arguments;
    EXPECT_EQ(outcome.err, std::string("tilewright: error: ") + row.message);
  }
  const Outcome bad = tilewright(folder, "emulate bad.ptx");
  EXPECT_EQ(bad.code, 2);
  EXPECT_EQ(bad.err.rfind("tilewright: error: bad.ptx:4: ", 0), 0U) << bad.err;
  EXPECT_EQ(tilewright(folder, "emulate add.ptx --check races").code, 2);
}

TEST(Emulate, RunsACase) {
  const Folder folder;
  folder.write("add.ptx", kAdd);
  const auto words = [](std::initializer_list<int> values) {
    std::string bytes;
    for (int value : values)
      bytes += {static_cast<char>(value), 0, 0, 0};
    return bytes;
  };
  folder.write("in.bin", words({1, 2}));
  folder.write("zero.bin", words({0, 0}));
  folder.write("right.bin", words({6, 7}));
  folder.write("wrong.bin", words({6, 8}));
  const std::string start = "entry add\ngrid 1 1 1\nblock 2 1 1\nsmem 0\narg buf in.bin\n";
  folder.write("right.case", start + "arg buf zero.bin expect right.bin cmp exact\narg i32 5\n");
  folder.write("wrong.case", start + "arg buf zero.bin expect wrong.bin cmp exact\narg i32 5\n");
  const Outcome right = tilewright(folder, "emulate add.ptx --case right.case --seeds 2");
  EXPECT_EQ(right.code, 0) << right.err << right.out;
  const Outcome wrong = tilewright(folder, "emulate add.ptx --case wrong.case");
  EXPECT_EQ(wrong.code, 1) << wrong.err;
  EXPECT_NE(wrong.out.find("WRONG  argument 1: 1 of "), std::string::npos) << wrong.out;
}

// Two blocks increase a counter without an atomic: one increment is lost if they interleave.
constexpr const char* kLost = R"(.version 8.0
.target sm_90a
.address_size 64
.visible .entry lost(.param .u64 counter)
{
  .reg .b32 %r<3>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [counter];
  ld.relaxed.gpu.global.u32 %r1, [%rd1];
  add.u32 %r1, %r1, 1;
  st.relaxed.gpu.global.u32 [%rd1], %r1;
  ret;
}
)";

TEST(Emulate, ShortensAFailingScheduleAndReplaysIt) {
  const Folder folder;
  folder.write("lost.ptx", kLost);
  const auto word = [](char value) { return std::string{value, 0, 0, 0}; };
  folder.write("zero.bin", word(0));
  folder.write("two.bin", word(2));
  folder.write("lost.case",
               "entry lost\ngrid 2 1 1\nblock 1 1 1\nsmem 0\narg buf zero.bin expect two.bin cmp "
               "exact\n");
  const std::string run = "emulate lost.ptx --case lost.case --residency all ";
  const Outcome found = tilewright(folder, run + "--seeds 40 --json");
  EXPECT_EQ(found.code, 1) << found.err << found.out;
  const nlohmann::json json = nlohmann::json::parse(found.out);
  const std::string schedule = json["wrong_outputs"][0]["schedule"];
  EXPECT_LE(schedule.size(), 16U) << schedule;  // one or two turns
  const Outcome again = tilewright(folder, run + "--schedule " + schedule);
  EXPECT_EQ(again.code, 1) << again.err << again.out;
  EXPECT_EQ(tilewright(folder, run + "--schedule plain").code, 0);
  const Outcome text = tilewright(folder, run + "--seeds 40");
  EXPECT_NE(text.out.find("; shortest: --schedule " + schedule + ")"), std::string::npos)
      << text.out;
  EXPECT_EQ(tilewright(folder, run + "--schedule b0").code, 2);
}

TEST(Emulate, AnInterruptPrintsWhatIsKnown) {
  const Folder folder;
  folder.write("spin.ptx", R"(.version 8.0
.target sm_90a
.address_size 64
.visible .entry spin(.param .u64 out)
{
  .reg .b32 %r<4>;
  .reg .b64 %rd<2>;
  .reg .pred %p<2>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, 0;
again:
  st.global.u32 [%rd1], %r1;
  add.u32 %r1, %r1, 1;
  setp.ne.u32 %p1, %r1, 4000000000;
  @%p1 bra again;
  ret;
}
)");
  const std::string known = "interrupted, so this is what is known so far";
  Outcome outcome;
  for (const char* seconds : {"1", "8", "60"}) {  // the launch may not have begun on a busy machine
    outcome = folder.run("/usr/bin/env",          // whatever started the tests may ignore SIGINT
                         std::string("--default-signal=INT timeout -s INT ") + seconds +
                             " '" TILEWRIGHT_PROGRAM "' emulate spin.ptx --arg out:u32:1");
    if (outcome.out.find(known) != std::string::npos) break;
  }
  EXPECT_NE(outcome.out.find(known), std::string::npos) << outcome.out << outcome.err;
}

TEST(Emulate, WhatIsNoFileIsBadInput) {
  const Folder folder;
  EXPECT_EQ(tilewright(folder, "emulate .").err,
            "tilewright: error: .: cannot read: Is a directory\n");
  EXPECT_EQ(tilewright(folder, "emulate none.ptx").err,
            "tilewright: error: none.ptx: cannot open: No such file or directory\n");
}

TEST(Emulate, CountsOutOfRangeAreBadUsage) {
  const Folder folder;
  folder.write("add.ptx", kAdd);
  for (const char* option : {"--smem", "--max-memory", "--max-steps", "--max-output", "--seed"}) {
    const Outcome outcome = tilewright(folder, "emulate add.ptx " + std::string(option) + " -4");
    EXPECT_EQ(outcome.code, 2) << option;
    EXPECT_EQ(outcome.err.rfind("tilewright: error: " + std::string(option) +
                                    ": '-4' is no whole number from 0 to ",
                                0),
              0U)
        << outcome.err;
  }
}

}  // namespace
}  // namespace tilewright::test
