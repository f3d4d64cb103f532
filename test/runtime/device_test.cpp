// SPDX-License-Identifier: Apache-2.0
// Tests of memory, streams, graphs and launches, on whatever device the tests run.
#include "device_fixture.h"
#include "tilewright/cache.h"
#include "tilewright/graph.h"
#include "tilewright/kernel.h"

#include <array>
#include <numeric>

namespace tilewright::test {
namespace {

// data[i] *= factor for i < count; blocks of 64.
constexpr const char* kScalePtx = R"(.version 7.0
.target sm_80
.address_size 64
.visible .entry scale(.param .u64 data, .param .f32 factor, .param .u32 count)
{
  .reg .pred %p<2>; .reg .u32 %r<5>; .reg .u64 %rd<4>; .reg .f32 %f<4>;
  ld.param.u64 %rd1, [data];
  ld.param.f32 %f1, [factor];
  ld.param.u32 %r1, [count];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.u32 %r4, %r2, 64, %r3;
  setp.ge.u32 %p1, %r4, %r1;
  @%p1 bra DONE;
  mul.wide.u32 %rd2, %r4, 4;
  add.u64 %rd3, %rd1, %rd2;
  ld.global.f32 %f2, [%rd3];
  mul.rn.f32 %f3, %f2, %f1;
  st.global.f32 [%rd3], %f3;
DONE:
  ret;
}
)";

class DeviceTestWithKernel : public DeviceTest {
 protected:
  static constexpr int kCount = 100;

  void launch(const Stream& on, float factor, int count = kCount) {
    kernel_.launch({.grid = {2, 1, 1}, .block = {64, 1, 1}}, parameters(factor, count), on);
  }
  Parameters parameters(float factor, int count = kCount) const {
    return Parameters().add(buffer_.address()).add(factor).add(count);
  }
  std::vector<float> values() const {
    stream.synchronize();
    return download<float>(buffer_);
  }
  static std::vector<float> iota(float times) {
    std::vector<float> expected(kCount);
    for (int i = 0; i < kCount; ++i)
      expected[static_cast<std::size_t>(i)] = times * static_cast<float>(i);
    return expected;
  }

  Kernel kernel_ = load_ptx(device, kScalePtx, "scale");
  Buffer buffer_ = upload(device, std::span<const float>(iota(1)));
};

TEST_F(DeviceTest, CopiesWhatWasUploaded) {
  std::array<std::byte, 5> bytes{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4},
                                 std::byte{5}};
  Buffer buffer(device, 5);
  buffer.upload(bytes);
  EXPECT_EQ(buffer.address() % 256, 0u);
  buffer.upload(std::span<const std::byte>(bytes).first(2), 3);
  EXPECT_EQ(download<std::byte>(buffer),
            (std::vector<std::byte>{bytes[0], bytes[1], bytes[2], bytes[0], bytes[1]}));
}

TEST_F(DeviceTest, ABufferOfNothingHasNoAddress) {
  Buffer buffer(device, 0);
  EXPECT_EQ(buffer.address(), 0u);
  EXPECT_TRUE(download<int>(buffer).empty());
}

TEST_F(DeviceTest, RefusesCopiesThatDoNotFit) {
  Buffer buffer(device, 4);
  std::array<std::byte, 4> bytes{};
  try {
    buffer.upload(bytes, 1);
    FAIL() << "wrote past the end";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "upload: 4 bytes at offset 1 do not fit a buffer of 4 bytes");
  }
}

TEST_F(DeviceTest, FillsAndCopiesOnAStream) {
  Buffer from(device, 64);
  Buffer to(device, 64);
  fill(from.address(), std::byte{7}, 64, stream);
  copy_on_device(to.address(), from.address(), 64, stream);
  std::vector<std::byte> result(64);
  copy_to_host(result, to.address(), stream);
  stream.synchronize();
  EXPECT_EQ(result, std::vector<std::byte>(64, std::byte{7}));
}

TEST_F(DeviceTest, EventsMeasureTime) {
  Event start(device);
  Event end(device);
  start.record(stream);
  end.record(stream);
  EXPECT_GE(elapsed_ms(start, end), 0);
  stream.wait(end);
  stream.synchronize();
  EXPECT_TRUE(stream.done());
}

TEST_F(DeviceTestWithKernel, LaunchesWithParameters) {
  launch(stream, 2);
  EXPECT_EQ(values(), iota(2));
}

TEST_F(DeviceTestWithKernel, RepeatsAPreparedLaunchWithOtherParameters) {
  PreparedLaunch prepared =
      kernel_.prepare({.grid = {2, 1, 1}, .block = {64, 1, 1}}, parameters(2));
  prepared.launch(stream);
  prepared.parameters().set(8, 3.0F);
  prepared.launch(stream);
  EXPECT_EQ(values(), iota(6));
}

TEST_F(DeviceTestWithKernel, ReplaysAGraph) {
  Graph graph = Graph::capture(stream, [&] {
    launch(stream, 2);
    launch(stream, 2);
  });
  EXPECT_EQ(graph.nodes(), 2);
  stream.synchronize();
  EXPECT_EQ(values(), iota(1)) << "capturing ran the work";
  graph.launch(stream);
  graph.launch(stream);
  EXPECT_EQ(values(), iota(16));
}

TEST_F(DeviceTestWithKernel, AGraphKeepsItsKernelLoaded) {
  std::vector<Graph> graphs;
  {
    Kernel own = load_ptx(device, kScalePtx, "scale");
    graphs.push_back(Graph::capture(stream, [&] {
      own.launch({.grid = {2, 1, 1}, .block = {64, 1, 1}}, parameters(2), stream);
    }));
  }
  graphs[0].launch(stream);
  EXPECT_EQ(values(), iota(2));
}

TEST_F(DeviceTestWithKernel, KnowsItsParameters) {
  EXPECT_EQ(kernel_.attributes().parameter_bytes, 16);
  EXPECT_GE(kernel_.blocks_per_sm(64, 0), 1);
}

TEST_F(DeviceTestWithKernel, FindsAnAccessOutsideTheBuffer) {
  if (!emulated()) GTEST_SKIP() << "only the emulator checks accesses";
  launch(stream, 2, kCount + 1);
  std::vector<emu::Diagnostic> findings = device.take_findings();
  ASSERT_EQ(findings.size(), 2u) << "the load and the store";
  EXPECT_EQ(findings[0].kind, emu::Kind::out_of_bounds);
  EXPECT_EQ(findings[1].kind, emu::Kind::out_of_bounds);
  EXPECT_TRUE(device.findings().empty());
}

TEST_F(DeviceTestWithKernel, CountsInstructionsWhenAsked) {
  if (!emulated()) GTEST_SKIP() << "only the emulator counts";
  emu::Options options;
  options.counters = emu::Counting::on;
  device.set_options(options);
  launch(stream, 2);
  EXPECT_GT(device.last_report().counters.warp_instructions, 0u);
  EXPECT_TRUE(device.last_report().completed);
}

TEST_F(DeviceTest, TracesAKernelOnceForOneKey) {
  KernelCache cache({.directory = {}, .disk = false});
  int traces = 0;
  auto trace = [&](ptx::LineInfo) {
    ++traces;
    return KernelSource{.ptx = kScalePtx, .entry = "scale", .metadata = "m"};
  };
  Kernel first = cache.get(device, "scale v1", trace);
  Kernel second = cache.get(device, "scale v1", trace);
  EXPECT_EQ(traces, 1);
  EXPECT_EQ(&first.loaded(), &second.loaded());
  EXPECT_EQ(second.metadata(), "m");
}

TEST(OpenDevice, RefusesNamesThatAreNone) {
  for (const char* name : {"", "cuda", "cuda:", "cuda:x", "cuda:-1", "cuda:1x", "gpu:0"}) {
    try {
      Device::open(name);
      ADD_FAILURE() << "opened '" << name << "'";
    } catch (const Error& error) {
      EXPECT_EQ(error.message(), "unknown device '" + std::string(name) +
                                     "'; a device is cuda:N with the number of a GPU, or "
                                     "emu:sm_90a with a target");
    }
  }
}

TEST(OpenDevice, RefusesAnUnknownTarget) {
  try {
    Device::open("emu:sm_12");
    FAIL() << "opened it";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::user);
    EXPECT_EQ(error.message().find("unknown target 'sm_12'; known: sm_"), 0u) << error.message();
  }
}

TEST(OpenDevice, SaysWhatToDoWithoutADriver) {
  if (Device::cuda_count() > 0) GTEST_SKIP() << "there is a GPU here";
  EXPECT_NE(Device::why_no_cuda(), "");
  try {
    Device::open("cuda:0");
    FAIL() << "opened it";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
    EXPECT_EQ(error.message(), Device::why_no_cuda());
    EXPECT_NE(error.message().find("; without a GPU use emu:sm_90a"), std::string::npos);
  }
}

TEST(OpenDevice, EmulatedDevicesHaveMemoryOfTheirOwn) {
  Device a = Device::open("emu:sm_90a");
  Device b = Device::open("emu:sm_80");
  EXPECT_FALSE(a == b);
  EXPECT_EQ(b.id(), "emu:sm_80");
  EXPECT_EQ(a.properties().smem_per_block_bytes, 232'448);
  EXPECT_EQ(b.properties().smem_per_block_bytes, 166'912);
}

}  // namespace
}  // namespace tilewright::test
