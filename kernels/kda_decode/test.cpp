// SPDX-License-Identifier: Apache-2.0
// kda_decode, kda_prefill and gated_delta_rule against their float64 reference.
#include "kernels/kda/steep_gates.h"
#include "kernels/kda_decode/kda_decode.h"
#include "kernels/kda_prefill/kda_prefill.h"
#include "operator_fixture.h"

#include <algorithm>

namespace tilewright {
namespace {

using test::OperatorTest;
using test::Options;
using test::Placement;

struct Sizes {
  std::int64_t n = 2, t = 1, h = 1, hv = 1, k = 128, v = 128;
};

class KdaDecode : public OperatorTest {
 protected:
  static std::vector<Array> inputs(const Sizes& s, std::uint64_t seed = 1, bool kv = false) {
    std::int64_t rows = kv ? s.k : s.v, columns = kv ? s.v : s.k;
    return {random("q", bf16, {s.n, s.t, s.h, s.k}, 1, seed),
            random("k", bf16, {s.n, s.t, s.h, s.k}, 1, seed + 1),
            random("v", bf16, {s.n, s.t, s.hv, s.v}, 1, seed + 2),
            random("a", bf16, {s.n, s.t, s.hv, s.k}, 0.5, seed + 3),
            random("b", bf16, {s.n, s.t, s.hv}, 1, seed + 4),
            random("A_log", f32, {s.hv}, 1, seed + 5),
            random("dt_bias", f32, {s.hv, s.k}, 0.1, seed + 6),
            random("state", f32, {s.n, s.hv, rows, columns}, 1, seed + 7)};
  }
  static Array slots(std::vector<double> values, Type type = s32) {
    auto n = static_cast<std::int64_t>(values.size());
    return make_array("indices", type, {n}, values);
  }
  const Operator& op = kda_decode_operator();
  const Options safe{{"lower_bound", "-5"}};
};

TEST_F(KdaDecode, RefusesSlotsThatTheStateLacks) {
  std::vector<Array> given = inputs({});
  given.push_back(slots({-1, 2}));
  EXPECT_EQ(refusal(op, given), "kda_decode: indices[1] is 2; state has 2 slots");
}

TEST_F(KdaDecode, TakesTokensAndHeads) {
  for (Sizes s : {Sizes{},
                  {.t = 4},
                  {.n = 3, .t = 2, .h = 2, .hv = 4},
                  {.n = 1, .h = 1, .hv = 3},
                  {.k = 64, .v = 64},
                  {.t = 3, .k = 64, .v = 96},
                  {.k = 128, .v = 160}})
    run(op, inputs(s), safe);
}

TEST_F(KdaDecode, GivesEachLaneMoreRowsForManyHeads) {
  run(op, inputs({.n = 64, .h = 1, .hv = 4, .k = 64, .v = 32}), safe);
}

TEST_F(KdaDecode, TakesRatesThatF32DoesNotHold) {
  std::vector<Array> given = kda::with_steep_gates(inputs({.t = 2, .h = 1, .hv = 4}));
  for (const Options& options : {Options{}, safe, Options{{"softplus_beta", "0.5"}}})
    run(op, given, options);
}

TEST_F(KdaDecode, HasAllGates) {
  std::vector<Array> given = inputs({.t = 2});
  run(op, given);
  run(op, given, {{"softplus_beta", "2"}, {"softplus_threshold", "10"}, {"neg_eigval", "true"}});
  run(op, given, {{"lower_bound", "0"}});
  remove(given, "A_log");
  run(op, given, safe);
  remove(given, "dt_bias");
  run(op, given, safe);
  // Without a gate `a` is the log decay itself.
  for (Type type : {bf16, f32}) {
    std::vector<double> decay = to_doubles(given[3]);
    for (double& each : decay)
      each = -each * each;
    given[3] = make_array("a", type, given[3].shape, decay);
    run(op, given, {{"scale", "0.3"}});
  }
}

TEST_F(KdaDecode, KeepsStatesInEitherLayout) {
  for (std::int64_t n : {1, 2}) {
    Options options = safe;
    options.emplace_back("state_layout", "kv");
    run(op, inputs({.n = n, .t = 2, .hv = 2}, 3, true), options);
  }
}

TEST_F(KdaDecode, LeavesInactiveRequestsUntouched) {
  std::vector<Array> given = inputs({.n = 4});
  for (Type type : {s32, s64}) {
    given.push_back(slots({2, -1, 0, -7}, type));
    run(op, given, safe);
    given.pop_back();
  }
}

TEST_F(KdaDecode, ReadsTheStateOnlyIfAsked) {
  std::vector<Array> given = inputs({.t = 3});
  Options options = safe;
  options.emplace_back("update_state", "false");
  run(op, given, options);
}

TEST_F(KdaDecode, TakesOneTokenOfEachRequestInTheSecondMode) {
  std::vector<Array> given = inputs({.n = 3, .hv = 2});
  std::vector<Array> batched = given;
  batched.push_back(slots({1, 2, 0}));
  Array expected = run(op, batched, safe).front();
  for (std::size_t i = 0; i < 5; ++i)
    std::swap(batched[i].shape[0], batched[i].shape[1]);
  EXPECT_EQ(run(op, batched, safe).front().bytes, expected.bytes);
}

class KdaPrefill : public KdaDecode {
 protected:
  static std::vector<Array> sequences(const Sizes& s, std::uint64_t seed = 1) {
    std::vector<Array> all = inputs(s, seed);
    all.back().name = "initial_state";
    return all;
  }
  const Operator& prefill = kda_prefill_operator();
};

TEST_F(KdaPrefill, RunsSequencesFromTheirStates) {
  run(prefill, sequences({.n = 2, .t = 37, .h = 1, .hv = 2}), safe);
  run(prefill, sequences({.n = 1, .t = 5, .k = 64, .v = 64}), {{"state_layout", "kv"}});
}

TEST_F(KdaPrefill, StartsFromZerosWithoutStates) {
  std::vector<Array> given = sequences({.n = 2, .t = 9});
  remove(given, "initial_state");
  run(prefill, given, safe);
}

TEST_F(KdaPrefill, TakesSequencesOfAllLengths) {
  std::vector<Array> given = sequences({.n = 1, .t = 40, .h = 1, .hv = 2});
  given.back() = random("initial_state", f32, {4, 2, 128, 128});
  given.push_back(make_array("cu_seqlens", s32, {5}, std::vector<double>{0, 17, 17, 18, 40}));
  run(prefill, given, safe);
  given.erase(given.end() - 2);
  run(prefill, given, safe);
}

TEST_F(KdaPrefill, ContinuesDecodingInAnyPieces) {
  std::vector<Array> given = inputs({.n = 1, .t = 6});
  Array at_once = run(op, given, safe).front();
  given.back().name = "initial_state";
  EXPECT_EQ(run(prefill, given, safe).front().bytes, at_once.bytes);
}

TEST_F(KdaPrefill, RefusesBoundsOfABatch) {
  std::vector<Array> given = sequences({.n = 2, .t = 4});
  given.push_back(make_array("cu_seqlens", s32, {2}, std::vector<double>{0, 4}));
  EXPECT_EQ(refusal(prefill, given),
            "kda_prefill: cu_seqlens is s32[2] and q bf16[2,4,1,128]; they must be [N+1] and "
            "[1,tokens,H,K]");
}

class GatedDeltaRule : public OperatorTest {
 protected:
  static std::vector<Array> inputs(std::int64_t tokens, std::int64_t h, std::int64_t hv,
                                   std::int64_t slots) {
    auto factors = [&](const char* name, int seed) {
      std::vector<double> values;
      for (std::int64_t i = 0; i < tokens * hv; ++i)
        values.push_back(static_cast<double>((i * 7 + seed) % 10 + 1) / 11);
      return make_array(name, f32, {tokens, hv}, values);
    };
    return {random("q", bf16, {tokens, h, 128}, 1, 1),
            random("k", bf16, {tokens, h, 128}, 1, 2),
            random("v", bf16, {tokens, hv, 128}, 1, 3),
            factors("alpha", 1),
            factors("beta", 4),
            random("state", f32, {slots, hv, 128, 128}, 1, 4)};
  }
  const Operator& op = gated_delta_rule_operator();
};

TEST_F(GatedDeltaRule, DecodesATokenOfEachRequest) {
  std::vector<Array> given = inputs(3, 1, 2, 4);
  run(op, given);
  given.push_back(make_array("indices", s64, {3}, std::vector<double>{3, -1, 0}));
  run(op, given, {{"scale", "1"}});
}

TEST_F(GatedDeltaRule, HoldsWhatCancelsAgainstTheOtherRows) {
  std::vector<Array> given = inputs(2, 1, 1, 2);
  auto first_row = [](Array& array, double value) {
    std::vector<double> values = to_doubles(array);
    const auto row = static_cast<std::ptrdiff_t>(values.size() / 2);
    std::fill(values.begin(), values.begin() + row, value);
    array = make_array(array.name, array.type, array.shape, values);
  };
  named(given, "k").bytes = named(given, "q").bytes;
  first_row(named(given, "v"), 0);  // what the state has for this key is taken out of it
  first_row(named(given, "beta"), 1);
  run(op, given);
}

TEST_F(GatedDeltaRule, RefusesIndicesThatNameNoSequence) {
  std::vector<Array> given = inputs(3, 1, 1, 2);
  given.push_back(make_array("indices", s32, {3}, std::vector<double>{0, 1, 2}));
  EXPECT_EQ(refusal(op, given), "gated_delta_rule: indices[2] is 2; state has 2 slots");
  named(given, "indices") = make_array("indices", s32, {3}, std::vector<double>{0, 1, -1});
  EXPECT_EQ(
      refusal(op, given, {{"mode", "prefill"}}),
      "gated_delta_rule: indices is s32[3]; with mode=prefill all tokens are of one sequence, "
      "which has one index");
}

TEST_F(GatedDeltaRule, RunsASequence) {
  std::vector<Array> given = inputs(21, 1, 2, 2);
  run(op, given, {{"mode", "prefill"}});
  given.push_back(make_array("indices", s32, {1}, std::vector<double>{1}));
  run(op, given, {{"mode", "prefill"}});
}

TEST_F(GatedDeltaRule, RunsASequenceInChunks) {
  allowed_part = 0.4;  // of a tolerance for any keys
  std::vector<Array> given = inputs(150, 1, 2, 2);
  given.push_back(make_array("indices", s32, {1}, std::vector<double>{1}));
  run(op, given, {{"mode", "prefill"}});
  run_candidates(op, inputs(70, 2, 2, 1), {{"mode", "prefill"}, {"scale", "1"}});
}

TEST_F(GatedDeltaRule, TakesFactorsAboveOneInChunksThatHoldTheirProducts) {
  auto growing = [](double factor) {
    std::vector<Array> given = inputs(40, 1, 1, 1);
    named(given, "alpha") = make_array("alpha", f32, {40, 1}, std::vector<double>(40, factor));
    return given;
  };
  run(op, growing(1.07), {{"mode", "prefill"}});
  run(op, growing(1.18), {{"mode", "prefill"}, {"chunk", "16"}});
  run(op, growing(1.5), {{"mode", "prefill"}, {"chunk", "1"}});
  EXPECT_EQ(refusal(op, growing(1.5), {{"mode", "prefill"}}),
            "gated_delta_rule: alpha: the decay factors up to element 6 multiply to more than "
            "16, which chunks of 64 tokens cannot hold; chunk=1 takes any factor");
}

TEST_F(GatedDeltaRule, LeavesAnInactiveSequenceUntouched) {
  std::vector<Array> given = inputs(80, 1, 1, 2);
  given.push_back(make_array("indices", s32, {1}, std::vector<double>{-1}));
  run(op, given, {{"mode", "prefill"}});
}

TEST_F(KdaDecode, LaunchesNothingForNoRequests) { run(op, inputs({.n = 0}), safe); }

TEST_F(KdaDecode, RefusesWhatItCannotTake) {
  std::vector<Array> given = inputs({});
  given[2] = random("v", bf16, {2, 1, 1, 48});
  given[7] = random("state", f32, {2, 1, 48, 128});
  EXPECT_EQ(refusal(op, given),
            "kda_decode: q is bf16[2,1,1,128] and v bf16[2,1,1,48]; K must be 64 or 128 and V a "
            "multiple of 32 for this kernel");
  given = inputs({});
  given[7] = random("state", f32, {1, 1, 128, 128});
  EXPECT_EQ(refusal(op, given),
            "kda_decode: state is f32[1,1,128,128]; it must have at least N = 2 slots");
  EXPECT_EQ(refusal(op, inputs({.h = 0, .hv = 1})),
            "kda_decode: q is bf16[2,1,0,128] and v bf16[2,1,1,128]; H must be at least 1");
  given = inputs({});
  remove(given, "A_log");
  EXPECT_EQ(refusal(op, given),
            "kda_decode: dt_bias without A_log or lower_bound: a is the log decay itself; leave "
            "dt_bias out");
}

/// By what they refuse: their names, and whose gate it is.
TEST(KdaFunctions, CheckAsTheirOperatorsDo) {
  const Stream stream(test::open_test_device());
  const auto text = [](auto&& call) {
    try {
      call();
      return std::string("accepted");
    } catch (const Error& error) {
      return error.message();
    }
  };
  EXPECT_EQ(text([&] { kda_decode(stream, {}); }), "kda_decode: q has type none; it must be bf16");
  EXPECT_EQ(text([&] { kda_prefill(stream, {}); }),
            "kda_prefill: q has type none; it must be bf16");
  EXPECT_EQ(text([&] { gated_delta_rule(stream, {}); }),
            "gated_delta_rule: q has type none; it must be bf16");
}

}  // namespace
}  // namespace tilewright
