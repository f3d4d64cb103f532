// SPDX-License-Identifier: Apache-2.0
// `tilewright show` and `tilewright cache`.
#include "cli/process.h"
#include "tilewright/assembler.h"

#include <nlohmann/json.hpp>

namespace tilewright::test {
namespace {

TEST(Show, PrintsPtx) {
  const Folder folder;
  const Outcome outcome = with_scale(folder, "show scale --ptx");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find(".visible .entry scale("), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find(".target sm_90a"), std::string::npos);
}

TEST(Show, PrintsResourcesWhereThereIsAnAssembler) {
  if (!have_assembler()) GTEST_SKIP() << why_no_assembler();
  const Folder folder;
  const Outcome outcome = with_scale(folder, "show scale --json");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["kernels"][0]["entry"], "scale");
  EXPECT_GT(json["kernels"][0]["resources"]["entries"][0]["registers"], 0);
}

TEST(Show, WithoutAnAssemblerSaysHowToGetOne) {
  const Folder folder;
  const Outcome outcome = folder.run(TILEWRIGHT_TEST_PROGRAM, "show scale --resources",
                                     "PATH=/nonexistent TILEWRIGHT_CACHE_DIR=cache");
  if (outcome.code == 0) GTEST_SKIP() << "an assembler is found without PATH";
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("ptxas"), std::string::npos) << outcome.err;
}

TEST(Show, MapsSourceLines) {
  const Folder folder;
  const Outcome outcome = with_scale(folder, "show scale --source-map");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("(unknown)"), std::string::npos) << outcome.out;  // no .loc in its PTX
}

TEST(Show, CountsBankConflictsOfEveryLaunch) {
  const Folder folder;
  const Outcome outcome = with_scale(folder, "show scale --ptx --bank-conflicts --json");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  ASSERT_EQ(json["launches"].size(), 1U);
  EXPECT_EQ(json["launches"][0]["entry"], "scale");
  EXPECT_EQ(json["launches"][0]["shared_stores"]["passes"], 0);  // has no shared memory
  const Outcome text = with_scale(folder, "show scale --ptx --bank-conflicts");
  EXPECT_NE(text.out.find("0 bank conflicts in 0 passes of shared stores"), std::string::npos)
      << text.out;
}

TEST(Show, UnknownTargetsAreBadInput) {
  const Folder folder;
  const Outcome outcome = with_scale(folder, "show scale --target sm_1");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err.rfind("tilewright: error: unknown target 'sm_1'; known: ", 0), 0U)
      << outcome.err;
}

TEST(Cache, ListsVerifiesAndClears) {
  const Folder folder;
  const auto empty = nlohmann::json::parse(with_scale(folder, "cache list --json").out);
  EXPECT_TRUE(empty["entries"].empty());
  EXPECT_EQ(with_scale(folder, "cache verify").code, 0);
  std::filesystem::create_directories(folder / "cache");
  const Outcome cleared = with_scale(folder, "cache clear");
  EXPECT_EQ(cleared.code, 0) << cleared.err;
  EXPECT_NE(cleared.out.find("removed 0 entries"), std::string::npos) << cleared.out;
}

}  // namespace
}  // namespace tilewright::test
