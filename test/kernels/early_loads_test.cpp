// SPDX-License-Identifier: Apache-2.0
// Heads of few tokens wait for memory once: the assembler has every load in front of the use of
// the first.
#include "machine_code.h"
#include "tilewright/assembler.h"
#include "tilewright/module.h"
#include "tilewright/operators.h"
#include "tilewright/trace.h"
#include "tune/operator_tuner.h"

#include <algorithm>
#include <gtest/gtest.h>

namespace tilewright {
namespace {

// As cuobjdump shows them for sm_90.
constexpr unsigned kLoadGlobal = 0x981, kShuffle = 0xf89, kStoreGlobal = 0x986;

struct Row {
  const char* op;
  const char* problem;
  int loads;  ///< instructions of a thread
};

/// Loads in front of the reduction, or, where there is none, of the first store.
int loads_in_front(const Row& row) {
  const ptx::Target target{90, 'a'};
  const tune::Inputs inputs = tune::make_problem_inputs(find_operator(row.op), row.problem, 0);
  const std::vector<Traced> traced = inputs.op->trace(tune::unplaced_arguments(inputs, {}), target);
  const Assembled made = assemble(ptx::print(traced.front().module()), target);
  const std::vector<unsigned> opcodes = test::opcodes_in(made.bytes);
  auto use = std::find(opcodes.begin(), opcodes.end(), kShuffle);
  if (use == opcodes.end()) use = std::find(opcodes.begin(), opcodes.end(), kStoreGlobal);
  EXPECT_NE(use, opcodes.end());
  return static_cast<int>(std::count(opcodes.begin(), use, kLoadGlobal));
}

TEST(EarlyLoads, AreAllInFrontOfTheReduction) {
  if (!have_assembler()) GTEST_SKIP() << why_no_assembler();
  const Row rows[] = {
      {"qk_norm", "T=1,HQ=32,HK=8,D=128,q=bf16,k=bf16,q_weight=bf16,k_weight=bf16", 4},
      {"qk_norm_rope",
       "T=1,HQ=32,HK=8,D=128,P=40960,R=128,q=bf16,k=bf16,q_weight=bf16,k_weight=bf16,"
       "positions=s64,cos_sin=f32",
       9},
      {"rope", "T=1,HQ=32,HK=8,D=128,P=40960,R=128,q=bf16,k=bf16,positions=s64,cos_sin=f32", 7}};
  for (const Row& row : rows)
    EXPECT_EQ(loads_in_front(row), row.loads) << row.op << " " << row.problem;
}

}  // namespace
}  // namespace tilewright
