// SPDX-License-Identifier: Apache-2.0
// The kernels that docs/cookbook.md shows beside CUDA C++ and CuTe, on the device.
#include "reference.h"
#include "run_fixture.h"
#include "tilewright/control.h"
#include "tilewright/debugging.h"
#include "tilewright/fragment.h"
#include "tilewright/function.h"
#include "tilewright/grid_barrier.h"
#include "tilewright/sync.h"

#include <algorithm>
#include <bit>

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

// begin grid_sync
void normalize(const Tensor& x, const Tensor& sums, const Tensor& counter) {
  GridBarrier grid(counter(0));  // a u32 that was 0 before the first launch
  Value i = block_idx().x * 32 + thread_idx().x;
  auto add = [](const Value& a, const Value& b) { return a + b; };
  Value sum = warp_reduce(x(i).load(), add);
  if_(thread_idx().x == 0, [&] { sums(block_idx().x) = sum; });
  grid.sync();
  Var total(f32, 0);
  for_(grid_dim().x, [&](const Value& block) { total += sums(block).load(); });
  x(i) = x(i).load() / Value(total);
}
// end grid_sync

// begin epilogue
/// `prologue` and `epilogue` are C++ functions of values: what they do is traced in place.
template <class Prologue, class Epilogue>
void dot(const Tensor& x, const Tensor& y, const Tensor& out, const Prologue& prologue,
         const Epilogue& epilogue) {
  Value i = thread_idx().x;
  auto add = [](const Value& a, const Value& b) { return a + b; };
  Value sum = warp_reduce(prologue(x(i).load()) * y(i).load(), add);
  if_(i == 0, [&] { out(0) = epilogue(sum); });
}

void dot_of_relu(const Tensor& x, const Tensor& y, const Tensor& out) {
  dot(
      x, y, out, [](const Value& v) { return max(v - 3, 0); },
      [](const Value& sum) { return sum * 0.5f; });
}
// end epilogue

// begin debugging
void checked(const Tensor& x) {
  Value i = thread_idx().x;
  Value v = x(i).load();
  assert_(v == v, "x has a NaN");
  if_(v > 90, [&] { printf_("x[%d] = %g\n", i, v); });
}
// end debugging

// begin own_ptx
constexpr const char* kRotate = R"(.version 7.0
.target sm_70
.address_size 64
.func (.param .b32 out) rotate(.param .b32 x, .param .b32 count)
{
  .reg .b32 %r<3>;
  ld.param.b32 %r0, [x];
  ld.param.b32 %r1, [count];
  shf.l.wrap.b32 %r2, %r0, %r0, %r1;
  st.param.b32 [out], %r2;
  ret;
})";

void rotate_all(const Tensor& x) {
  include_ptx(kRotate);
  auto rotate = extern_function("rotate", u32, u32, u32);
  auto mixed = function_(
      "mixed", [&](const Value& v) { return rotate(v, 5) ^ rotate(v, 11); }, u32);
  Value i = thread_idx().x;
  x(i) = mixed(mixed(x(i).load()));
}
// end own_ptx

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

TEST_F(Cookbook, NormalizesOverAllBlocks) {
  Data x = numbers(f32, {96});
  Data sums(f32, {3});
  Data counter(u32, {1});
  run({.grid = {3}, .cooperative = true}, normalize, x, sums, counter);
  for (std::size_t i = 0; i < 96; ++i)
    ASSERT_EQ(number(x, i), static_cast<double>(static_cast<float>(i) / (95 * 48)));
}

TEST_F(Cookbook, TakesAPrologueAndAnEpilogue) {
  Data x = numbers(f32, {32});
  Data y = numbers(f32, {32});
  Data out(f32, {1});
  run({}, dot_of_relu, x, y, out);
  double expected = 0;
  for (std::size_t i = 0; i < 32; ++i)
    expected += std::max(number(x, i) - 3, 0.0) * number(y, i);
  EXPECT_EQ(number(out, 0), expected / 2);
}

TEST_F(Cookbook, PrintsAndAsserts) {
  Data x = numbers(f32, {96});
  ::testing::internal::CaptureStdout();
  run({.threads = 96}, checked, x);
  std::string captured = ::testing::internal::GetCapturedStdout();
  std::string text = emulated() ? device.last_report().output : captured;
  EXPECT_EQ(text, "x[91] = 91\nx[92] = 92\nx[93] = 93\nx[94] = 94\nx[95] = 95\n");
}

TEST_F(Cookbook, CallsFunctionsOfItsOwn) {
  Data x = vector_of(u32, {1, 0x80000001, 0xdeadbeef, 12345});
  Data before = x;
  run({.threads = 4}, rotate_all, x);
  auto mixed = [](std::uint32_t v) { return std::rotl(v, 5) ^ std::rotl(v, 11); };
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_EQ(x.bits[i], mixed(mixed(static_cast<std::uint32_t>(before.bits[i]))));
}

}  // namespace
}  // namespace tilewright::test
