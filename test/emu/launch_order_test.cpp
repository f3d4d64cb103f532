// SPDX-License-Identifier: Apache-2.0
// Launches on streams, and programmatic dependent launches: what is not ordered is a race.
#include "tilewright/emulator.h"
#include "tilewright/module.h"

#include <cstring>
#include <gtest/gtest.h>

namespace tilewright::emu {
namespace {

constexpr const char* kText = R"(.version 8.0
.target sm_90a
.address_size 64
.visible .entry writes(.param .u64 data) {
  .reg .b32 %r<2>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd0, [data];
  mov.u32 %r0, %tid.x;
  mul.wide.u32 %rd1, %r0, 4;
  add.s64 %rd1, %rd0, %rd1;
  st.global.u32 [%rd1], %r0;
  griddepcontrol.launch_dependents;
  ret;
}
.visible .entry reads(.param .u64 data) {
  .reg .b32 %r<3>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd0, [data];
  mov.u32 %r0, %tid.x;
  mul.wide.u32 %rd1, %r0, 4;
  add.s64 %rd1, %rd0, %rd1;
  ld.global.u32 %r1, [%rd1];
  griddepcontrol.wait;
  ret;
}
.visible .entry waits(.param .u64 data) {
  .reg .pred %p<1>;
  .reg .b32 %r<3>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd0, [data];
  mov.u32 %r0, %tid.x;
  setp.ne.u32 %p0, %r0, 0;
  @%p0 bra together;
  griddepcontrol.wait;
together:
  bar.sync 0;
  mul.wide.u32 %rd1, %r0, 4;
  add.s64 %rd1, %rd0, %rd1;
  ld.global.u32 %r1, [%rd1];
  ret;
})";

class LaunchOrderTest : public testing::Test {
 protected:
  LaunchOrderTest() : machine_(ptx::parse_target("sm_90a")) {
    program_ = machine_.load(ptx::parse(kText, "order.ptx"));
    data_ = machine_.allocate(256, "data");
    machine_.fill(data_, 256, 0);
  }
  /// Findings as text.
  std::string launch(const std::string& entry, LaunchOrder order) {
    Launch l;
    l.program = program_;
    l.entry = entry;
    l.block.x = 64;
    l.params.resize(8);
    std::memcpy(l.params.data(), &data_, 8);
    l.order = std::move(order);
    std::string text;
    for (const Diagnostic& d : machine_.launch(l).findings)
      text += to_string(d) + "\n";
    return text;
  }

 private:
  Machine machine_;
  Program program_;
  std::uint64_t data_ = 0;
};

TEST_F(LaunchOrderTest, TwoStreamsWithoutAnEventRace) {
  EXPECT_EQ(launch("writes", {1, {}, false}), "");
  const std::string text = launch("reads", {2, {}, false});
  EXPECT_NE(text.find("race"), std::string::npos) << text;
  EXPECT_NE(text.find("of an earlier launch with no event or wait between the streams"),
            std::string::npos)
      << text;
}

TEST_F(LaunchOrderTest, AnOverwriteOfWhatAnotherStreamReadsRaces) {
  EXPECT_EQ(launch("reads", {1, {}, false}), "");
  EXPECT_NE(launch("writes", {2, {}, false}).find("that were read by another party"),
            std::string::npos);
}

TEST_F(LaunchOrderTest, AnEventOrdersTwoStreams) {
  EXPECT_EQ(launch("writes", {1, {}, false}), "");
  EXPECT_EQ(launch("reads", {2, {0, 1}, false}), "");
}

TEST_F(LaunchOrderTest, AStreamOrdersItsOwnLaunches) {
  EXPECT_EQ(launch("writes", {1, {}, false}), "");
  EXPECT_EQ(launch("reads", {1, {0, 1}, false}), "");
}

TEST_F(LaunchOrderTest, AnEventBeforeTheWriteDoesNotOrderIt) {
  EXPECT_EQ(launch("reads", {1, {}, false}), "");
  EXPECT_EQ(launch("writes", {1, {0, 1}, false}), "");
  EXPECT_NE(launch("reads", {2, {0, 1}, false}).find("race"), std::string::npos);
}

TEST_F(LaunchOrderTest, ADependentLaunchThatReadsBeforeItsWaitRaces) {
  EXPECT_EQ(launch("writes", {1, {}, false}), "");
  const std::string text = launch("reads", {1, {0, 1}, true});
  EXPECT_NE(text.find("of an earlier launch with no griddepcontrol.wait before"), std::string::npos)
      << text;
}

TEST_F(LaunchOrderTest, AWaitOrdersTheThreadsBehindItsBarrierToo) {
  EXPECT_EQ(launch("writes", {1, {}, false}), "");
  EXPECT_EQ(launch("waits", {1, {0, 1}, true}), "");
}

}  // namespace
}  // namespace tilewright::emu
