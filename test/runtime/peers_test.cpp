// SPDX-License-Identifier: Apache-2.0
// Emulated devices that share an address space, and kernels on them that wait for one another.
#include "tilewright/peers.h"

#include "tilewright/buffer.h"
#include "tilewright/compile.h"
#include "tilewright/control.h"
#include "tilewright/emulator.h"
#include "tilewright/ordered.h"
#include "tilewright/tensor.h"
#include "tilewright/thread.h"
#include "tilewright/trace.h"

#include <gtest/gtest.h>

namespace tilewright {
namespace {

const std::string kTwo[] = {"emu:sm_90a", "emu:sm_90a"};

/// Raises the other device's flag and waits for its own.
Traced meet(Scope scope) {
  TensorArg word{u32, Shape{1}, Stride{1}, 16};
  TraceOptions options{.name = "meet", .block = {1, 1, 1}};
  return trace(
      options,
      [=](const Tensor& theirs, const Tensor& mine) {
        store_release(theirs(0), 1, scope);
        while_([&] { return load_acquire(mine(0), scope) == 0; }, [] {});
      },
      word, word);
}

TEST(Peers, KernelsOfEmulatedPeersWaitForOneAnother) {
  std::vector<Device> devices = open_peers(kTwo);
  std::vector<Buffer> flags;
  std::vector<Stream> streams;
  std::vector<PreparedLaunch> launches;
  for (const Device& device : devices) {
    flags.emplace_back(device, 4).fill(std::byte{0});
    streams.emplace_back(device);
  }
  for (std::size_t i : {0u, 1u}) {
    Parameters parameters;
    parameters.add(flags[1 - i].address()).add(flags[i].address());
    launches.push_back(compile(devices[i], meet(Scope::sys)).prepare({}, std::move(parameters)));
  }
  const PeerLaunch both[] = {{launches[0], streams[0]}, {launches[1], streams[1]}};
  launch_together(both);
  for (std::size_t i : {0u, 1u}) {
    EXPECT_TRUE(devices[i].last_report().ok());
    EXPECT_EQ(download<std::uint32_t>(flags[i])[0], 1u);
  }
}

TEST(Peers, AKernelReachesThePeersMemoryAlone) {
  std::vector<Device> devices = open_peers(kTwo);
  Device stranger = Device::open("emu:sm_90a");
  Buffer word(devices[1], 4), own(devices[0], 4), strange(stranger, 4096);
  EXPECT_NE(word.address(), own.address());
  TensorArg arg{u32, Shape{1}, Stride{1}, 16};
  auto kernel = [&](const Device& device) {
    return compile(device, trace(
                               {.name = "write", .block = {1, 1, 1}},
                               [](const Tensor& out) { out(0) = 7; }, arg));
  };
  Stream stream(devices[0]);
  kernel(devices[0]).launch({}, Parameters().add(word.address()), stream);
  stream.synchronize();
  EXPECT_EQ(download<std::uint32_t>(word)[0], 7u);
  EXPECT_TRUE(devices[0].findings().empty());
  kernel(stranger).launch({}, Parameters().add(word.address() + 0x100000), Stream(stranger));
  EXPECT_FALSE(stranger.findings().empty());
}

TEST(Peers, AWaitForOneDeviceOrdersNothingOnTheOther) {
  std::vector<Device> devices = open_peers(kTwo);
  Buffer word(devices[1], 4);
  TensorArg arg{u32, Shape{1}, Stride{1}, 16};
  auto write_of = [&](const Device& device) {
    return compile(device, trace(
                               {.name = "write", .block = {1, 1, 1}},
                               [](const Tensor& out) { out(0) = 7; }, arg));
  };
  Kernel kernels[] = {write_of(devices[0]), write_of(devices[1])};
  auto write = [&](int i, const Stream& stream) {
    kernels[i].launch({}, Parameters().add(word.address()), stream);
  };
  Stream first(devices[0]), second(devices[1]);
  write(0, first);
  devices[1].synchronize();
  write(1, second);
  EXPECT_FALSE(devices[1].take_findings().empty()) << "the first write may still be on its way";
  devices[0].synchronize();
  devices[1].synchronize();
  write(1, second);
  EXPECT_TRUE(devices[1].findings().empty());
}

/// Two devices whose streams write one word of the second.
class PeerOrder : public testing::Test {
 protected:
  Kernel kernel_of(std::size_t i) {
    TensorArg arg{u32, Shape{1}, Stride{1}, 16};
    Traced write = trace(
        {.name = "write", .block = {1, 1, 1}}, [](const Tensor& out) { out(0) = out(0) + 1; }, arg);
    return compile(devices_[i], std::move(write));
  }
  void write(std::size_t i, const Stream& on) {
    kernels_[i].launch({}, Parameters().add(word_.address()), on);
  }
  std::size_t findings() const {
    return devices_[0].findings().size() + devices_[1].findings().size();
  }

  std::vector<Device> devices_ = open_peers(kTwo);
  Buffer word_{devices_[1], 4};
  Kernel kernels_[2] = {kernel_of(0), kernel_of(1)};
};

TEST_F(PeerOrder, DefaultStreamsOfTwoDevicesAreNotOrdered) {
  word_.fill(std::byte{0});
  write(0, Stream::default_of(devices_[0]));
  write(1, Stream::default_of(devices_[1]));
  EXPECT_GT(findings(), 0U);
}

TEST_F(PeerOrder, AnEventOrdersTheStreamOfAnotherDevice) {
  word_.fill(std::byte{0});
  Stream first(devices_[0]), second(devices_[1]);
  Event done(devices_[0]);
  write(0, first);
  done.record(first);
  second.wait(done);
  write(1, second);
  EXPECT_EQ(findings(), 0U);
  EXPECT_EQ(download<std::uint32_t>(word_)[0], 2U);
}

TEST_F(PeerOrder, ADefaultStreamHandsOnWhatItsOtherStreamsKnow) {
  word_.fill(std::byte{0});
  Stream first(devices_[0]), second(devices_[1]);
  Event done(devices_[0]);
  write(0, first);
  done.record(first);
  second.wait(done);
  write(1, Stream::default_of(devices_[1]));
  EXPECT_EQ(findings(), 0U);
}

TEST_F(PeerOrder, AHostWaitOrdersBothDevices) {
  word_.fill(std::byte{0});
  write(0, Stream::default_of(devices_[0]));
  devices_[0].synchronize();
  write(1, Stream::default_of(devices_[1]));
  EXPECT_EQ(findings(), 0U);
}

std::string error_of(const auto& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.message();
  }
  return "no error";
}

TEST(Peers, RefusesWhatCannotRunTogether) {
  const std::string mixed[] = {"emu:sm_90a", "cuda:0"};
  EXPECT_EQ(error_of([&] { open_peers(mixed); }),
            "open_peers: 'emu:sm_90a' and 'cuda:0' are not of one kind");
  Device one = Device::open("emu:sm_90a"), other = Device::open("emu:sm_90a");
  Buffer flag(one, 4);
  auto prepared = [&](const Device& device) {
    return compile(device, meet(Scope::sys))
        .prepare({}, Parameters().add(flag.address()).add(flag.address()));
  };
  PreparedLaunch a = prepared(one), b = prepared(one), c = prepared(other);
  Stream stream(one), another(other);
  EXPECT_EQ(error_of([&] {
              const PeerLaunch same[] = {{a, stream}, {b, stream}};
              launch_together(same);
            }),
            "launch_together: two launches are for emu:sm_90a; kernels that wait for one another "
            "run on different devices");
  EXPECT_EQ(error_of([&] {
              const PeerLaunch strangers[] = {{a, stream}, {c, another}};
              launch_together(strangers);
            }),
            "launch_together: the emulated devices have different memories; open them with "
            "open_peers");
}

}  // namespace
}  // namespace tilewright
