// SPDX-License-Identifier: Apache-2.0
// Warp-wide instructions and bit functions of the language, run on the test device.
#include "runtime/traced_fixture.h"
#include "tilewright/bit.h"
#include "tilewright/control.h"
#include "tilewright/thread.h"
#include "tilewright/warp.h"

#include <bit>
#include <cstdint>

namespace tilewright {
namespace {

using TracedWarp = test::TracedTest;
using Words = std::vector<std::uint32_t>;

TEST_F(TracedWarp, ReducesOverAllLanes) {
  test::DeviceVector y = vector(s32, std::vector<std::int32_t>(6, 0));
  auto kernel = [](const Tensor& out) {
    Value v = lane_idx() - 7;
    Value sum = redux_add(v);
    Value least = redux_min(v);
    Value most = redux_max(v);
    Value all = redux_and(lane_idx() | 64);
    Value any = redux_or(lane_idx());
    Value odd = redux_xor(lane_idx() * lane_idx());
    if_(elect_one(), [&] {
      out(0) = sum;
      out(1) = least;
      out(2) = most;
      out(3) = all;
      out(4) = any;
      out(5) = odd;
    });
  };
  run({.grid = {1, 1, 1}, .block = {32, 1, 1}}, kernel, y);
  std::int32_t odd = 0;
  for (std::int32_t i = 0; i < 32; ++i)
    odd ^= i * i;
  EXPECT_EQ(download<std::int32_t>(y.buffer),
            (std::vector<std::int32_t>{496 - 32 * 7, -7, 24, 64, 31, odd}));
}

TEST_F(TracedWarp, MatchesEqualLanes) {
  test::DeviceVector y = vector(u32, Words(64, 0));
  auto kernel = [](const Tensor& out) {
    Value lane = lane_idx();
    out(lane) = match_any(lane % 4);
    Value same = select(match_all(lane / 32), 1, 0) + select(match_all(lane / 16), 2, 0);
    out(lane + 32) = same.to(u32);
  };
  run({.grid = {1, 1, 1}, .block = {32, 1, 1}}, kernel, y);
  Words got = download<std::uint32_t>(y.buffer);
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(got[lane], 0x11111111U << (lane % 4)) << "lane " << lane;
    EXPECT_EQ(got[lane + 32], 1U) << "lane " << lane;
  }
}

TEST_F(TracedWarp, BitFunctionsFollowTheManual) {
  constexpr std::uint32_t kA = 0x12345678;
  constexpr std::uint32_t kB = 0xfedcba98;
  test::DeviceVector x = vector(u32, Words{kA, kB});
  test::DeviceVector y = vector(u32, Words(9, 0));
  auto kernel = [](const Tensor& in, const Tensor& out) {
    Value a = in(0).load();
    Value b = in(1).load();
    out(0) = popc(a);
    out(1) = clz(a);
    out(2) = brev(a);
    out(3) = bfe(b, 8, 12);
    out(4) = bfi(a, b, 8, 12);
    out(5) = prmt(a, b, 0x4703);
    out(6) = shf_left(a, b, 8);
    out(7) = shf_right(a, b, 8);
    out(8) = dp4a(a.to(s32), b.to(s32), 5).to(u32);
  };
  run({.grid = {1, 1, 1}, .block = {1, 1, 1}}, kernel, x, y);
  std::int32_t dot = 5;
  for (int byte = 0; byte < 4; ++byte) {
    dot += std::bit_cast<std::int8_t>(static_cast<std::uint8_t>(kA >> 8 * byte)) *
           std::bit_cast<std::int8_t>(static_cast<std::uint8_t>(kB >> 8 * byte));
  }
  EXPECT_EQ(download<std::uint32_t>(y.buffer),
            (Words{13, 3, 0x1e6a2c48, 0xcba, 0xfed67898, 0x98fe7812, 0xdcba9812, 0x98123456,
                   std::bit_cast<std::uint32_t>(dot)}));
}

}  // namespace
}  // namespace tilewright
