// SPDX-License-Identifier: Apache-2.0
// Several devices: peer memory, multicast addresses, and grids that run interleaved.
#include "tilewright/emulator.h"
#include "tilewright/error.h"
#include "tilewright/module.h"

#include <cstring>
#include <gtest/gtest.h>

namespace tilewright::emu {
namespace {

constexpr const char* kReduceText = R"(.version 8.6
.target sm_90a
.address_size 64
.visible .entry sum(.param .u64 mc, .param .u64 out)
{
.reg .b32 %r<8>;
.reg .b64 %rd<8>;
ld.param.u64 %rd0, [mc];
ld.param.u64 %rd1, [out];
multimem.ld_reduce.relaxed.sys.global.add.u32 %r0, [%rd0];
st.global.u32 [%rd1], %r0;
multimem.red.relaxed.sys.global.add.u32 [%rd0], 5;
multimem.st.relaxed.sys.global.u32 [%rd0+4], %r0;
ret;
}
.visible .entry floats(.param .u64 mc, .param .u64 out)
{
.reg .b32 %r<8>;
.reg .f32 %f<2>;
.reg .b64 %rd<8>;
ld.param.u64 %rd0, [mc];
ld.param.u64 %rd1, [out];
multimem.ld_reduce.relaxed.sys.global.add.f32 %f0, [%rd0];
multimem.ld_reduce.relaxed.sys.global.add.acc::f32.v4.bf16x2 {%r0, %r1, %r2, %r3}, [%rd0+16];
st.global.f32 [%rd1], %f0;
st.global.u32 [%rd1+4], %r3;
ret;
}
.visible .entry plain(.param .u64 mc, .param .u64 out)
{
.reg .b64 %rd<8>;
ld.param.u64 %rd0, [mc];
st.global.u32 [%rd0], 1;
ret;
}
.visible .entry send(.param .u64 flag, .param .u64 data)
{
.reg .b64 %rd<8>;
ld.param.u64 %rd0, [flag];
ld.param.u64 %rd1, [data];
st.global.u32 [%rd1], 42;
st.release.SCOPE.global.u32 [%rd0], 1;
ret;
}
.visible .entry receive(.param .u64 flag, .param .u64 data)
{
.reg .b32 %r<8>;
.reg .b64 %rd<8>;
.reg .pred %p<2>;
ld.param.u64 %rd0, [flag];
ld.param.u64 %rd1, [data];
W:
ld.acquire.SCOPE.global.u32 %r0, [%rd0];
setp.eq.u32 %p0, %r0, 0;
@%p0 bra W;
ld.global.u32 %r1, [%rd1];
st.global.u32 [%rd1+4], %r1;
ret;
}
)";

struct Two {
  Fabric fabric;
  Machine a{ptx::parse_target("sm_90a"), {.fabric = &fabric}};
  Machine b{ptx::parse_target("sm_90a"), {.fabric = &fabric}};
  std::uint64_t x = 0, y = 0;

  Two() {
    x = a.allocate(64);
    y = b.allocate(64);
    a.fill(x, 64, 7, 4);
    b.fill(y, 64, 9, 4);
  }
  static Launch launch(Machine& machine, const std::string& entry, std::uint64_t p, std::uint64_t q,
                       const std::string& scope = "sys") {
    std::string text = kReduceText;
    for (std::size_t at = 0; (at = text.find("SCOPE")) != std::string::npos;) {
      text.replace(at, 5, scope);
    }
    Launch l;
    l.program = machine.load(ptx::parse(text, "devices.ptx"));
    l.entry = entry;
    l.params.resize(16);
    std::memcpy(l.params.data(), &p, 8);
    std::memcpy(l.params.data() + 8, &q, 8);
    return l;
  }
};

std::uint32_t word(const Machine& machine, std::uint64_t address) {
  std::uint32_t value = 0;
  machine.read(address, std::as_writable_bytes(std::span(&value, 1)));
  return value;
}

TEST(Multimem, ReducesAndWritesEveryMember) {
  Two two;
  const std::uint64_t members[] = {two.x, two.y};
  const std::uint64_t mc = two.fabric.multicast(members, 64);
  const std::uint64_t out = two.a.allocate(4);
  const LaunchReport r = two.a.launch(Two::launch(two.a, "sum", mc, out));
  EXPECT_TRUE(r.ok()) << (r.findings.empty() ? "" : to_string(r.findings[0]));
  EXPECT_EQ(word(two.a, out), 16U);
  EXPECT_EQ(word(two.a, two.x), 12U);
  EXPECT_EQ(word(two.b, two.y), 14U);
  EXPECT_EQ(word(two.b, two.y + 4), 16U);
}

/// 1.5 and 2.5 in f32; 1 and 2 in bf16, summed in f32.
TEST(Multimem, ReducesFloats) {
  Two two;
  two.a.fill(two.x, 16, 0x3fc00000, 4);
  two.b.fill(two.y, 16, 0x40200000, 4);
  two.a.fill(two.x + 16, 16, 0x3f803f80, 4);
  two.b.fill(two.y + 16, 16, 0x40004000, 4);
  const std::uint64_t members[] = {two.x, two.y};
  const std::uint64_t mc = two.fabric.multicast(members, 64), out = two.a.allocate(8);
  const LaunchReport r = two.a.launch(Two::launch(two.a, "floats", mc, out));
  EXPECT_TRUE(r.ok()) << (r.findings.empty() ? "" : to_string(r.findings[0]));
  EXPECT_EQ(word(two.a, out), 0x40800000U);
  EXPECT_EQ(word(two.a, out + 4), 0x40404040U);
}

TEST(Multimem, RefusesOrdinaryAccess) {
  Two two;
  const std::uint64_t members[] = {two.x, two.y};
  const std::uint64_t mc = two.fabric.multicast(members, 64);
  const LaunchReport r = two.a.launch(Two::launch(two.a, "plain", mc, 0));
  ASSERT_EQ(r.findings.size(), 1U);
  EXPECT_EQ(r.findings[0].kind, Kind::out_of_bounds);
}

LaunchReport exchange(const std::string& scope) {
  Two two;
  const std::uint64_t flag = two.a.allocate(4), data = two.b.allocate(8);
  two.a.fill(flag, 4, 0);
  two.b.fill(data, 8, 0);
  const Work work[] = {{&two.a, Two::launch(two.a, "receive", flag, data, scope)},
                       {&two.b, Two::launch(two.b, "send", flag, data, scope)}};
  std::vector<LaunchReport> reports = launch_together(work);
  EXPECT_EQ(word(two.b, data + 4), 42U);
  for (Diagnostic& d : reports[1].findings)
    reports[0].findings.push_back(d);
  return reports[0];
}

TEST(Devices, ExchangeAtSystemScope) {
  const LaunchReport r = exchange("sys");
  EXPECT_TRUE(r.findings.empty()) << to_string(r.findings[0]);
}

TEST(Devices, RaceAtDeviceScope) {
  const LaunchReport r = exchange("gpu");
  ASSERT_FALSE(r.findings.empty());
  EXPECT_EQ(r.findings[0].kind, Kind::race);
}

}  // namespace
}  // namespace tilewright::emu
