// SPDX-License-Identifier: Apache-2.0
// kda_decode against its float64 reference.
#include "kernels/kda_decode/kda_decode.h"
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
  static void remove(std::vector<Array>& all, std::string_view name) {
    std::erase_if(all, [&](const Array& each) { return each.name == name; });
  }
  static Array slots(std::vector<double> values, Type type = s32) {
    auto n = static_cast<std::int64_t>(values.size());
    return make_array("indices", type, {n}, values);
  }
  const Operator& op = kda_decode_operator();
  const Options safe{{"lower_bound", "-5"}};
};

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
  given = inputs({});
  remove(given, "A_log");
  EXPECT_EQ(refusal(op, given),
            "kda_decode: dt_bias without A_log or lower_bound: a is the log decay itself; leave "
            "dt_bias out");
}

}  // namespace
}  // namespace tilewright
