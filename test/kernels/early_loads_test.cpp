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
constexpr unsigned kLoadGlobal = 0x981, kShuffle = 0xf89;

TEST(EarlyLoads, AreAllInFrontOfTheReduction) {
  if (!have_assembler()) GTEST_SKIP() << why_no_assembler();
  const ptx::Target target{90, 'a'};
  const tune::Inputs inputs = tune::make_problem_inputs(
      find_operator("qk_norm"), "T=1,HQ=32,HK=8,D=128,q=bf16,k=bf16,q_weight=bf16,k_weight=bf16",
      0);
  const std::vector<Traced> traced = inputs.op->trace(tune::unplaced_arguments(inputs, {}), target);
  const Assembled made = assemble(ptx::print(traced.front().module()), target);
  const std::vector<unsigned> opcodes = test::opcodes_in(made.bytes);
  const auto reduction = std::find(opcodes.begin(), opcodes.end(), kShuffle);
  ASSERT_NE(reduction, opcodes.end());
  // Of the head and of its weights.
  EXPECT_EQ(std::count(opcodes.begin(), reduction, kLoadGlobal), 2);
}

}  // namespace
}  // namespace tilewright
