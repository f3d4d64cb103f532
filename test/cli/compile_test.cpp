// SPDX-License-Identifier: Apache-2.0
// `tilewright compile`: bundles and cache filled for a GPU that is not here, and what is missing.
#include "cli/process.h"
#include "tilewright/assembler.h"
#include "tilewright/bundle.h"

#include <fstream>
#include <nlohmann/json.hpp>

namespace tilewright::test {
namespace {

Outcome compile(const Folder& folder, const std::string& arguments,
                const std::string& environment = "TILEWRIGHT_CACHE_DIR=cache") {
  return folder.run(TILEWRIGHT_PROGRAM, "compile " + arguments, environment);
}

constexpr const char* kProblem = "rms_norm --shapes T=1,H=96,x=bf16";

TEST(Compile, WritesABundleThatHasWhatALaunchNeeds) {
  if (!have_assembler()) GTEST_SKIP() << why_no_assembler();
  const Folder folder;
  const Outcome outcome = compile(folder, std::string(kProblem) + " --out a.twb --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  ASSERT_EQ(json["kernels"].size(), 1U);
  EXPECT_EQ(json["assembled"], 1);
  EXPECT_EQ(json["kernels"][0]["problem"], "rms_norm T=1,H=96,x=bf16");
  EXPECT_EQ(json["kernels"][0]["target"], "sm_90a");
  const Bundle bundle = Bundle::open(folder / "a.twb");
  ASSERT_EQ(bundle.size(), 1);
  EXPECT_EQ(bundle.kernel(0).front_key, json["kernels"][0]["front_key"].get<std::string>());
  // A process without cache and assembler then finds it.
  const Outcome found =
      compile(folder, std::string(kProblem) + " --missing",
              "TILEWRIGHT_CACHE=off TILEWRIGHT_BUNDLES=a.twb TILEWRIGHT_PTXAS=none");
  EXPECT_EQ(found.code, 0) << found.err;
  EXPECT_EQ(found.out, "1 kernel present, 0 problems to compile\n");
}

TEST(Compile, FillsTheCache) {
  if (!have_assembler()) GTEST_SKIP() << why_no_assembler();
  const Folder folder;
  const Outcome before = compile(folder, std::string(kProblem) + " --missing");
  EXPECT_EQ(before.code, 1);
  EXPECT_EQ(before.out, "0 kernels present, 1 problem to compile\n");
  EXPECT_EQ(before.err.rfind("rms_norm T=1,H=96,x=bf16: kernel cache: no bundle and no entry on "
                             "disk has the kernel of 'rms_norm/1 h=96",
                             0),
            0U)
      << before.err;
  ASSERT_EQ(compile(folder, kProblem).code, 0);
  EXPECT_EQ(compile(folder, std::string(kProblem) + " --missing").code, 0);
}

TEST(Compile, KnowsTheOperatorsOfAModel) {
  if (!have_assembler()) GTEST_SKIP() << why_no_assembler();
  const Folder folder;
  std::ofstream(folder / "config.json")
      << R"({"model_type": "qwen3_moe", "hidden_size": 256, "num_attention_heads": 4,
             "num_key_value_heads": 2, "head_dim": 64, "num_experts": 8, "num_experts_per_tok": 2,
             "moe_intermediate_size": 128, "torch_dtype": "bfloat16", "hidden_act": "silu"})";
  const Outcome outcome = compile(folder, "--model config.json --tokens 1,32 --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  std::string problems;
  const auto json = nlohmann::json::parse(outcome.out);
  for (const auto& kernel : json["kernels"])
    problems += kernel["problem"].get<std::string>() + "\n";
  for (const char* op : {"embedding ", "rms_norm ", "fused_add_rms_norm ", "qk_norm_rope ",
                         "moe_topk ", "moe_dispatch ", "moe_combine ", "silu_and_mul "}) {
    EXPECT_NE(problems.find(op), std::string::npos) << op << "\n" << problems;
  }
}

TEST(Compile, RefusesWhatItCannotCompile) {
  const Folder folder;
  std::ofstream(folder / "text.json") << R"({"hidden_size": "wide"})";
  std::ofstream(folder / "array.json") << "[1]";
  std::ofstream(folder / "empty.json") << "{}";
  const struct {
    std::string arguments, message;
  } rows[] = {
      {"", "compile: nothing to compile; name operators, or --model config.json"},
      {"rms_norm --gpu H200",
       "no GPU is known as 'H200'; known are NVIDIA A100-SXM4-80GB, NVIDIA H100 80GB HBM3, NVIDIA "
       "H200; on a machine with one take its properties from cuda:N"},
      {"--model nothing.json", "model: nothing.json: cannot be read"},
      {"--model array.json", "model: array.json: is not a JSON object"},
      {"--model empty.json", "model: empty.json: has no field hidden_size"},
      {"--model text.json", "model: text.json: field hidden_size is \"wide\"; it must be a count"},
  };
  for (const auto& row : rows) {
    const Outcome outcome = compile(folder, row.arguments);
    EXPECT_EQ(outcome.code, 2) << row.arguments;
    EXPECT_EQ(outcome.err, "tilewright: error: " + row.message + "\n");
  }
}

}  // namespace
}  // namespace tilewright::test
