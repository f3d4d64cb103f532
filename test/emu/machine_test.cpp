// SPDX-License-Identifier: Apache-2.0
// The host's access to an emulated device's memory.
#include "emu/bench.h"
#include "tilewright/error.h"

#include <cstring>
#include <gtest/gtest.h>

namespace tilewright::emu {
namespace {

/// Kinds of what is found as a kernel copies one word.
std::string copying(Machine& machine, std::uint64_t from, std::uint64_t to) {
  test::Kernel kernel{"ld.global.u32 %r3, [%rd0];\nst.global.u32 [%rd1], %r3;", {}, {4, 4}};
  Launch launch;
  launch.program = machine.load(ptx::parse(test::ptx_text(kernel), "copy.ptx"));
  launch.entry = "kernel";
  launch.block = {1, 1, 1};
  launch.params.resize(16);
  std::memcpy(launch.params.data(), &from, 8);
  std::memcpy(launch.params.data() + 8, &to, 8);
  return test::Outcome{machine.launch(launch, {}), {}}.kinds();
}

struct Forgetting : testing::Test {
  static constexpr std::int64_t kBytes = 1 << 20;  // several pages
  Machine machine{ptx::parse_target("sm_90a")};
  std::uint64_t data = machine.allocate(kBytes, "data");
  std::uint64_t out = machine.allocate(4, "out");
  Forgetting() { machine.fill(data, kBytes, 7, 4); }
  std::uint32_t word(std::int64_t offset) const {
    std::uint32_t value = 0;
    machine.read(data + static_cast<std::uint64_t>(offset),
                 std::as_writable_bytes(std::span(&value, 1)));
    return value;
  }
};

TEST_F(Forgetting, KeepsTheBytesButReportsKernelsThatReadThem) {
  machine.forget(data + 4, kBytes - 8);
  EXPECT_EQ(word(4), 7U);
  EXPECT_EQ(word(kBytes / 2), 7U);
  for (const std::uint64_t offset : {4U, 1U << 19, (1U << 20) - 8})
    EXPECT_EQ(copying(machine, data + offset, out), "uninitialized_read") << offset;
}

TEST_F(Forgetting, LeavesWhatLiesBeside) {
  machine.forget(data + 4, kBytes - 8);
  EXPECT_EQ(copying(machine, data, out), "");
  EXPECT_EQ(copying(machine, data + kBytes - 4, out), "");
}

TEST_F(Forgetting, EndsWhereAKernelOrTheHostWrites) {
  machine.forget(data, 12);
  EXPECT_EQ(copying(machine, data + 12, data), "");
  EXPECT_EQ(copying(machine, data, out), "");
  machine.fill(data + 4, 4, 9, 4);
  EXPECT_EQ(copying(machine, data + 4, out), "");
  EXPECT_EQ(copying(machine, data + 8, out), "uninitialized_read");
}

TEST_F(Forgetting, LeavesFreshMemoryAsItIs) {
  const std::uint64_t fresh = machine.allocate(64, "fresh");
  machine.forget(fresh, 64);
  EXPECT_EQ(copying(machine, fresh, out), "uninitialized_read");
}

TEST_F(Forgetting, RefusesBytesOutsideOfTheAllocation) {
  EXPECT_THROW(machine.forget(data + 4, kBytes), Error);
}

}  // namespace
}  // namespace tilewright::emu
