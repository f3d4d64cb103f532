// SPDX-License-Identifier: Apache-2.0
// Tests of the CUDA device on the fake driver: contexts, memory, streams, graphs and errors.
#include "runtime/fake/fake_driver.h"
#include "tilewright/buffer.h"
#include "tilewright/graph.h"
#include "tilewright/peers.h"

#include <array>
#include <cstring>

namespace tilewright::test {
namespace {

using CudaDevice = FakeDriver;

TEST_F(CudaDevice, ReadsItsPropertiesFromTheDriver) {
  Device device = Device::open("cuda:0");
  EXPECT_EQ(device.kind(), DeviceKind::cuda);
  EXPECT_EQ(device.id(), "cuda:0");
  EXPECT_EQ(device.properties().name, "Fake H200");
  EXPECT_EQ(to_string(device.target()), "sm_90a");
  EXPECT_EQ(device.properties().sm_count, 132);
  EXPECT_EQ(device.properties().smem_per_block_bytes, 232'448);
  EXPECT_EQ(device.properties().driver_version, 13000);
  EXPECT_EQ(device.memory().free_bytes, 1000);
  EXPECT_EQ(device.memory().total_bytes, 2000);
}

TEST_F(CudaDevice, ReleasesItsPrimaryContextWithTheLastHandle) {
  {
    Device device = Device::open("cuda:0");
    Device copy = device;
    EXPECT_EQ(status().primary_contexts, 1);
  }
  EXPECT_EQ(status().primary_contexts, 0);
}

TEST_F(CudaDevice, UsesAContextThatIsCurrentAlreadyWithoutPushingIt) {
  Device device = Device::open("cuda:0");
  set_current(reinterpret_cast<void*>(0x1000));  // the primary context
  Buffer buffer(device, 64);
  EXPECT_EQ(status().context_pushes, 0);
}

TEST_F(CudaDevice, PushesItsContextAndPopsItAgain) {
  Device device = Device::open("cuda:0");
  Buffer buffer(device, 64);
  EXPECT_EQ(status().context_pushes, 1);
}

TEST_F(CudaDevice, EnablesAccessOfEachPeerToEachOther) {
  const std::string names[] = {"cuda:0", "cuda:1"};
  std::vector<Device> devices = open_peers(names);
  EXPECT_EQ(devices.size(), 2u);
  EXPECT_EQ(status().peer_accesses, 2);
}

TEST_F(CudaDevice, SaysThatAPeerIsOutOfReach) {
  const std::string names[] = {"cuda:0", "cuda:1"};
  fail("cuDeviceCanAccessPeer", 1);
  EXPECT_THROW(open_peers(names), Error);
  fail("cuCtxEnablePeerAccess", 704);  // enabled before
  EXPECT_EQ(open_peers(names).size(), 2u);
}

TEST_F(CudaDevice, TakesAForeignContextAndLeavesItAlive) {
  set_current(reinterpret_cast<void*>(0x1000));
  {
    Device device = Device::from_current_context();
    EXPECT_EQ(device.id(), "cuda:1");
  }
  EXPECT_EQ(status().primary_contexts, 0);
}

TEST_F(CudaDevice, SaysThatNoContextIsCurrent) {
  Device::cuda_count();
  EXPECT_EQ(error_of([] { Device::from_current_context(); }),
            "from_current_context: no CUDA context is current on this thread; make one current or "
            "use Device::open");
}

TEST_F(CudaDevice, SaysHowManyDevicesThereAre) {
  EXPECT_EQ(error_of([] { Device::open("cuda:7"); }),
            "no device cuda:7; this machine has 2, counted from cuda:0");
}

TEST_F(CudaDevice, CopiesAndFillsBuffers) {
  Device device = Device::open("cuda:0");
  std::array<int, 3> values{1, 2, 3};
  Buffer buffer = upload(device, std::span<const int>(values));
  EXPECT_EQ(download<int>(buffer), (std::vector<int>{1, 2, 3}));
  buffer.fill(std::byte{0xff});
  EXPECT_EQ(download<int>(buffer), (std::vector<int>{-1, -1, -1}));
}

TEST_F(CudaDevice, FreesABufferOnce) {
  Device device = Device::open("cuda:0");
  {
    Buffer buffer(device, 64);
    Buffer moved = std::move(buffer);
    EXPECT_EQ(status().allocations, 1);
  }
  EXPECT_EQ(status().allocations, 0);
}

TEST_F(CudaDevice, NamesCallCodeAndSizeOfAFailedAllocation) {
  Device device = Device::open("cuda:0");
  fail("cuMemAlloc", 2);
  EXPECT_EQ(error_of([&] { Buffer(device, 64); }),
            "cuMemAlloc of 64 bytes: CUDA_ERROR_OUT_OF_MEMORY (out of memory)");
}

TEST_F(CudaDevice, SaysThatTheContextIsLostAfterAFault) {
  Device device = Device::open("cuda:0");
  fail("cuCtxSynchronize", 700);
  EXPECT_EQ(error_of([&] { device.synchronize(); }),
            "cuCtxSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was "
            "encountered); the CUDA context is lost: find the fault with the same kernel on "
            "emu:sm_90a");
}

TEST_F(CudaDevice, PrintsTheNumberOfACodeThatTheDriverDoesNotKnow) {
  Device device = Device::open("cuda:0");
  fail("cuCtxSynchronize", 4711);
  EXPECT_EQ(error_of([&] { device.synchronize(); }), "cuCtxSynchronize: CUDA error 4711");
}

TEST_F(CudaDevice, DestroysItsOwnStreamsAndNoForeignOnes) {
  Device device = Device::open("cuda:0");
  {
    Stream own(device);
    Stream moved = std::move(own);
    Stream foreign = Stream::wrap(device, moved.handle());
    EXPECT_EQ(status().streams, 1);
  }
  EXPECT_EQ(status().streams, 0);
}

TEST_F(CudaDevice, TellsUnfinishedWorkFromFailedWork) {
  Device device = Device::open("cuda:0");
  Stream stream(device);
  EXPECT_TRUE(stream.done());
  fail("cuStreamQuery", 600);
  EXPECT_FALSE(stream.done());
  fail("cuStreamQuery", 4711);
  EXPECT_EQ(error_of([&] { stream.done(); }), "cuStreamQuery: CUDA error 4711");
}

TEST_F(CudaDevice, MeasuresBetweenEvents) {
  Device device = Device::open("cuda:0");
  Stream stream(device);
  Event start(device);
  Event end(device);
  start.record(stream);
  end.record(stream);
  EXPECT_DOUBLE_EQ(elapsed_ms(start, end), 1.5);
}

TEST_F(CudaDevice, CapturesAGraphAndLaunchesIt) {
  Device device = Device::open("cuda:0");
  Stream stream(device);
  Buffer buffer(device, 16);
  {
    Graph graph = Graph::capture(stream, [&] {
      fill(buffer.address(), std::byte{1}, 16, stream);
      fill(buffer.address(), std::byte{2}, 8, stream);
    });
    EXPECT_EQ(graph.nodes(), 2);
    graph.launch(stream);
    EXPECT_EQ(status().graph_launches, 1);
    EXPECT_EQ(status().graphs, 0);
    EXPECT_EQ(status().graph_execs, 1);
  }
  EXPECT_EQ(status().graph_execs, 0);
}

TEST_F(CudaDevice, NamesTheCaptureThatAStreamIsIn) {
  Device device = Device::open("cuda:0");
  Stream stream(device);
  EXPECT_EQ(stream.capture_id(), 0u);
  Graph::capture(stream, [&] {
    EXPECT_EQ(stream.capture_id(), 77u);
    EXPECT_EQ(Stream::default_of(device).capture_id(), 0u);
  });
  EXPECT_EQ(stream.capture_id(), 0u);
}

TEST_F(CudaDevice, EndsTheCaptureWhenItsBodyThrows) {
  Device device = Device::open("cuda:0");
  Stream stream(device);
  auto body = [] { throw Error(ErrorKind::user, "stop"); };
  EXPECT_EQ(error_of([&] { Graph::capture(stream, body); }), "stop");
  EXPECT_EQ(status().graphs, 0);
  Buffer buffer(device, 4);
  fill(buffer.address(), std::byte{7}, 4, stream);
  EXPECT_EQ(download<int>(buffer), std::vector<int>{0x07070707});
}

TEST_F(CudaDevice, RefusesToCaptureADefaultStream) {
  Device device = Device::open("cuda:0");
  Stream stream = Stream::default_of(device);
  EXPECT_EQ(error_of([&] { Graph::capture(stream, [] {}); }),
            "graph capture: a default stream cannot be captured; make a Stream of its own");
}

TEST_F(CudaDevice, HasNoEmulator) {
  Device device = Device::open("cuda:0");
  EXPECT_EQ(error_of([&] { device.emulator(); }), "emulator: cuda:0 is not an emulated device");
}

}  // namespace
}  // namespace tilewright::test
