// SPDX-License-Identifier: Apache-2.0
// Traced multicast operations on two emulated devices that share an address space.
#include "tilewright/compile.h"
#include "tilewright/emulator.h"
#include "tilewright/module.h"
#include "tilewright/multimem.h"
#include "tilewright/thread.h"

#include <gtest/gtest.h>
#include <vector>

namespace tilewright {
namespace {

class TracedMultimem : public ::testing::Test {
 protected:
  static constexpr std::int64_t kBytes = 256;

  TracedMultimem() {
    std::uint32_t start = 1;
    for (emu::Machine* machine : {&first, &second}) {
      members.push_back(machine->allocate(kBytes));
      std::vector<float> values(kBytes / 4);
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<float>(start * (i + 1));
      machine->write(members.back(), std::as_bytes(std::span(values)));
      start *= 10;
    }
    multicast = fabric.multicast(members, kBytes);
  }

  /// Runs the body, which gets the multicast tensor and one of this device alone, on the first
  /// device.
  template <class Body>
  std::vector<float> run(const Body& body) {
    TensorArg arg{f32, Shape{kBytes / 4}, Stride{1}, 16};
    Traced traced = trace({.name = "k", .block = {16, 1, 1}}, body, arg, arg);
    std::uint64_t out = first.allocate(kBytes);
    first.fill(out, kBytes, 0);
    Parameters parameters;
    parameters.add(multicast).add(out);
    emu::Launch launch;
    launch.program = first.load(traced.module());
    launch.entry = "k";
    launch.block.x = 16;
    launch.params.assign(parameters.bytes().begin(), parameters.bytes().end());
    emu::LaunchReport report = first.launch(launch);
    EXPECT_TRUE(report.ok()) << (report.findings.empty() ? "" : to_string(report.findings[0]));
    return read(first, out);
  }

  static std::vector<float> read(const emu::Machine& machine, std::uint64_t address) {
    std::vector<float> values(kBytes / 4);
    machine.read(address, std::as_writable_bytes(std::span(values)));
    return values;
  }

  emu::Fabric fabric;
  emu::Machine first{ptx::parse_target("sm_90a"), {.fabric = &fabric}};
  emu::Machine second{ptx::parse_target("sm_90a"), {.fabric = &fabric}};
  std::vector<std::uint64_t> members;
  std::uint64_t multicast = 0;
};

TEST_F(TracedMultimem, AddsOverDevicesAndWritesToAll) {
  std::vector<float> sums = run([](const Tensor& all, const Tensor& own) {
    Value i = thread_idx().x * 4;
    Fragment sum = multimem_load(Reduction::add, all(i), 4);
    store(own(i), sum);
    multimem_store(all(i), sum * 2.0f);
  });
  std::vector<float> a = read(first, members[0]);
  std::vector<float> b = read(second, members[1]);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    EXPECT_EQ(sums[i], 11.0f * static_cast<float>(i + 1));
    EXPECT_EQ(a[i], 2 * sums[i]);
    EXPECT_EQ(b[i], 2 * sums[i]);
  }
}

TEST_F(TracedMultimem, ReducesIntoEveryDevice) {
  run([](const Tensor& all, const Tensor&) {
    multimem_red(Reduction::add, all(thread_idx().x), 0.5f);
  });
  std::vector<float> a = read(first, members[0]);
  std::vector<float> b = read(second, members[1]);
  for (std::size_t i = 0; i < 16; ++i) {
    EXPECT_EQ(a[i], static_cast<float>(i + 1) + 0.5f);
    EXPECT_EQ(b[i], 10 * static_cast<float>(i + 1) + 0.5f);
  }
  EXPECT_EQ(a[16], 17.0f);
}

}  // namespace
}  // namespace tilewright
