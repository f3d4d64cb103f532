// SPDX-License-Identifier: Apache-2.0
// Operators launched over and over: on a GPU, since an emulated device repeats by seeds.
#include "tune/repeats.h"

#include "device_fixture.h"
#include "tilewright/operators.h"

#include <algorithm>

namespace {

namespace tw = tilewright;
using tw::test::open_test_device;

tw::tune::Inputs problem(std::string_view op, const std::string& text) {
  const auto all = tw::operators();
  const auto found = std::find_if(
      all.begin(), all.end(), [&](const tw::Operator* each) { return each->schema.name == op; });
  return tw::tune::make_problem_inputs(**found, text, 1);
}

TEST(RepeatedOperators, AnEmulatedDeviceRepeatsBySeeds) {
  const tw::Device device = tw::Device::open("emu:sm_90a");
  try {
    tw::tune::repeat(tw::Stream(device), problem("tile_copy", "M=4,N=4,src=f32"), {}, 3);
    FAIL() << "no error";
  } catch (const tw::Error& error) {
    EXPECT_STREQ(
        error.what(),
        "error: repeat: emu:sm_90a gives the same bits for the same seed; use a cuda device");
  }
}

/// A state that changes in place is put back before each launch.
TEST(RepeatedOperators, LaunchesOnAGpuGiveTheSameBits) {
  const tw::Device device = open_test_device();
  if (device.kind() != tw::DeviceKind::cuda) GTEST_SKIP() << "needs a GPU";
  const tw::tune::Repeats repeats = tw::tune::repeat(
      tw::Stream(device),
      problem("kda_decode",
              "N=2,T=1,H=2,K=128,HV=2,V=128,S=2,A_log=f32,dt_bias=f32,lower_bound=-5"),
      {}, 230);
  EXPECT_EQ(repeats.launches, 230);
  EXPECT_TRUE(repeats.differences.empty());
}

/// Rows in whatever order atomics decide.
TEST(RepeatedOperators, ReportsWhatIsNotAlwaysTheSame) {
  const tw::Device device = open_test_device();
  if (device.kind() != tw::DeviceKind::cuda) GTEST_SKIP() << "needs a GPU";
  const tw::tune::Repeats repeats = tw::tune::repeat(
      tw::Stream(device),
      problem("moe_dispatch", "T=2048,K=8,H=64,x=bf16,experts=16,order=unordered,variant=prefill"),
      {}, 300);
  ASSERT_FALSE(repeats.differences.empty());
  EXPECT_GT(repeats.differences.front().count, 0U);
}

}  // namespace
