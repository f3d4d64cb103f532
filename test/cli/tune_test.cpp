// SPDX-License-Identifier: Apache-2.0
// `tilewright tune`: dry runs, what it refuses, and the records that it writes.
#include "cli/process.h"
#include "cli/progress_bar.h"
#include "tilewright/assembler.h"

#include <nlohmann/json.hpp>

namespace tilewright::test {
namespace {

Outcome dry_run(const Folder& folder, const std::string& arguments) {
  return with_scale(folder, "tune " + arguments + " --dry-run");
}

TEST(Tune, ADryRunListsAndAssemblesTheCandidates) {
  if (!have_assembler()) GTEST_SKIP() << why_no_assembler();
  const Folder folder;
  const Outcome outcome = dry_run(folder, "keep --shapes N=1000 --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  const auto search = nlohmann::json::parse(outcome.out)["searches"][0];
  EXPECT_EQ(search["space"], "keep");
  EXPECT_EQ(search["key"], "n=1000");
  std::string configs;
  for (const auto& candidate : search["candidates"]) {
    configs += candidate["config"].get<std::string>() + "; ";
    EXPECT_NE(candidate["note"].get<std::string>().find(" registers"), std::string::npos);
  }
  EXPECT_EQ(configs, "threads=64; threads=32; threads=128; ");
}

TEST(Tune, ADryRunReachesEverySpaceOfAnOperator) {
  if (!have_assembler()) GTEST_SKIP() << why_no_assembler();
  const Folder folder;
  const Outcome outcome =
      folder.run(TILEWRIGHT_PROGRAM, "tune layer_norm --shapes T=1,H=96,x=bf16 --dry-run",
                 "TILEWRIGHT_CACHE_DIR=cache");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out.rfind("layer_norm bits=16 h=96 access=8: ", 0), 0U) << outcome.out;
  EXPECT_NE(outcome.out.find("\nlayer_norm.blocks bits=16 h=96 access=8 operands=1 rows=1: "),
            std::string::npos)
      << outcome.out;
}

TEST(Tune, RefusesWhatItCannotTune) {
  const struct {
    std::string arguments, message;
  } rows[] = {
      {"tune keep --shapes N=8 --device emu:sm_90a",
       "tilewright: error: tune: emu:sm_90a has no clock worth reading; use a cuda device, or "
       "--dry-run, which lists the candidates and assembles them\n"},
      {"tune keep --dry-run",
       "tilewright: error: keep: has no problems of its own; give --shapes\n"},
      {"tune scale --shapes N=8 --dry-run",
       "tilewright: error: scale: looks up no configuration; there is nothing to tune\n"},
      {"tune negate --shapes N=8 --dry-run",
       "tilewright: error: negate: has no trace or no reference; a search needs both\n"},
      {"tune other --dry-run",
       "tilewright: error: no operator is named 'other'; this build has keep, negate, scale\n"},
      {"tune keep --shapes M=8 --dry-run",
       "tilewright: error: keep: 'M' is no size, tensor or option; sizes: N; tensors: x; options: "
       "defect\n"},
      {"tune keep --shapes N=8 --target sm_90a",
       "tilewright: error: --target requires --dry-run; see tilewright tune --help\n"},
      {"tune keep --shapes N=8 --budget 0 --dry-run",
       "tilewright: error: tune: --budget 0: it must be above 0 seconds\n"},
  };
  const Folder folder;
  for (const auto& row : rows) {
    const Outcome outcome = with_scale(folder, row.arguments);
    EXPECT_EQ(outcome.code, 2) << row.arguments;
    EXPECT_EQ(outcome.err, row.message) << row.arguments;
  }
}

TEST(ProgressBar, FillsAsWorkIsDone) {
  EXPECT_EQ(cli::bar_text("x", 0, 4), "[........................] 0/4 x");
  EXPECT_EQ(cli::bar_text("x", 3, 4), "[##################......] 3/4 x");
  EXPECT_EQ(cli::bar_text("x", 0, 0), "[........................] 0/0 x");
}

#ifdef TILEWRIGHT_FAKE_CUDA
// The stand-in for a driver answers 1.5 ms for every span of time and runs no kernel.
TEST(Tune, WritesARecordThatPlansFind) {
  if (!have_assembler()) GTEST_SKIP() << why_no_assembler();
  const Folder folder;
  const std::string command = "tune keep --shapes N=1000 --out Fake_GPU.tuned --commit abc";
  const Outcome outcome = on_fake_gpu(folder, command);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "keep n=1000: threads=64, 75.00 us; 3 candidates, 3 measured\n");
  const std::string text = folder.read("Fake_GPU.tuned");
  EXPECT_NE(text.find(", commit abc\nkeep n=1000 : threads=64 : 75.00 us, standard 75.00 us\n"),
            std::string::npos)
      << text;
  // The same again: the file is read, and the record replaced.
  ASSERT_EQ(on_fake_gpu(folder, command).code, 0);
  EXPECT_EQ(folder.read("Fake_GPU.tuned"), text);
}

TEST(Tune, WritesNoRecordOfWhatItDidNotCompare) {
  if (!have_assembler()) GTEST_SKIP() << why_no_assembler();
  const Folder folder;
  const Outcome outcome =
      on_fake_gpu(folder, "tune keep --shapes N=1000 --budget 1e-9 --out Fake_GPU.tuned");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out,
            "keep n=1000: threads=64, 75.00 us; 3 candidates, 1 measured, 2 unreached; no record: "
            "the budget ended before a second was measured\n");
  EXPECT_EQ(folder.read("Fake_GPU.tuned").find("\nkeep "), std::string::npos);
}

TEST(Tune, RefusesADamagedFileBeforeItSearches) {
  const Folder folder;
  folder.write("out.tuned", "nonsense\n");
  const Outcome outcome = on_fake_gpu(folder, "tune keep --shapes N=1000 --out out.tuned");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err, "tilewright: error: out.tuned:1: is not 'tilewright tuned 1'\n");
}

TEST(Tune, SaysWhenNoCandidateIsRight) {
  if (!have_assembler()) GTEST_SKIP() << why_no_assembler();
  const Folder folder;
  const Outcome outcome = on_fake_gpu(folder, "tune keep --shapes N=1000,defect=wrong");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("tilewright: error: tune: none of 3 candidates is right; the standard "
                             "one: x is "),
            std::string::npos)
      << outcome.err;
  EXPECT_NE(outcome.err.find("; 168 of 168 elements are wrong\n"), std::string::npos)
      << outcome.err;  // 1000 elements are reduced to 128 and what they leave modulo 64
}
#endif

}  // namespace
}  // namespace tilewright::test
