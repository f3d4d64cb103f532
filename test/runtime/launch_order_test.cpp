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

TEST_F(LaunchOrder, AGraphHasTheWaitsThatWereCaptured) {
  Event done(device_);
  const Graph graph = Graph::capture(one_, [&] {
    one_.wait(done);
    launch(one_);
  });
  launch(two_);
  done.record(two_);
  graph.launch(one_);
  EXPECT_EQ(findings(), 0U);
  launch(two_);
  EXPECT_GT(findings(), 0U);
}

/// Work of each kind on the buffer, on a stream.
class CopyOrder : public LaunchOrder, public testing::WithParamInterface<int> {
 protected:
  void copy(const Stream& on) {
    switch (GetParam()) {
      case 0:
        return fill(buffer_.address(), std::byte{1}, 128, on);
      case 1:
        return copy_to_device(buffer_.address(), bytes_, on);
      case 2:
        return copy_to_host(bytes_, buffer_.address(), on);
      case 3:
        return copy_on_device(other_.address(), buffer_.address(), 128, on);
      case 4:
        return copy_on_device(buffer_.address(), other_.address(), 128, on);
      default:
        return fill(buffer_.address() + 1, std::byte{1}, 3, on);
    }
  }
  std::vector<std::byte> bytes_ = std::vector<std::byte>(128);
  Buffer other_{device_, 128};
};

TEST_P(CopyOrder, RacesWithAnEarlierLaunchOfAnotherStream) {
  launch(one_);
  copy(two_);
  EXPECT_GT(findings(), 0U);
}

TEST_P(CopyOrder, RacesWithALaterLaunchOfAnotherStream) {
  copy(one_);
  launch(two_);
  EXPECT_GT(findings(), 0U);
}

TEST_P(CopyOrder, IsOrderedByEvents) {
  Event done(device_), copied(device_);
  launch(one_);
  done.record(one_);
  two_.wait(done);
  copy(two_);
  copied.record(two_);
  one_.wait(copied);
  launch(one_);
  EXPECT_EQ(findings(), 0U);
}

TEST_P(CopyOrder, KeepsItsBytes) {
  other_.fill(std::byte{5});
  launch(one_);
  copy(one_);
  std::vector<std::uint8_t> now(128);
  buffer_.download(std::as_writable_bytes(std::span(now)));
  EXPECT_EQ(findings(), 0U);
  const std::uint8_t increased = 1;
  const std::uint8_t first[] = {1, 0, increased, increased, 5, increased};
  const std::uint8_t second[] = {1, 0, 0, 0, 5, 1};
  EXPECT_EQ(now[0], first[GetParam()]);
  EXPECT_EQ(now[1], second[GetParam()]);
}

INSTANTIATE_TEST_SUITE_P(Kinds, CopyOrder, testing::Range(0, 6));

}  // namespace
}  // namespace tilewright::test
