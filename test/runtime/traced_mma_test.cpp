// SPDX-License-Identifier: Apache-2.0
// mma.sync, ldmatrix and stmatrix of the language, run on the test device.
#include "runtime/traced_fixture.h"
#include "tilewright/mma.h"
#include "tilewright/sync.h"
#include "tilewright/thread.h"

#include <bit>
#include <cstdint>

namespace tilewright {
namespace {

using TracedMma = test::TracedTest;
using Halves = std::vector<std::uint16_t>;

/// bf16 of a small integer: the upper half of its f32.
std::uint16_t bf16_of(int number) {
  return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(static_cast<float>(number)) >> 16);
}

TEST_F(TracedMma, MultipliesATileFromSharedMemory) {
  int a[16][16];
  int b[16][8];
  Halves a_bits;
  Halves b_bits;
  for (int m = 0; m < 16; ++m) {
    for (int k = 0; k < 16; ++k)
      a_bits.push_back(bf16_of(a[m][k] = (3 * m + 5 * k) % 13 - 6));
  }
  for (int k = 0; k < 16; ++k) {
    for (int n = 0; n < 8; ++n)
      b_bits.push_back(bf16_of(b[k][n] = (7 * k + 2 * n) % 11 - 5));
  }
  test::DeviceVector gA = vector(bf16, a_bits);
  test::DeviceVector gB = vector(bf16, b_bits);
  test::DeviceVector gC = vector(f32, std::vector<float>(128, -1));
  auto kernel = [](const Tensor& x, const Tensor& y, const Tensor& z) {
    Tensor sA = shared(bf16, Layout(Shape{Int(16), Int(16)}, Stride{Int(16), Int(1)}));
    Tensor sB = shared(bf16, Layout(Shape{Int(16), Int(8)}, Stride{Int(8), Int(1)}));
    Value lane = lane_idx();
    store(sA(lane / 2, lane % 2 * 8), load(x(lane * 8), 8));
    store(sB(lane / 2, lane % 2 * 4), load(y(lane * 4), 4));
    warp_barrier();
    Fragment fA = ldmatrix(sA(lane % 16, lane / 16 * 8), 4);
    Fragment fB = ldmatrix(sB(lane % 16, 0), 2, Transposed::yes);
    Fragment fC(f32, 4);
    fC.fill(0.0f);
    mma(fC, fA, fB);
    mma(fC, fA, fB);
    Layout places = mma_layout_c();  // m + 16 n
    for (int v = 0; v < 4; ++v) {
      Value m = lane / 4 + v / 2 * 8;
      Value n = lane % 4 * 2 + v % 2;
      z(m * 8 + n) = fC[v];
      EXPECT_EQ(places(coord(0, v)).value(), v / 2 * 8 + v % 2 * 16);
    }
  };
  run({.grid = {1, 1, 1}, .block = {32, 1, 1}}, kernel, gA, gB, gC);
  std::vector<float> expected;
  for (int m = 0; m < 16; ++m) {
    for (int n = 0; n < 8; ++n) {
      int sum = 0;
      for (int k = 0; k < 16; ++k)
        sum += 2 * a[m][k] * b[k][n];
      expected.push_back(static_cast<float>(sum));  // exact: small integers
    }
  }
  EXPECT_EQ(download<float>(gC.buffer), expected);
}

TEST_F(TracedMma, StmatrixTransposesWhatLdmatrixRead) {
  Halves numbers;
  for (int i = 0; i < 256; ++i)
    numbers.push_back(static_cast<std::uint16_t>(i));
  test::DeviceVector x = vector(u16, numbers);
  test::DeviceVector y = vector(u16, Halves(256, 0));
  auto kernel = [](const Tensor& in, const Tensor& out) {
    Layout rows(Shape{Int(32), Int(8)}, Stride{Int(8), Int(1)});
    Tensor from = shared(u16, rows);
    Tensor to = shared(u16, rows);
    Value lane = lane_idx();
    store(from(lane, 0), load(in(lane * 8), 8));
    warp_barrier();
    stmatrix(to(lane, 0), ldmatrix(from(lane, 0), 4), Transposed::yes);
    warp_barrier();
    store(out(lane * 8), load(to(lane, 0), 8));
  };
  run({.grid = {1, 1, 1}, .block = {32, 1, 1}}, kernel, x, y);
  Halves expected;
  for (int matrix = 0; matrix < 4; ++matrix) {
    for (int r = 0; r < 8; ++r) {
      for (int c = 0; c < 8; ++c)
        expected.push_back(static_cast<std::uint16_t>(matrix * 64 + c * 8 + r));
    }
  }
  EXPECT_EQ(download<std::uint16_t>(y.buffer), expected);
}

}  // namespace
}  // namespace tilewright
