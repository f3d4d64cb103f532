// SPDX-License-Identifier: Apache-2.0
// The kernels that docs/language.md shows beside CUDA C++, on the device.
#include "reference.h"
#include "run_fixture.h"
#include "tilewright/control.h"
#include "tilewright/fragment.h"
#include "tilewright/sync.h"

namespace tilewright::test {
namespace {

using Cookbook = RunTest;

// begin grid_stride
void scale(const Tensor& x) {
  Value n = to_value(x.shape()[0].value());
  Value first = block_idx().x * block_dim().x + thread_idx().x;
  for_(first, n, grid_dim().x * block_dim().x, [&](const Value& i) { x(i) = x(i).load() * 2; });
}
// end grid_stride

// begin block_sum
void block_sum(const Tensor& x, const Tensor& sum) {
  auto add = [](const Value& a, const Value& b) { return a + b; };
  Tensor sums = shared(f32, make_row_major(Shape{block_threads() / 32}));
  Value of_warp = warp_reduce(x(thread_idx().x).load(), add);
  if_(lane_idx() == 0, [&] { sums(warp_idx()) = of_warp; });
  barrier();
  if_(thread_idx().x == 0, [&] { sum(0) = reduce(load(sums(0), block_threads() / 32), add); });
}
// end block_sum

// begin transpose
void transpose(const Tensor& in, const Tensor& out) {
  Tensor tile = shared(f32, Layout(Shape{32, 32}, Stride{33, 1}));  // a column in 32 banks
  Value x = thread_idx().x % 32;
  Value y = thread_idx().x / 32;
  for (int row = 0; row < 32; row += 8)
    tile(y + row, x) = in(block_idx().y * 32 + y + row, block_idx().x * 32 + x);
  barrier();
  for (int row = 0; row < 32; row += 8)
    out(block_idx().x * 32 + y + row, block_idx().y * 32 + x) = tile(x, y + row);
}
// end transpose

// begin vectors
void add_vectors(const Tensor& a, const Tensor& b) {
  Value i = (block_idx().x * block_dim().x + thread_idx().x) * 8;
  Value inside = i < to_value(a.shape()[0].value());
  Fragment x = load_if(inside, a(i), 8).to(f32);
  Fragment y = load_if(inside, b(i), 8).to(f32);
  store_if(inside, a(i), (x + y).to(f16));
}
// end vectors

// begin double_buffer
void double_buffer(const Tensor& in, const Tensor& out, int tiles) {
  Tensor slots = shared(f32, make_row_major(Shape{2, 128}));
  Value i = thread_idx().x * 4;
  copy_async(slots(0, i), in(0, i), 16);
  cp_async_commit();
  for (int tile = 0; tile < tiles; ++tile) {
    if (tile + 1 < tiles) copy_async(slots((tile + 1) % 2, i), in(tile + 1, i), 16);
    cp_async_commit();
    cp_async_wait(1);  // this tile is there, the next may be on its way
    barrier();
    store(out(tile, i), load(slots(tile % 2, i), 4) * 2.0f);
    barrier();  // before its slot is written again
  }
}
// end double_buffer

Data numbers(Type type, std::vector<std::int64_t> shape) {
  Data data(type, std::move(shape));
  for (std::size_t i = 0; i < data.bits.size(); ++i)
    data.bits[i] = real_bits(type, static_cast<double>(i % 97));
  return data;
}

double number(const Data& data, std::size_t i) { return as_real(data.type, data.bits[i]); }

TEST_F(Cookbook, ScalesByAGridStrideLoop) {
  Data x = numbers(f32, {1000});
  run({.threads = 64, .grid = {3}, .dynamic = {.extents = 1}}, scale, x);
  for (std::size_t i = 0; i < 1000; ++i)
    ASSERT_EQ(number(x, i), 2.0 * static_cast<double>(i % 97));
}

TEST_F(Cookbook, SumsABlock) {
  Data x = numbers(f32, {256});
  Data sum(f32, {1});
  run({.threads = 256}, block_sum, x, sum);
  double expected = 0;
  for (std::size_t i = 0; i < 256; ++i)
    expected += number(x, i);
  EXPECT_EQ(number(sum, 0), expected);
}

TEST_F(Cookbook, TransposesThroughPaddedMemory) {
  Data in = numbers(f32, {64, 96});
  Data out(f32, {96, 64});
  run({.threads = 256, .grid = {3, 2}}, transpose, in, out);
  for (std::size_t r = 0; r < 64; ++r) {
    for (std::size_t c = 0; c < 96; ++c)
      ASSERT_EQ(out.bits[c * 64 + r], in.bits[r * 96 + c]);
  }
}

TEST_F(Cookbook, AddsVectorsOfHalves) {
  Data a = numbers(f16, {1000});
  Data b = numbers(f16, {1000});
  run({.threads = 64, .grid = {2}, .dynamic = {.extents = 1}}, add_vectors, a, b);
  for (std::size_t i = 0; i < 1000; ++i)
    ASSERT_EQ(number(a, i), 2 * number(b, i));
}

TEST_F(Cookbook, ComputesWhileTheNextTileArrives) {
  Data in = numbers(f32, {5, 128});
  Data out(f32, {5, 128});
  auto body = [](const Tensor& source, const Tensor& result) { double_buffer(source, result, 5); };
  run({}, body, in, out);
  for (std::size_t i = 0; i < in.bits.size(); ++i)
    ASSERT_EQ(number(out, i), 2 * number(in, i));
}

}  // namespace
}  // namespace tilewright::test
