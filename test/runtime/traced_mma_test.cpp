// SPDX-License-Identifier: Apache-2.0
// mma.sync, ldmatrix and stmatrix of the language, run on the test device.
#include "runtime/traced_fixture.h"
#include "tilewright/control.h"
#include "tilewright/number_formats.h"
#include "tilewright/sync.h"
#include "tilewright/thread.h"
#include "tilewright/tiled_mma.h"

#include <bit>
#include <cstdint>
#include <optional>

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

/// Small integers as the type's bytes.
std::vector<std::uint8_t> encoded(Type type, const std::vector<int>& numbers) {
  std::vector<std::uint8_t> out;
  for (int number : numbers) {
    auto x = static_cast<float>(number);
    std::uint64_t word = type == f64    ? std::bit_cast<std::uint64_t>(static_cast<double>(x))
                         : type == f16  ? f32_to_f16(x)
                         : type == bf16 ? f32_to_bf16(x)
                         : type == e4m3 ? f32_to_e4m3(x)
                         : type == tf32 ? std::bit_cast<std::uint32_t>(x)
                                        : static_cast<std::uint8_t>(number);
    for (int b = 0; b < bytes(type); ++b)
      out.push_back(static_cast<std::uint8_t>(word >> (8 * b)));
  }
  return out;
}

std::vector<int> integers(int count, int salt) {
  std::vector<int> out;
  for (int i = 0; i < count; ++i)
    out.push_back((i * 7 + i / 16 * 3 + salt) % 5 - 2);
  return out;
}

/// Row-major c = a b^T of m x k and n x k: exact in every type.
std::vector<float> products(const std::vector<int>& a, const std::vector<int>& b, int m, int n,
                            int k) {
  std::vector<float> c;
  for (int i = 0; i < m * n; ++i) {
    int sum = 0;
    for (int j = 0; j < k; ++j)
      sum +=
          a[static_cast<std::size_t>(i / n * k + j)] * b[static_cast<std::size_t>(i % n * k + j)];
    c.push_back(static_cast<float>(sum));
  }
  return c;
}

TEST_F(TracedMma, DoublesOfEveryShape) {
  for (MmaShape shape : {MmaShape{8, 8, 4}, {16, 8, 4}, {16, 8, 8}, {16, 8, 16}}) {
    std::vector<int> a = integers(shape.m * shape.k, 1), b = integers(shape.n * shape.k, 2);
    test::DeviceVector gA = vector(f64, encoded(f64, a)), gB = vector(f64, encoded(f64, b));
    auto size = static_cast<std::size_t>(shape.m * shape.n);
    test::DeviceVector gC = vector(f32, std::vector<float>(size, -1));
    auto kernel = [&](const Tensor& x, const Tensor& y, const Tensor& z) {
      auto read = [&](const Tensor& from, const Layout& places, int rows, int count) {
        Fragment out(f64, count);
        for (int v = 0; v < count; ++v) {
          Int place = places(coord(lane_idx(), v));
          out[v] = from(to_value(place % Int(rows)) * shape.k + to_value(place / Int(rows))).load();
        }
        return out;
      };
      Fragment fA = read(x, mma_layout_a(f64, shape), shape.m, shape.m * shape.k / 32);
      Fragment fB = read(y, mma_layout_b(f64, shape), shape.n, shape.n * shape.k / 32);
      Fragment fC(f64, shape.m * shape.n / 32);
      fC.fill(0.0);
      mma(fC, fA, fB);
      for (int v = 0; v < fC.size(); ++v) {
        Int place = mma_layout_c(shape)(coord(lane_idx(), v));
        z(to_value(place % Int(shape.m)) * shape.n + to_value(place / Int(shape.m))) =
            fC[v].get().to(f32);
      }
    };
    run({.grid = {1, 1, 1}, .block = {32, 1, 1}}, kernel, gA, gB, gC);
    EXPECT_EQ(download<float>(gC.buffer), products(a, b, shape.m, shape.n, shape.k)) << shape.k;
  }
}

struct Tiled {
  Type type, sum;
  int m, n, k;
  bool through_shared, transposed;
};

/// c = a b^T by four warps, operands from swizzled tiles by ldmatrix, or straight from global
/// memory.
void multiply_tile(const Tiled& c, const Tensor& x, const Tensor& y, const Tensor& z) {
  Value thread = thread_idx().x;
  TiledMma mma(mma_atom(c.type), 2, 2);
  Tensor gA = x.with_layout(make_row_major(Shape{c.m, c.k}));
  Tensor gB = y.with_layout(make_row_major(Shape{c.n, c.k}));
  auto tile = [&](const Tensor& from, int rows, int columns) {
    Tensor memory = shared(c.type, make_row_major(Shape{rows * columns}), 1024);
    TensorSwizzle swizzle = widest_swizzle(c.type, c.transposed ? rows : columns);
    MatrixTile made = c.transposed ? MatrixTile(memory, columns, rows, swizzle).transposed()
                                   : MatrixTile(memory, rows, columns, swizzle);
    if (!c.transposed) {
      load_tile_async(made, from, in_bounds(from, Shape{rows, columns}, coord(0, 0)));
    } else {
      for_(thread, rows * columns, 128, [&](const Value& i) {
        made.element(i / columns, i % columns) = from(i / columns, i % columns);
      });
    }
    return made;
  };
  Fragment sums = make_fragment_c(mma, c.sum, c.m, c.n);
  sums.fill(0);
  std::optional<MatrixTile> sA, sB;
  if (c.through_shared) {
    sA.emplace(tile(gA, c.m, c.k));
    sB.emplace(tile(gB, c.n, c.k));
    cp_async_wait_all();
    barrier();
  }
  for (int k = 0; k < c.k / mma.k(); ++k) {
    if (c.through_shared) {
      multiply(mma, sums, load_fragments_a(mma, *sA, k, thread),
               load_fragments_b(mma, *sB, k, thread), MmaOrder::b_outer);
    } else {
      multiply(mma, sums, load_fragments(partition_a(mma, gA, thread)(_, _, k)),
               load_fragments(partition_b(mma, gB, thread)(_, _, k)));
    }
  }
  Tensor gC = z.with_layout(make_row_major(Shape{c.m, c.n}));
  store_fragment_c(mma, sums.to(f32), gC, in_bounds(gC, Shape{c.m, c.n}, coord(0, 0)), thread);
}

TEST_F(TracedMma, TilesOfEveryTypeByFourWarps) {
  const Tiled cases[] = {
      {bf16, f32, 64, 96, 64, true, false},  {f16, f16, 32, 32, 64, true, false},
      {f16, f32, 64, 64, 64, true, true},    {tf32, f32, 64, 32, 32, true, false},
      {s8, s32, 32, 64, 128, true, false},   {e4m3, f32, 64, 32, 128, true, false},
      {bf16, f32, 32, 64, 32, false, false}, {f64, f64, 32, 32, 32, false, false}};
  for (const Tiled& c : cases) {
    std::vector<int> a = integers(c.m * c.k, 1), b = integers(c.n * c.k, 2);
    test::DeviceVector gA = vector(c.type, encoded(c.type, a)),
                       gB = vector(c.type, encoded(c.type, b));
    auto size = static_cast<std::size_t>(c.m * c.n);
    test::DeviceVector gC = vector(f32, std::vector<float>(size, -1));
    run(
        {.grid = {1, 1, 1}, .block = {128, 1, 1}},
        [&](const Tensor& x, const Tensor& y, const Tensor& z) { multiply_tile(c, x, y, z); }, gA,
        gB, gC);
    EXPECT_EQ(download<float>(gC.buffer), products(a, b, c.m, c.n, c.k)) << name(c.type);
  }
}

}  // namespace
}  // namespace tilewright
