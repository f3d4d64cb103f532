// SPDX-License-Identifier: Apache-2.0
// lightning_attention against its float64 reference.
#include "kernels/lightning_attention/lightning_attention.h"
#include "operator_fixture.h"

namespace tilewright {
namespace {

using test::OperatorTest;

class LightningAttention : public OperatorTest {
 protected:
  /// `lead` are the modes before heads; `slots` of the state, 0: no state.
  static std::vector<Array> inputs(std::vector<std::int64_t> lead, std::int64_t h, std::int64_t hv,
                                   std::int64_t slots, std::int64_t k = 128, std::int64_t v = 128) {
    auto shape = [&](std::int64_t heads, std::int64_t width) {
      std::vector<std::int64_t> all = lead;
      all.push_back(heads);
      all.push_back(width);
      return all;
    };
    std::vector<double> rates;
    for (std::int64_t i = 0; i < h; ++i)
      rates.push_back(0.1 + 0.7 * static_cast<double>(i));
    std::vector<Array> all{
        random("q", bf16, shape(h, k), 1, 1), random("k", bf16, shape(h, k), 1, 2),
        random("v", bf16, shape(hv, v), 1, 3), make_array("decay", f32, {h}, rates)};
    if (slots > 0) all.push_back(random("state", f32, {slots, hv, v, k}, 1, 4));
    return all;
  }
  static Array integers(const char* name, Type type, std::vector<double> values) {
    return make_array(name, type, {static_cast<std::int64_t>(values.size())}, values);
  }
  static constexpr double kPartOfChunks = 0.75;  // operands of bf16 are rounded four times
  const Operator& op = lightning_attention_operator();
};

TEST_F(LightningAttention, DecodesATokenOfEachRequest) {
  run(op, inputs({3}, 2, 2, 3));
  run(op, inputs({2}, 1, 3, 2, 64, 96), {{"scale", "0.25"}});
  run(op, inputs({64}, 1, 4, 64, 64, 32));  // more rows a lane
}

TEST_F(LightningAttention, VerifiesTokensWithoutCommittingThem) {
  run(op, inputs({2, 5}, 1, 2, 2), {{"commit", "false"}});
}

TEST_F(LightningAttention, RunsSequencesOfAllLengths) {
  std::vector<Array> given = inputs({30}, 2, 2, 5);
  given.push_back(integers("cu_seqlens", s32, {0, 11, 11, 12, 30}));
  given.push_back(integers("indices", s64, {4, 1, -1, 0}));
  run(op, given);
}

TEST_F(LightningAttention, RunsLongSequencesInChunks) {
  allowed_part = kPartOfChunks;
  run(op, inputs({2, 130}, 1, 2, 2));
  run(op, inputs({1, 70}, 2, 2, 1, 64, 96), {{"scale", "0.25"}});
  run(op, inputs({1, 90}, 1, 1, 0));
  run(op, inputs({1, 90}, 1, 1, 1), {{"commit", "false"}});
  run_candidates(op, inputs({1, 66}, 1, 1, 1));
}

TEST_F(LightningAttention, RunsChunksOfQAndKOfAnySize) {
  allowed_part = kPartOfChunks;
  for (const auto& [q, k] : {std::pair{100.0, 100.0}, {1e5, 1.0}, {1.0, 1e4}, {2e-4, 2e-4}}) {
    std::vector<Array> given = inputs({1, 64}, 1, 1, 1);
    named(given, "q") = random("q", bf16, {1, 64, 1, 128}, q, 1);
    named(given, "k") = random("k", bf16, {1, 64, 1, 128}, k, 2);
    run(op, given);
  }
}

TEST_F(LightningAttention, RunsSequencesOfOneBatch) {
  allowed_part = kPartOfChunks;
  std::vector<Array> given = inputs({1, 40}, 1, 1, 2, 64, 64);
  given.push_back(integers("cu_seqlens", s32, {0, 25, 40}));
  given.push_back(integers("indices", s32, {1, 0}));
  run(op, given);
  named(given, "indices") = integers("indices", s32, {1, 2});
  EXPECT_EQ(refusal(op, given), "lightning_attention: indices[1] is 2; state has 2 slots");
}

TEST_F(LightningAttention, RunsChunksOfSequencesOfAllLengths) {
  allowed_part = kPartOfChunks;
  std::vector<Array> given = inputs({200}, 2, 4, 6);
  given.push_back(integers("cu_seqlens", s32, {0, 64, 64, 65, 130, 200}));
  given.push_back(integers("indices", s32, {5, 1, -1, 0, 2}));
  run(op, given);
}

TEST_F(LightningAttention, StartsFromZerosWithoutAState) { run(op, inputs({2, 7}, 1, 1, 0)); }

TEST_F(LightningAttention, SlotsWithoutAStateOnlySayWhoIsActive) {
  for (std::int64_t tokens : {3, 40}) {
    std::vector<Array> given = inputs({3, tokens}, 1, 1, 0);
    given.push_back(integers("indices", s32, {900, -1, 7}));
    run(op, given);
  }
}

TEST_F(LightningAttention, LaunchesNothingForNoRequests) { run(op, inputs({0}, 1, 1, 1)); }

TEST_F(LightningAttention, RefusesWhatItCannotTake) {
  std::vector<Array> given = inputs({2}, 2, 3, 2);
  EXPECT_EQ(refusal(op, given),
            "lightning_attention: q is bf16[2,1,2,128] and v bf16[2,1,3,128]; HV must be a "
            "multiple of H");
  EXPECT_EQ(refusal(op, inputs({2}, 1, 1, 1)),
            "lightning_attention: state is f32[1,1,128,128]; it must have at least N = 2 slots");
  given = inputs({30}, 1, 1, 3);
  given.push_back(integers("cu_seqlens", s32, {0, 20, 10, 30}));
  EXPECT_EQ(refusal(op, given),
            "lightning_attention: cu_seqlens[2] is 10 and cu_seqlens[1] is 20; it must not "
            "decrease");
}

}  // namespace
}  // namespace tilewright
