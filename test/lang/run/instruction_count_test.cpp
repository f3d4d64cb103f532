// SPDX-License-Identifier: Apache-2.0
// Three kernels of the corpus of nvcc's code, in this language: they compute the same, and ptxas
// makes no more machine instructions of them than nvcc -O3 of the CUDA source.
#include "run_fixture.h"
#include "test/golden.h"
#include "test/machine_code.h"
#include "tilewright/assembler.h"
#include "tilewright/atomic.h"
#include "tilewright/control.h"
#include "tilewright/math.h"
#include "tilewright/module.h"
#include "tilewright/sync.h"

#include <bit>
#include <cmath>
#include <random>

namespace tilewright {
namespace {

using test::Data;

Value plus(const Value& a, const Value& b) { return a + b; }
Value larger(const Value& a, const Value& b) { return max(a, b); }

/// k01: the sum of a vector, one atomic addition a block of 256 threads.
void reduce_shfl(const Tensor& x, const Tensor& out) {
  Tensor part = shared(f32, Layout(Shape{8}));
  Value n = to_value(x.shape()[0].value());
  Var sum(f32, 0.0f);
  for_(block_idx().x * 256 + thread_idx().x, n, grid_dim().x * 256,
       [&](const Value& i) { sum += x(i).load(); });
  for (int d = 16; d > 0; d /= 2)
    sum += shuffle_down(sum, d);
  Value lane = thread_idx().x % 32;
  if_(lane == 0, [&] { part(warp_idx()) = sum; });
  barrier();
  if_(warp_idx() == 0, [&] {
    Var total(f32, 0.0f);
    if_(lane < 8, [&] { total = part(lane).load(); });
    for (int d = 4; d > 0; d /= 2)
      total += shuffle_xor(total, d);
    if_(lane == 0, [&] { red_add(out(0), total); });
  });
}

/// k02: C = A B in tiles of 16 x 16, the ragged edges guarded. As in CUDA, the matrices are vectors
/// whose 32-bit indices the kernel computes.
void gemm_tiled(const Tensor& a, const Tensor& b, const Tensor& c, const Value& m, const Value& n,
                const Value& k) {
  Tensor tile_a = shared(f32, Layout(Shape{16, 16}, Stride{17, 1}));
  Tensor tile_b = shared(f32, Layout(Shape{16, 16}, Stride{16, 1}));
  Value x = thread_idx().x % 16;
  Value y = thread_idx().x / 16;
  Value row = block_idx().y * 16 + y;
  Value column = block_idx().x * 16 + x;
  Var sum(f32, 0.0f);
  for_(0, k, 16, [&](const Value& k0) {
    tile_a(y, x) = load_if(row < m && k0 + x < k, a(row * k + k0 + x), 1)[0];
    tile_b(y, x) = load_if(column < n && k0 + y < k, b((k0 + y) * n + column), 1)[0];
    barrier();
    for (int i = 0; i < 16; ++i)
      sum = fma(tile_a(y, i).load(), tile_b(i, x).load(), sum);
    barrier();
  });
  if_(row < m && column < n, [&] { c(row * n + column) = sum; });
}

/// k04: the softmax of a row by a block of 128 threads.
void softmax_rows(const Tensor& x, const Tensor& y) {
  Tensor partials = shared(f32, Layout(Shape{4}));
  Value columns = to_value(x.shape()[1].value());
  Value row = block_idx().x;
  Value thread = thread_idx().x;
  auto of_block = [&](const Value& v, auto combine) {
    Value of_warp = warp_reduce(v, combine);
    if_(thread % 32 == 0, [&] { partials(warp_idx()) = of_warp; });
    barrier();
    Value all = warp_reduce(partials(thread % 4).load(), combine, 4);
    barrier();
    return all;
  };
  Tensor in = x(row, _);
  Tensor out = y(row, _);
  Var largest(f32, -INFINITY);
  for_(thread, columns, 128, [&](const Value& i) { largest = max(largest, in(i).load()); });
  Value most = of_block(largest, larger);
  Var sum(f32, 0.0f);
  for_(thread, columns, 128, [&](const Value& i) { sum += exp(in(i).load() - most); });
  Value total = of_block(sum, plus);
  for_(thread, columns, 128, [&](const Value& i) { out(i) = exp(in(i).load() - most) / total; });
}

struct Counted {
  int instructions;
  std::string assembler;
};
template <class Body, class... Args>
Counted count(const Body& body, const Args&... args) {
  Traced traced = trace({.name = "k", .target = {90, 'a'}, .block = {256, 1, 1}}, body, args...);
  Assembled made = assemble(ptx::print(traced.module()), {90, 'a'});
  return {static_cast<int>(test::opcodes_in(made.bytes).size()), made.assembler};
}

TensorArg matrix() {
  const std::int64_t shape[] = {1000, 1000};
  return tensor_arg(make_view(0, f32, shape), {.extents = 3, .strides = 1});
}
TensorArg vector() {
  const std::int64_t shape[] = {1000};
  return tensor_arg(make_view(0, f32, shape), {.extents = 1, .strides = 0});
}

TEST(InstructionCount, IsAtMostNvccs) {
  if (!have_assembler()) GTEST_SKIP() << why_no_assembler();
  // nvcc 13.0.88 -O3 -arch=sm_90a -cubin test/data/ptx_corpus/NAME/kernel.cu, counted as above.
  struct Row {
    const char* name;
    Counted ours;
    int nvcc;
  };
  const ScalarArg number{s32, {}};
  const Row rows[] = {
      {"k01_reduce_shfl", count(reduce_shfl, vector(), vector()), 62},
      {"k02_gemm_tiled", count(gemm_tiled, vector(), vector(), vector(), number, number, number),
       121},
      {"k04_softmax", count(softmax_rows, matrix(), matrix()), 585}};
  std::string table = "kernel, machine instructions for sm_90a by ptxas 13.0, those of nvcc 13.0\n";
  for (const Row& row : rows) {
    EXPECT_GT(row.ours.instructions, 20) << row.name;
    EXPECT_LE(row.ours.instructions, row.nvcc) << row.name;
    table += std::string(row.name) + " " + std::to_string(row.ours.instructions) + " " +
             std::to_string(row.nvcc) + "\n";
  }
  if (rows[0].ours.assembler.find(" 13.0.") == std::string::npos)
    GTEST_SKIP() << "the table is ptxas 13.0's, here is " << rows[0].ours.assembler;
  test::expect_golden("lang/instruction_counts.txt", table);
}

class Corpus : public test::RunTest {
 protected:
  static Data numbers(std::vector<std::int64_t> shape) {
    Data data(f32, std::move(shape));
    std::mt19937 random(7);
    for (std::uint64_t& bits : data.bits)
      bits = std::bit_cast<std::uint32_t>(static_cast<float>(random() % 17) - 8);
    return data;
  }
  static float at(const Data& data, std::size_t i) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(data.bits[i]));
  }
};

TEST_F(Corpus, Sums) {
  Data x = numbers({5000});
  Data out(f32, {1});
  run({.threads = 256, .grid = {3}, .dynamic = {.extents = 1}}, reduce_shfl, x, out);
  float sum = 0;  // of small integers: exact in any order
  for (std::size_t i = 0; i < x.bits.size(); ++i)
    sum += at(x, i);
  EXPECT_EQ(at(out, 0), sum);
}

TEST_F(Corpus, Multiplies) {
  constexpr std::size_t kM = 35, kN = 20, kK = 33;
  Data a = numbers({kM * kK});
  Data b = numbers({kK * kN});
  Data c(f32, {kM * kN});
  run(
      {.threads = 256, .grid = {2, 3}},
      [](const Tensor& x, const Tensor& y, const Tensor& z) {
        gemm_tiled(x, y, z, constant(s32, kM), constant(s32, kN), constant(s32, kK));
      },
      a, b, c);
  for (std::size_t i = 0; i < kM; ++i) {
    for (std::size_t j = 0; j < kN; ++j) {
      float sum = 0;
      for (std::size_t k = 0; k < kK; ++k)
        sum += at(a, i * kK + k) * at(b, k * kN + j);
      EXPECT_EQ(at(c, i * kN + j), sum) << i << " " << j;
    }
  }
}

TEST_F(Corpus, TakesTheSoftmaxOfRows) {
  constexpr std::size_t kRows = 2, kColumns = 300;
  Data x = numbers({kRows, kColumns});
  Data y(f32, {kRows, kColumns});
  run({.threads = 128, .grid = {2}, .dynamic = {.extents = 3, .strides = 1}}, softmax_rows, x, y);
  for (std::size_t r = 0; r < kRows; ++r) {
    double sum = 0;
    for (std::size_t i = 0; i < kColumns; ++i)
      sum += std::exp(static_cast<double>(at(x, r * kColumns + i)) - 8);
    for (std::size_t i = 0; i < kColumns; ++i) {
      double exact = std::exp(static_cast<double>(at(x, r * kColumns + i)) - 8) / sum;
      // 1.1 ulp of each exp, 300 / 128 + 7 roundings of the sum, one of the division.
      EXPECT_NEAR(at(y, r * kColumns + i), exact, exact * 13 * 0x1p-24);
    }
  }
}

}  // namespace
}  // namespace tilewright
