// SPDX-License-Identifier: Apache-2.0
// Every way to copy that moe_dispatch can be tuned to, against the reference.
#include "kernels/moe_dispatch/moe_dispatch.h"
#include "kernels/moe_dispatch/test_problem.h"
#include "operator_fixture.h"

namespace tilewright {
namespace {

using Problem = DispatchProblem;

class MoeDispatchCopy : public test::OperatorTest {
 protected:
  void run_all(const Problem& p, const std::vector<Array>& scales, test::Options options) {
    std::vector<Array> inputs{random("x", p.type, {p.tokens, p.h}), dispatch_ids(p)};
    inputs.insert(inputs.end(), scales.begin(), scales.end());
    options.emplace_back("experts", std::to_string(p.experts));
    options.emplace_back("variant", "prefill_dependent");
    run_candidates(moe_dispatch_operator(), inputs, options);
  }
};

// 150 tokens are more than one for each of the 64 blocks of rows that 4 multiprocessors hold.
TEST_F(MoeDispatchCopy, GivesTheSameRowsThroughRegistersAndSharedMemory) {
  run_all({.tokens = 150, .k = 4, .experts = 16, .h = 64}, {}, {});
}

TEST_F(MoeDispatchCopy, WritesARowForMoreChoicesThanLanes) {
  run_all({.tokens = 3, .k = 40, .experts = 64, .h = 16, .type = f32}, {}, {});
}

TEST_F(MoeDispatchCopy, CopiesScalesAndZeroesPaddingInEveryWay) {
  Problem p{.tokens = 70, .k = 3, .experts = 8, .h = 128, .type = e4m3};
  run_all(p, {random("scales", f32, {p.tokens, 2})}, {{"block", "16"}, {"zero_pad", "true"}});
}

}  // namespace
}  // namespace tilewright
