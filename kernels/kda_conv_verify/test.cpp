// SPDX-License-Identifier: Apache-2.0
// kda_conv_verify against its float64 reference: both variants, shapes, indices, layouts, traps.
#include "kernels/kda/steep_gates.h"
#include "kernels/kda_conv_verify/verify_fixture.h"
#include "tilewright/case_file.h"

namespace tilewright {
namespace {

using test::Law;
using test::OperatorTest;
using test::Options;
using test::Sizes;

class KdaConvVerify : public test::KdaConvVerifyTest {};

TEST_F(KdaConvVerify, TakesAnyNumberOfTokens) {
  for (std::int64_t t : {1, 3, 4, 7, 8, 18})
    run_both(inputs({.n = 1, .t = t}, static_cast<std::uint64_t>(t)), safe);
}

TEST_F(KdaConvVerify, TakesGroupsOfValueHeads) {
  for (Sizes s : {Sizes{.n = 1, .t = 2, .h = 2, .hv = 4},
                  {.n = 1, .t = 3, .h = 1, .hv = 8},
                  {.n = 2, .t = 1, .h = 1, .hv = 3},
                  {.n = 1, .t = 9, .h = 1, .hv = 4}})
    run_both(inputs(s), safe);
}

TEST_F(KdaConvVerify, TakesOtherHeadSizes) {
  for (Sizes s : {Sizes{.k = 64, .v = 64},
                  {.k = 64, .v = 32},
                  {.k = 128, .v = 96},
                  {.n = 1, .t = 4, .hv = 2, .k = 64, .v = 160}})
    run_both(inputs(s), safe);
}

TEST_F(KdaConvVerify, HasBothGates) {
  run_both(inputs({.t = 4}, 3), {});
  run_both(inputs({.t = 4}, 4), {{"softplus_beta", "2"}, {"softplus_threshold", "10"}});
  run_both(inputs({.t = 4}, 5), {{"lower_bound", "0"}});  // a bound like any other: no decay
}

TEST_F(KdaConvVerify, StaysFiniteWhereSoftplusOverflows) {
  for (const Options& options : {Options{}, safe}) {
    std::vector<Array> outputs = run_both(inputs({.t = 4}, 6, Law::hard), options);
    for (double each : to_doubles(outputs[1]))
      ASSERT_TRUE(std::isfinite(each));
  }
}

TEST_F(KdaConvVerify, TakesRatesThatF32DoesNotHold) {
  std::vector<Array> given = kda::with_steep_gates(inputs({.n = 1, .t = 2, .h = 1, .hv = 4}));
  for (const Options& options : {Options{}, safe, Options{{"softplus_beta", "0.5"}}})
    run_both(given, options);
}

TEST_F(KdaConvVerify, RunsWithoutBiasNormAndSnapshots) {
  std::vector<Array> given = inputs({.t = 2});
  remove(given, "conv_bias");
  run_both(given, {{"use_qk_l2norm", "false"}, {"scale", "0.5"}}, {.snapshots = false});
}

TEST_F(KdaConvVerify, KeepsTheConvolutionStateIfAsked) {
  std::vector<Array> given = inputs({.t = 2});
  Options options = safe;
  options.emplace_back("conv_state_mode", "keep");
  EXPECT_EQ(run_both(given, options).back().bytes, named(given, "conv_state").bytes);
}

TEST_F(KdaConvVerify, TakesIndependentStridedIndices) {
  std::vector<Array> given = inputs({.n = 4, .t = 2, .lines = 7});
  set_indices(given, {4, 0, 6, 2}, {1, 3, 0, 5}, {5, 5, 2, 0});  // a slot may serve two rows
  run_both(given, safe, {.index_stride = 3});
  Options by_index = safe;
  by_index.emplace_back("snapshot_index_mode", "by_index");
  run_both(given, by_index, {.index_stride = 3});
}

TEST_F(KdaConvVerify, LeavesPaddingRowsUntouched) {
  std::vector<Array> given = inputs({.n = 3, .t = 2, .lines = 4});
  for (auto [conv, cache] : std::vector<std::pair<std::vector<double>, std::vector<double>>>{
           {{-1, 0, 1}, {0, 1, 2}},
           {{2, 1, 0}, {3, -1, 1}},
           {{0, 1, -1}, {0, 1, -1}},
           {{-1, -1, -1}, {-1, -1, -1}}}) {
    set_indices(given, conv, {2, 0, 1}, cache);
    run_both(given, safe);
  }
}

TEST_F(KdaConvVerify, SkipsSnapshotsOfNegativeLines) {
  std::vector<Array> given = inputs({.n = 3, .t = 2});
  set_indices(given, {0, 1, 2}, {-1, 0, -2}, {0, 1, 2});
  for (const char* mode : {"by_row", "by_index"})
    run_both(given, {{"snapshot_index_mode", mode}});
}

TEST_F(KdaConvVerify, TakesBothLayoutsOfTheConvolutionState) {
  for (std::int64_t t : {1, 2, 4}) {
    std::vector<Array> given = inputs({.t = t, .hv = 2});
    std::vector<Array> taps = run_both(given, safe, {.spare_steps = 2});
    std::vector<Array> channels =
        run_both(given, safe, {.channels_contiguous = true, .spare_steps = 2});
    for (std::size_t i = 0; i < taps.size(); ++i)
      EXPECT_EQ(taps[i].bytes, channels[i].bytes) << taps[i].name;
  }
}

TEST_F(KdaConvVerify, TakesRowsApart) { run_both(inputs({.t = 4}), safe, {.row_padding = 9}); }

TEST_F(KdaConvVerify, TakesConvolutionTensorsInBf16) {
  std::vector<Array> given = inputs({.t = 4});
  for (const char* name : {"conv_weight", "conv_bias", "conv_state"}) {
    Array& array = named(given, name);
    array = make_array(name, bf16, array.shape, to_doubles(array));
  }
  run_both(given, safe);
}

TEST_F(KdaConvVerify, FollowsTheContractsExample) {
  CaseFile contents =
      read_case_file(TILEWRIGHT_SOURCE_DIR "/test/data/kda/f01_safe_h1_t1_n1.safetensors");
  std::vector<Array> outputs = run_both(contents.inputs, contents.attrs);
  for (const Array& expected : contents.expected) {
    auto same = [&](const Array& each) { return each.name == expected.name; };
    auto out = std::find_if(outputs.begin(), outputs.end(), same);
    if (out == outputs.end()) continue;  // intermediate values
    Tolerance tolerance = op.tolerance(Arguments(op.schema), expected.name);
    EXPECT_EQ(compare(*out, expected, tolerance, NanRule::skip).wrong, 0) << expected.name;
  }
}

TEST_F(KdaConvVerify, KeepsRecordsInsteadOfSnapshots) {
  const Operator& compact = kda_verify_compact_operator();
  for (Sizes s : {Sizes{.n = 2, .t = 3, .h = 1, .hv = 2}, {.n = 1, .t = 9}, {.k = 64, .v = 96}}) {
    std::vector<Array> given = inputs(s);
    Array large = OperatorTest::run(compact, given, {{"variant", "large_batch"}})[1];
    EXPECT_EQ(OperatorTest::run(compact, given, {{"variant", "small_batch"}})[1].bytes,
              large.bytes);
  }
}

TEST_F(KdaConvVerify, LaunchesNothingForNoRows) { run_both(inputs({.n = 0, .lines = 1}), safe); }

TEST_F(KdaConvVerify, RefusesLinesThatPoolsLack) {
  for (const auto& [name, pool] :
       {std::pair{"conv_state_indices", "conv_state"}, std::pair{"cache_indices", "ssm_states"}}) {
    std::vector<Array> given = inputs({});
    Array& indices = named(given, name);
    indices = make_array(name, indices.type, indices.shape, std::array{0.0, 50.0});
    const std::int64_t lines = named(given, pool).shape[0];
    EXPECT_EQ(refusal(op, given), "kda_conv_verify: " + std::string(name) + "[1] is 50; " + pool +
                                      " has " + std::to_string(lines) + " slots");
  }
}

TEST_F(KdaConvVerify, RefusesWhatItCannotTake) {
  auto refusal_with = [&](const Array& array, const Options& options = {}) {
    std::vector<Array> given = inputs({});
    named(given, array.name) = array;
    return refusal(op, given, options);
  };
  EXPECT_EQ(refusal_with(random("ssm_states", f32, {2, 1, 128, 96})),
            "kda_conv_verify: ssm_states is f32[2,1,128,96]; K must be 64 or 128 and V a multiple "
            "of 32 for this kernel");
  EXPECT_EQ(refusal_with(random("ssm_states", f32, {2, 0, 128, 128})),
            "kda_conv_verify: mixed_qkv is bf16[4,384] and ssm_states f32[2,0,128,128]; D must be "
            "2 H K + HV V with HV a multiple of H, and both at least 1");
  EXPECT_EQ(refusal_with(random("mixed_qkv", bf16, {5, 384})),
            "kda_conv_verify: mixed_qkv is bf16[5,384] for N = 2; it must have N T rows");
  EXPECT_EQ(refusal_with(random("a", bf16, {2, 2, 1, 64})),
            "kda_conv_verify: a is bf16[2,2,1,64]; it must be [2,2,1,128]");
  EXPECT_EQ(refusal_with(random("A_log", f32, {2})),
            "kda_conv_verify: A_log is f32[2]; it must have 1 contiguous elements");
  EXPECT_EQ(refusal_with(random("a", bf16, {2, 2, 1, 128}), {{"lower_bound", "inf"}}),
            "kda_conv_verify: option 'lower_bound' is 'inf'; it must be a finite number, or one of "
            "none");
  EXPECT_EQ(refusal_with(random("a", bf16, {2, 2, 1, 128}), {{"softplus_beta", "0"}}),
            "kda_conv_verify: softplus_beta=0.000000; it must be greater than 0");
}

}  // namespace
}  // namespace tilewright
