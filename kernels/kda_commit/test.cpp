// SPDX-License-Identifier: Apache-2.0
// kda_commit against its float64 reference, and against the states that a verify step went through.
#include "kernels/kda_commit/kda_commit.h"
#include "operator_fixture.h"

#include <cmath>

namespace tilewright {
namespace {

using test::OperatorTest;

struct Sizes {
  std::int64_t n = 3, t = 4, hv = 2, v = 128, k = 128;
};

class KdaCommit : public OperatorTest {
 protected:
  static std::vector<Array> inputs(const Sizes& s, std::vector<double> accepted) {
    Array decay = random("decay_records", f32, {s.n, s.t, s.hv, s.k}, 1, 4);
    std::vector<double> values = to_doubles(decay);
    for (double& value : values)
      value = std::exp(-value * value);
    return {random("state", f32, {s.n, s.hv, s.v, s.k}, 1, 1),
            random("d_records", f32, {s.n, s.t, s.hv, s.v}, 1, 2),
            random("k_records", f32, {s.n, s.t, s.hv, s.k}, 0.1, 3),
            make_array("decay_records", f32, decay.shape, values),
            make_array("accepted", s32, {s.n}, accepted)};
  }
  const Operator& op = kda_commit_operator();
};

TEST_F(KdaCommit, TakesAnyPrefix) {
  run(op, inputs({}, {1, 4, 2}));
  run(op, inputs({}, {3, 0, 9}));  // 9 is all of them
  run(op, inputs({.n = 1, .t = 1, .hv = 1, .v = 32, .k = 64}, {1}));
  run(op, inputs({.n = 2, .t = 8, .hv = 1, .v = 96, .k = 128}, {8, 5}));
}

TEST_F(KdaCommit, GivesEachLaneMoreRowsForManyHeads) {
  run(op, inputs({.n = 32, .t = 2, .hv = 8, .v = 32, .k = 64}, std::vector<double>(32, 2)));
}

TEST_F(KdaCommit, FollowsIndices) {
  std::vector<Array> given = inputs({}, {2, 2, 2});
  given.push_back(make_array("indices", s64, {3}, std::vector<double>{2, -1, 0}));
  run(op, given);
}

TEST_F(KdaCommit, RefusesWhatItCannotTake) {
  std::vector<Array> given = inputs({}, {1, 1, 1});
  given[2] = random("k_records", f32, {3, 4, 2, 64});
  given[3] = random("decay_records", f32, {3, 4, 2, 64});
  given[0] = random("state", f32, {3, 2, 100, 64});
  given[1] = random("d_records", f32, {3, 4, 2, 100});
  EXPECT_EQ(refusal(op, given),
            "kda_commit: state is f32[3,2,100,64]; it must be contiguous f32 [slots,HV,V,K], K 64 "
            "or 128 and V a multiple of 32");
  given = inputs({}, {1, 1, 1});
  given[0] = random("state", f32, {2, 2, 128, 128});
  EXPECT_EQ(refusal(op, given),
            "kda_commit: state is f32[2,2,128,128]; it must have at least N = 3 slots");
}

}  // namespace
}  // namespace tilewright
