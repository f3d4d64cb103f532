// SPDX-License-Identifier: Apache-2.0
// Recorded schedules replay exactly, and shorten to the turns that matter.
#include "tilewright/replay.h"

#include "tilewright/emulator.h"
#include "tilewright/error.h"
#include "tilewright/module.h"

#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>

namespace tilewright::emu {
namespace {

// Each of two warps reads the counter, works a while, and writes it back increased: one increment
// is lost if a warp runs between the other's read and write.
constexpr const char* kLostUpdate = R"(.version 8.0
.target sm_90a
.address_size 64
.visible .entry lost(.param .u64 counter) {
  .reg .pred %p<3>;
  .reg .b32 %r<6>;
  .reg .b64 %rd<2>;
  mov.u32 %r0, %tid.x;
  and.b32 %r1, %r0, 31;
  setp.ne.u32 %p0, %r1, 0;
  @%p0 bra done;
  ld.param.u64 %rd0, [counter];
  mov.u32 %r4, 0;
before:
  add.u32 %r4, %r4, 1;
  setp.lt.u32 %p1, %r4, 40;
  @%p1 bra before;
  ld.relaxed.gpu.global.u32 %r2, [%rd0];
  add.u32 %r2, %r2, 1;
  mov.u32 %r4, 0;
after:
  add.u32 %r4, %r4, 1;
  setp.lt.u32 %p1, %r4, 40;
  @%p1 bra after;
  st.relaxed.gpu.global.u32 [%rd0], %r2;
done:
  ret;
})";

std::uint32_t increments(const Options& options) {
  Machine machine(ptx::parse_target("sm_90a"));
  Launch launch;
  launch.program = machine.load(ptx::parse(kLostUpdate, "lost.ptx"));
  launch.entry = "lost";
  launch.block.x = 64;
  const std::uint64_t counter = machine.allocate(4);
  machine.fill(counter, 4, 0);
  launch.params.resize(8);
  std::memcpy(launch.params.data(), &counter, 8);
  const LaunchReport report = machine.launch(launch, options);
  EXPECT_TRUE(report.ok());
  std::uint32_t value = 0;
  machine.read(counter, std::as_writable_bytes(std::span(&value, 1)));
  return value;
}

/// A recorded run that loses an increment.
Schedule losing_schedule() {
  Schedule recorded;
  Options options;
  options.record = &recorded;
  for (options.seed = 0; options.seed < 50; ++options.seed) {
    if (increments(options) == 1) return recorded;
  }
  ADD_FAILURE() << "no seed loses an increment";
  return recorded;
}

TEST(Replay, GivesWhatTheSeedGave) {
  const Schedule recorded = losing_schedule();
  Options options;
  options.replay = &recorded;
  EXPECT_EQ(increments(options), 1U);
  const Schedule read = parse_schedule(to_string(recorded));
  EXPECT_EQ(read, recorded);
}

TEST(Replay, WithoutTurnsRunsEachWarpUntilItWaits) {
  const Schedule plain;
  Options options;
  options.replay = &plain;
  EXPECT_EQ(increments(options), 2U);
}

TEST(Replay, RepeatsRandomDeliveryAndDivergence) {
  const std::string folder =
      std::string(TILEWRIGHT_SOURCE_DIR) + "/test/data/ptx_corpus/k06_cp_async_pipeline/";
  std::ifstream in(folder + "sm_90a.ptx");
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  Schedule recorded, again;
  Options options;
  options.seed = 3;
  options.delivery = Delivery::random;
  options.divergence = Divergence::random;
  options.record = &recorded;
  const CaseResult first = run_case(folder + "pipe2.case", text, "k06.ptx", options);
  options.seed = 0;
  options.record = &again;
  options.replay = &recorded;
  const CaseResult second = run_case(folder + "pipe2.case", text, "k06.ptx", options);
  EXPECT_TRUE(first.outputs_match && second.outputs_match);
  EXPECT_EQ(second.report.steps, first.report.steps);
  EXPECT_EQ(again, recorded);
}

TEST(Shorten, KeepsOnlyThePreemptionThatMatters) {
  const Schedule recorded = losing_schedule();
  const Schedule shortest = shorten(recorded, [](const Schedule& s) {
    Options options;
    options.replay = &s;
    return increments(options) == 1;
  });
  // One warp stops between its read and its write; the other then runs as the plain order has it.
  EXPECT_LE(shortest.turns.size(), 2U) << to_string(shortest);
  EXPECT_GE(shortest.turns.size(), 1U);
  Options options;
  options.replay = &shortest;
  EXPECT_EQ(increments(options), 1U);
}

TEST(Shorten, WhatEveryScheduleShowsNeedsNoTurn) {
  const Schedule some = parse_schedule("b0w1x3,b0w0,idle:1");
  EXPECT_EQ(to_string(shorten(some, [](const Schedule&) { return true; })), "plain");
}

TEST(Shorten, GivesBackWhatCannotBeShortened) {
  const Schedule some = parse_schedule("b0w1x3,g1b7w0:0.2,idle:1");
  const std::string text = to_string(some);
  EXPECT_EQ(to_string(shorten(some, [&](const Schedule& s) { return to_string(s) == text; })),
            text);
}

TEST(Shorten, StopsAfterItsTrials) {
  int trials = 0;
  Schedule some;
  some.turns.resize(100);
  const auto never = [&](const Schedule&) { return ++trials < 0; };
  shorten(some, never, 7);
  EXPECT_EQ(trials, 7);
}

TEST(ParseSchedule, NamesTheTurnThatItCannotRead) {
  try {
    parse_schedule("b0w1,b0x3");
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what())
                  .find("schedule: cannot read the turn 'b0x3'; write turns such as b0w1x12, "
                        "b0w1:0.1 or idle:2"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace tilewright::emu
