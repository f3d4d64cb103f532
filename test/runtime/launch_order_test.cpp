// SPDX-License-Identifier: Apache-2.0
// Streams, events, host waits and graphs order launches on an emulated device; the rest races.
#include "tilewright/buffer.h"
#include "tilewright/cache.h"
#include "tilewright/diagnostic.h"
#include "tilewright/graph.h"
#include "tilewright/kernel.h"
#include "tilewright/stream.h"

#include <gtest/gtest.h>

namespace tilewright::test {
namespace {

constexpr const char* kIncrease = R"(.version 7.0
.target sm_80
.address_size 64
.visible .entry increase(.param .u64 data)
{
  .reg .u32 %r<3>; .reg .u64 %rd<4>;
  ld.param.u64 %rd1, [data];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd3, %rd1, %rd2;
  ld.global.u32 %r2, [%rd3];
  add.u32 %r2, %r2, 1;
  st.global.u32 [%rd3], %r2;
  ret;
}
)";

class LaunchOrder : public testing::Test {
 protected:
  LaunchOrder() { buffer_.fill(std::byte{0}); }
  void launch(const Stream& on) {
    kernel_.launch({.grid = {1, 1, 1}, .block = {32, 1, 1}}, Parameters().add(buffer_.address()),
                   on);
  }
  std::size_t findings() const { return device_.findings().size(); }

  Device device_ = Device::open("emu:sm_80");
  Stream one_{device_}, two_{device_};
  Buffer buffer_{device_, 128};
  Kernel kernel_ = load_ptx(device_, kIncrease, "increase");
};

TEST_F(LaunchOrder, TwoStreamsRace) {
  launch(one_);
  launch(two_);
  ASSERT_GT(findings(), 0U);
  EXPECT_NE(emu::to_string(device_.findings()[0]).find("no event or wait between the streams"),
            std::string::npos)
      << emu::to_string(device_.findings()[0]);
}

TEST_F(LaunchOrder, AnEventOrdersTwoStreams) {
  launch(one_);
  Event done(device_);
  done.record(one_);
  two_.wait(done);
  launch(two_);
  EXPECT_EQ(findings(), 0U);
}

TEST_F(LaunchOrder, AnEventRecordedTooEarlyDoesNot) {
  Event early(device_);
  early.record(one_);
  launch(one_);
  two_.wait(early);
  launch(two_);
  EXPECT_GT(findings(), 0U);
}

TEST_F(LaunchOrder, TheHostOrdersWhatItWaitsFor) {
  launch(one_);
  one_.synchronize();
  launch(two_);
  EXPECT_EQ(findings(), 0U);
}

TEST_F(LaunchOrder, TheDefaultStreamWaitsForAllAndTheyForIt) {
  launch(one_);
  launch(Stream::default_of(device_));
  launch(two_);
  EXPECT_EQ(findings(), 0U);
}

TEST_F(LaunchOrder, AGraphRunsOnTheStreamThatReplaysIt) {
  const Graph graph = Graph::capture(one_, [&] { launch(one_); });
  graph.launch(two_);
  launch(two_);
  EXPECT_EQ(findings(), 0U);
  graph.launch(one_);
  EXPECT_GT(findings(), 0U);
}

}  // namespace
}  // namespace tilewright::test
