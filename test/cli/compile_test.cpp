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

TEST(Compile, PutsSeveralTargetsIntoOneBundle) {
  if (!have_assembler()) GTEST_SKIP() << why_no_assembler();
  const Folder folder;
  const std::string gpus = " --gpu 'NVIDIA H200' --gpu 'NVIDIA A100-SXM4-80GB'";
  const Outcome outcome = compile(folder, kProblem + gpus + " --out a.twb");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Bundle bundle = Bundle::open(folder / "a.twb");
  ASSERT_EQ(bundle.size(), 2);
  std::string targets;
  for (int i : {0, 1})
    targets += ptx::to_string(bundle.kernel(i).target) + " ";
  EXPECT_EQ(targets, "sm_80 sm_90a ");
  const Outcome found =
      compile(folder, kProblem + gpus + " --missing",
              "TILEWRIGHT_CACHE=off TILEWRIGHT_BUNDLES=a.twb TILEWRIGHT_PTXAS=none");
  EXPECT_EQ(found.out, "2 kernels present, 0 problems to compile\n");
}

TEST(Compile, AddsTheKernelsOfDependentLaunches) {
  if (!have_assembler()) GTEST_SKIP() << why_no_assembler();
  const Folder folder;
  ASSERT_EQ(compile(folder, std::string(kProblem) + " --dependent --out a.twb").code, 0);
  const Bundle bundle = Bundle::open(folder / "a.twb");
  ASSERT_EQ(bundle.size(), 2);
  EXPECT_NE(bundle.kernel(0).launch.dependent, bundle.kernel(1).launch.dependent);
}

/// Blocks share a row of 8192 elements only where none writes what another reads.
TEST(Compile, AddsTheKernelsOfLaunchesInPlace) {
  if (!have_assembler()) GTEST_SKIP() << why_no_assembler();
  const Folder folder;
  ASSERT_EQ(compile(folder, "rms_norm --shapes T=1,H=8192,x=bf16 --out a.twb").code, 0);
  const Bundle bundle = Bundle::open(folder / "a.twb");
  ASSERT_EQ(bundle.size(), 2);
  EXPECT_EQ(bundle.kernel(0).launch.grid.y + bundle.kernel(1).launch.grid.y, 1 + 4);
}

TEST(Compile, FillsTheCache) {
  if (!have_assembler()) GTEST_SKIP() << why_no_assembler();
  const Folder folder;
  const Outcome before = compile(folder, std::string(kProblem) + " --missing");
  EXPECT_EQ(before.code, 1);
  EXPECT_EQ(before.out, "0 kernels present, 1 problem to compile\n");
  EXPECT_EQ(before.err.rfind("rms_norm T=1,H=96,x=bf16: kernel cache: no bundle and no entry on "
                             "disk has the kernel of 'rms_norm/",
                             0),
            0U)
      << before.err;
  ASSERT_EQ(compile(folder, kProblem).code, 0);
  EXPECT_EQ(compile(folder, std::string(kProblem) + " --missing").code, 0);
}

TEST(Compile, RefusesToCompileForNothing) {
  if (!have_assembler()) GTEST_SKIP() << why_no_assembler();
  const Folder folder;
  const std::string nothing =
      "tilewright: error: compile: there is no cache that could keep the kernels; give --out "
      "FILE\n";
  const Outcome off = compile(folder, kProblem, "TILEWRIGHT_CACHE=off");
  EXPECT_EQ(off.code, 2);
  EXPECT_EQ(off.err, nothing);
  const Outcome unwritable = compile(folder, kProblem, "TILEWRIGHT_CACHE_DIR=/proc/nowhere");
  EXPECT_EQ(unwritable.code, 2);
  EXPECT_EQ(unwritable.err,
            "tilewright: warning: kernel cache: cannot make /proc/nowhere: No such file or "
            "directory; kernels are not kept on disk\n" +
                nothing);
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

/// What a model needs, a line each. Nothing is compiled, and a cold cache has none of it.
std::string needed(const Folder& folder, const std::string& model,
                   const std::string& arguments = "--tokens 16") {
  const Outcome outcome = compile(folder, "--model " TILEWRIGHT_SOURCE_DIR "/test/cli/models/" +
                                              model + " --missing --json " + arguments);
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  std::string lines = "\n";
  const auto json = nlohmann::json::parse(outcome.out);
  for (const auto& failure : json["failures"]) {
    const std::string line =
        failure["operator"].get<std::string>() + " " + failure["problem"].get<std::string>();
    const std::string message = failure["message"].get<std::string>();
    EXPECT_NE(message.find("no bundle and no entry on disk"), std::string::npos)
        << model << ": " << line << ": " << message;
    lines += line + "\n";
  }
  return lines;
}

TEST(Compile, KnowsWhatFamiliesOfModelsNeed) {
  const Folder folder;
  const struct {
    std::string model;
    std::vector<std::string> needs;
    std::vector<std::string> operators_apart;
  } rows[] = {
      {"llama.json",
       {("rope_table theta=500000.0,rotary_dim=128,max_position=131072,scaling=llama3,factor=8.0,"
         "original_max_position=8192.0,low_freq_factor=1.0,high_freq_factor=4.0"),
        "rms_norm T=16,H=4096,x=bf16,w=bf16,eps=1e-05",
        "rope T=16,HQ=32,HK=8,D=128,P=64,R=128,q=bf16,k=bf16,positions=s64,cos_sin=f32",
        ("reshape_and_cache T=16,N=16,HK=8,D=128,DV=128,key=bf16,value=bf16,key_cache=bf16,"
         "value_cache=bf16"),
        "silu_and_mul T=16,N=28672,x=bf16"},
       {"qk_norm_rope", "moe_topk", "quantize"}},
      {"qwen3_moe.json",
       {("qk_norm_rope T=16,HQ=32,HK=4,D=128,P=64,R=128,q=bf16,k=bf16,positions=s64,cos_sin=f32,"
         "q_weight=bf16,k_weight=bf16,eps=1e-06"),
        "moe_topk T=16,E=128,k=8,logits=bf16", "moe_dispatch T=16,K=8,H=2048,experts=128,x=bf16",
        "moe_combine T=16,K=8,H=2048,M=128,y=bf16", "silu_and_mul T=128,N=1536,x=bf16"},
       {"rope", "quantize"}},
      {"qwen3_next.json",
       {"rms_norm T=16,H=2048,x=bf16,w=bf16,eps=1e-06,weight_bias=1",
        ("qk_norm_rope T=16,HQ=16,HK=2,D=256,P=64,R=64,q=bf16,k=bf16,positions=s64,cos_sin=f32,"
         "q_weight=bf16,k_weight=bf16,eps=1e-06,weight_bias=1"),
        "gated_delta_rule TOKENS=16,H=16,K=128,HV=32,V=128,S=64,N=16,indices=s32",
        "gated_delta_rule TOKENS=16,H=16,K=128,HV=32,V=128,S=64,N=1,indices=s32,mode=prefill",
        "silu_and_mul T=16,N=1024,x=bf16"},
       {"rope"}},
      {"deepseek_v3.json",
       {"rms_norm T=16,H=1536,x=bf16,w=bf16,eps=1e-06",
        "rms_norm T=16,H=512,x=bf16,w=bf16,eps=1e-06",
        ("rope T=16,HQ=128,HK=1,D=64,P=64,R=64,q=bf16,k=bf16,positions=s64,cos_sin=f32,"
         "style=interleaved"),
        "quantize T=16,H=7168,x=bf16,format=fp8_block",
        "rms_norm T=16,H=7168,x=bf16,w=bf16,eps=1e-06,quant=fp8_block",
        "rms_norm T=16,H=1536,x=bf16,w=bf16,eps=1e-06,quant=fp8_block",
        "fused_add_rms_norm T=16,H=7168,x=bf16,residual=bf16,w=bf16,eps=1e-06,quant=fp8_block",
        "silu_and_mul T=128,N=4096,x=bf16,quant=fp8_block",
        ("moe_topk "
         "T=16,E=256,k=8,logits=f32,bias=f32,scoring=sigmoid,scale=2.5,groups=8,topk_group=4"),
        "moe_dispatch T=16,K=8,H=7168,experts=256,G=56,x=e4m3,scales=f32",
        "moe_combine T=16,K=8,H=7168,M=128,y=bf16,shared=bf16", "silu_and_mul T=16,N=36864,x=bf16",
        "silu_and_mul T=128,N=4096,x=bf16", "silu_and_mul T=16,N=4096,x=bf16"},
       {"reshape_and_cache", "qk_norm_rope"}},
      {"gpt_oss.json",
       {"rope T=16,HQ=64,HK=8,D=64,P=64,R=64,q=bf16,k=bf16,positions=s64,cos_sin=f32",
        "moe_topk T=16,E=128,k=4,logits=bf16,scoring=softmax_selected",
        "swigluoai_and_mul T=64,N=5760,x=bf16,layout=interleaved,limit=7.0"},
       {"silu_and_mul", "quantize"}},
      {"kimi_linear.json",
       {"kda_decode N=16,T=1,H=32,K=128,HV=32,V=128,A_log=f32,dt_bias=f32,S=64,indices=s32",
        "kda_prefill N=1,T=16,H=32,K=128,HV=32,V=128,A_log=f32,dt_bias=f32",
        "moe_topk T=16,E=256,k=8,logits=f32,bias=f32,scoring=sigmoid,scale=2.446",
        "silu_and_mul T=16,N=18432,x=bf16", "moe_combine T=16,K=8,H=2304,M=128,y=bf16,shared=bf16"},
       {"rope", "rope_table"}},
      {"gemma3.json",
       {"rms_norm T=16,H=5376,x=bf16,w=bf16,eps=1e-06,weight_bias=1",
        "gelu_tanh_and_mul T=16,N=43008,x=bf16"},
       {"silu_and_mul", "rope"}},
  };
  for (const auto& row : rows) {
    const std::string lines = needed(folder, row.model);
    for (const std::string& line : row.needs) {
      EXPECT_NE(lines.find("\n" + line + "\n"), std::string::npos) << row.model << "\n"
                                                                   << line << lines;
    }
    for (const std::string& op : row.operators_apart) {
      EXPECT_EQ(lines.find("\n" + op + " "), std::string::npos) << row.model << "\n" << op << lines;
    }
  }
}

TEST(Compile, SharesAModelAmongRanks) {
  const Folder folder;
  const std::string lines = needed(folder, "llama.json", "--tokens 16 --tensor-parallel 8");
  for (const char* line : {"rope T=16,HQ=4,HK=1,D=128,", "silu_and_mul T=16,N=3584,x=bf16"})
    EXPECT_NE(lines.find(line), std::string::npos) << lines;
  const Outcome uneven = compile(
      folder, "--model " TILEWRIGHT_SOURCE_DIR "/test/cli/models/llama.json --tensor-parallel 3");
  EXPECT_EQ(uneven.code, 2);
  EXPECT_NE(uneven.err.find("has 14336 as intermediate_size, which 3 ranks cannot share"),
            std::string::npos)
      << uneven.err;
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
  folder.write("foreign.twb", "hello");
  const Outcome foreign = compile(folder, kProblem, "TILEWRIGHT_BUNDLES=foreign.twb");
  EXPECT_EQ(foreign.code, 2);
  EXPECT_EQ(foreign.err, "tilewright: error: bundle: foreign.twb is not a bundle\n");
}

}  // namespace
}  // namespace tilewright::test
