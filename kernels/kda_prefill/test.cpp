// SPDX-License-Identifier: Apache-2.0
// kda_prefill in chunks against its float64 reference.
#include "kernels/kda/steep_gates.h"
#include "kernels/kda_prefill/kda_prefill.h"
#include "operator_fixture.h"

#include <algorithm>
#include <cmath>

namespace tilewright {
namespace {

using test::OperatorTest;
using test::Options;

struct Sizes {
  std::int64_t n = 1, t = 70, h = 1, hv = 1, k = 128, v = 128;
};

class KdaPrefillChunks : public OperatorTest {
 protected:
  KdaPrefillChunks() { allowed_part = 0.45; }  // of a tolerance for any keys

  static std::vector<Array> inputs(const Sizes& s, std::uint64_t seed = 1, bool kv = false) {
    std::int64_t rows = kv ? s.k : s.v, columns = kv ? s.v : s.k;
    return {random("q", bf16, {s.n, s.t, s.h, s.k}, 1, seed),
            random("k", bf16, {s.n, s.t, s.h, s.k}, 1, seed + 1),
            random("v", bf16, {s.n, s.t, s.hv, s.v}, 1, seed + 2),
            random("a", bf16, {s.n, s.t, s.hv, s.k}, 0.5, seed + 3),
            random("b", bf16, {s.n, s.t, s.hv}, 1, seed + 4),
            random("A_log", f32, {s.hv}, 1, seed + 5),
            random("dt_bias", f32, {s.hv, s.k}, 0.1, seed + 6),
            random("initial_state", f32, {s.n, s.hv, rows, columns}, 1, seed + 7)};
  }
  static void change(Array& array, double (*function)(double)) {
    std::vector<double> values = to_doubles(array);
    for (double& each : values)
      each = function(each);
    array = make_array(array.name, array.type, array.shape, values);
  }
  const Operator& op = kda_prefill_operator();
  const Options safe{{"lower_bound", "-5"}};
};

TEST_F(KdaPrefillChunks, RunsSequences) {
  for (Sizes s : {Sizes{},
                  {.t = 64},
                  {.n = 2, .t = 129},
                  {.t = 200, .h = 2, .hv = 4},
                  {.t = 100, .hv = 3, .k = 64, .v = 64},
                  {.t = 80, .k = 64, .v = 96},
                  {.t = 65, .v = 160}})
    run(op, inputs(s), safe);
}

TEST_F(KdaPrefillChunks, TakesChunksOfAllLengths) {
  for (const char* chunk : {"16", "32", "64", "100"}) {
    for (Sizes s : {Sizes{}, {.t = 96, .k = 64, .v = 64}})
      run(op, inputs(s), {{"lower_bound", "-5"}, {"chunk", chunk}});
  }
}

TEST_F(KdaPrefillChunks, GivesTheInitialStateWithoutTokens) {
  for (const std::int64_t n : {1, 2}) {
    std::vector<Array> given = inputs({.n = n, .t = 0});
    const Array& before = named(given, "initial_state");
    EXPECT_EQ(run(op, given, safe).back().bytes, before.bytes);
  }
}

TEST_F(KdaPrefillChunks, TakesMoreInitialStatesThanSequences) {
  std::vector<Array> given = inputs({.n = 1, .t = 20});
  named(given, "initial_state") = random("initial_state", f32, {3, 1, 128, 128});
  run(op, given, safe);
}

TEST_F(KdaPrefillChunks, TakesNegativeThresholdsTokenByToken) {
  run(op, inputs({.t = 20}), {{"softplus_threshold", "-10"}});
}

TEST_F(KdaPrefillChunks, HasAllGates) {
  std::vector<Array> given = inputs({.t = 150});
  run(op, given);
  run(op, given, {{"softplus_beta", "2"}, {"softplus_threshold", "10"}, {"neg_eigval", "true"}});
  run(op, given, {{"lower_bound", "0"}});
  remove(given, "A_log");
  run(op, given, safe);
  remove(given, "dt_bias");
  run(op, given, safe);
  // Without a gate `a` is the log decay itself.
  for (Type type : {bf16, f32}) {
    Array& a = named(given, "a");
    change(a, [](double x) { return -x * x; });
    a = make_array("a", type, a.shape, to_doubles(a));
    run(op, given, {{"scale", "0.3"}});
  }
}

TEST_F(KdaPrefillChunks, KeepsStatesInEitherLayout) {
  Options options = safe;
  options.emplace_back("state_layout", "kv");
  run(op, inputs({.n = 2, .t = 90, .hv = 2}, 3, true), options);
}

TEST_F(KdaPrefillChunks, MakesProblemsWithStatesInEitherLayout) {
  allowed_part = 1;  // too short for chunks
  const std::string text = "N=2,T=5,H=1,K=128,HV=2,V=64,initial_state=f32,state_layout=";
  for (const char* layout : {"vk", "kv"}) {
    const Problem problem = parse_problem(op.schema, text + layout);
    run(op, make_inputs(op, problem, 1), {{"state_layout", layout}});
  }
}

TEST_F(KdaPrefillChunks, MakesProblemsOfPackedSequences) {
  const Problem problem =
      parse_problem(op.schema, "N=1,T=21,H=1,K=128,HV=2,V=64,initial_state=f32,cu_seqlens=s32");
  run(op, make_inputs(op, problem, 1), {});
}

TEST_F(KdaPrefillChunks, StartsFromZerosWithoutStates) {
  std::vector<Array> given = inputs({.n = 2, .t = 66});
  remove(given, "initial_state");
  run(op, given, safe);
}

TEST_F(KdaPrefillChunks, TakesSequencesOfAllLengths) {
  std::vector<Array> given = inputs({.n = 1, .t = 200, .h = 1, .hv = 2});
  given.back() = random("initial_state", f32, {7, 2, 128, 128});
  given.push_back(
      make_array("cu_seqlens", s32, {8}, std::vector<double>{0, 1, 1, 65, 129, 130, 194, 200}));
  run(op, given, safe);
  given.erase(given.end() - 2);
  run(op, given, safe);
}

TEST_F(KdaPrefillChunks, KeepsPrecisionWhateverTheDecay) {
  for (double (*rate)(double) :
       {+[](double x) { return -1e-4 * std::fabs(x); }, +[](double x) { return -30 * x * x; },
        +[](double x) { return x > 0 ? -200.0 : -1e-3; }, +[](double) { return 0.0; }}) {
    std::vector<Array> given = inputs({.t = 300});
    remove(given, "A_log");
    remove(given, "dt_bias");
    change(named(given, "a"), rate);
    run(op, given);
  }
}

TEST_F(KdaPrefillChunks, TakesGrowingDecaysWhileChunksHoldTheirProducts) {
  std::vector<Array> given = inputs({.t = 130});
  remove(given, "A_log");
  remove(given, "dt_bias");
  change(named(given, "a"), [](double) { return 0.04; });
  run(op, given);
  change(named(given, "a"), [](double) { return 0.08; });
  EXPECT_EQ(refusal(op, given),
            "kda_prefill: a: the decay factors up to element 4352 multiply to more than 16, "
            "which chunks of 64 tokens cannot hold; chunk=1 takes any factor");
  given.push_back(make_array("cu_seqlens", s32, {4}, std::vector<double>{0, 41, 82, 130}));
  named(given, "initial_state") = random("initial_state", f32, {3, 1, 128, 128}, 1, 8);
  run(op, given, {{"chunk", "32"}});
  given.back() = make_array("cu_seqlens", s32, {4}, std::vector<double>{0, 82, 41, 130});
  EXPECT_EQ(refusal(op, given),
            "kda_prefill: cu_seqlens[2] is 41 and cu_seqlens[1] is 82; it must not decrease");
}

/// Gates that saturate on either side, and rates from e^-4 to e^2.
TEST_F(KdaPrefillChunks, KeepsPrecisionWithSaturatedGates) {
  std::vector<Array> given = inputs({.t = 200, .h = 1, .hv = 3});
  change(named(given, "a"), [](double x) { return 200 * x; });
  Array& rates = named(given, "A_log");
  rates = make_array("A_log", f32, {3}, std::vector<double>{-4, 0, 2});
  run(op, given);
  run(op, given, safe);
  run(op, given, {{"softplus_beta", "2"}, {"softplus_threshold", "10"}, {"neg_eigval", "true"}});
}

TEST_F(KdaPrefillChunks, TakesRatesThatF32DoesNotHold) {
  std::vector<Array> given = kda::with_steep_gates(inputs({.hv = 4}));
  for (const Options& options : {Options{}, safe, Options{{"softplus_beta", "0.5"}}})
    run(op, given, options);
}

/// Decays are weak: f32 cannot hold what a strong one leaves of a state that nothing is added to.
TEST_F(KdaPrefillChunks, KeepsPrecisionWhateverTheStrength) {
  for (double b : {-200.0, 200.0}) {
    std::vector<Array> given = inputs({.t = 200});
    Array& strength = named(given, "b");
    strength = make_array("b", bf16, strength.shape,
                          std::vector<double>(static_cast<std::size_t>(200), b));
    run(op, given, {{"lower_bound", "-0.1"}});
    run(op, given, {{"lower_bound", "0"}});
  }
}

/// Keys that repeat: the corrections of neighbours nearly cancel.
TEST_F(KdaPrefillChunks, KeepsPrecisionWithEqualKeys) {
  std::vector<Array> given = inputs({.t = 200});
  Array& k = named(given, "k");
  std::vector<double> keys = to_doubles(k);
  for (std::size_t i = 128; i < keys.size(); ++i) {
    if (i / 128 % 3 != 0) keys[i] = keys[i - 128];
  }
  k = make_array("k", bf16, k.shape, keys);
  run(op, given, safe);
  run(op, given, {{"lower_bound", "-0.001"}});
}

TEST_F(KdaPrefillChunks, TakesNumbersOfAnySize) {
  for (double (*size)(double) :
       {+[](double x) { return x * 0x1p+60; }, +[](double x) { return x * 0x1p-60; },
        +[](double) { return 0.0; }}) {
    std::vector<Array> given = inputs({.t = 130});
    const Options weak{{"lower_bound", "-0.1"}};
    change(named(given, "v"), size);
    run(op, given, weak);  // beside a state of ordinary numbers
    change(named(given, "initial_state"), size);
    run(op, given, weak);
  }
}

TEST_F(KdaPrefillChunks, KeepsPrecisionOverManyTokens) {
  run(op, inputs({.t = 1500, .k = 64, .v = 64}), {{"lower_bound", "-0.02"}});
}

TEST_F(KdaPrefillChunks, TakesTensorsThatAreNotAlignedForChunks) {
  run(op, inputs({.t = 70}), safe, {.offset_elems = 1});
}

TEST_F(KdaPrefillChunks, MayKeepStatesInPlace) {
  std::vector<Array> given = inputs({.n = 2, .t = 70, .k = 64, .v = 64});
  std::vector<Array> apart = run(op, given, safe);
  Arguments arguments(op.schema);
  arguments.set_option("lower_bound", "-5");
  std::vector<Buffer> memory;
  auto place = [&](const char* name, const Array& array) {
    memory.emplace_back(device, static_cast<std::int64_t>(array.bytes.size()));
    memory.back().upload(array.bytes);
    arguments.set(name, make_view(memory.back().address(), array.type, array.shape));
  };
  for (const Array& input : given)
    place(std::string(input.name).c_str(), input);
  arguments.set("final_state", arguments.tensor("initial_state"));
  std::size_t states = memory.size() - 1;
  place("out", apart[0]);
  Buffer workspace(device, op.workspace_bytes(arguments));
  arguments.set_workspace({workspace.address(), workspace.size_bytes()});
  op.launch(device, stream, arguments);
  stream.synchronize();
  std::vector<std::byte> found(apart[1].bytes.size());
  memory[states].download(found);
  EXPECT_EQ(found, apart[1].bytes);
}

TEST_F(KdaPrefillChunks, RefusesTooSmallAWorkspace) {
  std::vector<Array> given = inputs({.t = 70, .k = 64, .v = 64});
  std::vector<View> views;
  views.reserve(given.size());
  for (const Array& input : given)
    views.push_back(make_view(0x10000 + 0x100000 * views.size(), input.type, input.shape));
  KdaDecodeTensors tensors{.q = views[0],
                           .k = views[1],
                           .v = views[2],
                           .a = views[3],
                           .b = views[4],
                           .A_log = views[5],
                           .dt_bias = views[6],
                           .out = make_view(0x9000000, bf16, given[2].shape)};
  try {
    kda_prefill(stream, tensors);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(
        error.message(),
        "kda_prefill: workspace has 0 bytes; chunks of these sequences need 83968, aligned to "
        "256");
  }
}

TEST_F(KdaPrefillChunks, HasManyForms) {
  run_candidates(op, inputs({.t = 70, .hv = 2, .k = 64}), safe);
}

}  // namespace
}  // namespace tilewright
