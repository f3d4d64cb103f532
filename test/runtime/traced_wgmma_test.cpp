// SPDX-License-Identifier: Apache-2.0
// wgmma of the language on the test device: types, swizzles, both directions of the operands, A in
// registers; and tensor copies to the tiles that it reads.
#include "runtime/traced_fixture.h"
#include "tilewright/bulk_copy.h"
#include "tilewright/control.h"
#include "tilewright/number_formats.h"
#include "tilewright/ordered.h"
#include "tilewright/sync.h"
#include "tilewright/thread.h"
#include "tilewright/wgmma.h"

#include <bit>
#include <cstdint>

namespace tilewright {
namespace {

using Bytes = std::vector<std::uint8_t>;

class TracedWgmma : public test::TracedTest {
 protected:
  void SetUp() override {
    if (device.target().sm != 90) GTEST_SKIP() << "wgmma is sm_90a's alone";
  }
};

/// The bits of a small integer in the type.
std::uint32_t encode(Type type, int number) {
  auto x = static_cast<float>(number);
  if (type == f16) return f32_to_f16(x);
  if (type == bf16) return f32_to_bf16(x);
  if (type == tf32) return std::bit_cast<std::uint32_t>(x);
  if (type == e4m3) return f32_to_e4m3(x);
  if (type == e5m2) return f32_to_e5m2(x);
  return static_cast<std::uint8_t>(number);
}

/// A row-major matrix of small integers, and its bits.
struct Numbers {
  Numbers(Type type, int rows, int columns, int salt) {
    int most = type == u8 ? 4 : 2;  // exact in every type, as are sums of 512 of their products
    for (int i = 0; i < rows * columns; ++i) {
      int number = (i * 7 + i / columns * 3 + salt) % 5 - (4 - most);
      values.push_back(number);
      std::uint32_t word = encode(type, number);
      for (int b = 0; b < bytes(type); ++b)
        bits.push_back(static_cast<std::uint8_t>(word >> (8 * b)));
    }
  }
  std::vector<int> values;
  Bytes bits;
};

struct Case {
  const char* name;
  Type a, b, sum;
  int m, n, k;
  TensorSwizzle swizzle;
  bool a_transposed = false, b_transposed = false, a_in_registers = false;
  int filled_with = 0;  ///< the sums begin so; 0: the first product overwrites them
};

/// The tile in shared memory with the elements of the row-major matrix in `from`.
MatrixTile filled(const Tensor& from, const Tensor& memory, int rows, int columns,
                  TensorSwizzle swizzle, bool transposed) {
  MatrixTile tile = transposed ? MatrixTile(memory, columns, rows, swizzle).transposed()
                               : MatrixTile(memory, rows, columns, swizzle);
  for_(thread_idx().x, rows * columns, 128,
       [&](const Value& i) { tile.element(i / columns, i % columns) = from(i); });
  return tile;
}

/// A's fragment: of each 64 rows, of each step along k, what wgmma_layout_a() says.
Fragment registers_of(const Tensor& a, const Case& c) {
  Layout layout = wgmma_layout_a(c.a);
  int step = wgmma_k(c.a), each = 64 * step / 128;
  Fragment fragment(c.a, c.m * c.k / 128);
  for (int i = 0; i < fragment.size(); ++i) {
    int block = i / each / (c.k / step), at_k = i / each % (c.k / step) * step;
    Int place = layout(coord(thread_idx().x, i % each));
    Value row = to_value(place % Int(64) + Int(64 * block)), column = to_value(place / Int(64));
    fragment[i] = a(row * c.k + column + at_k).load();
  }
  return fragment;
}

void multiply(const Case& c, const Tensor& gA, const Tensor& gB, const Tensor& out) {
  int a_bytes = c.m * c.k * bytes(c.a);
  Tensor sA = dynamic_shared(c.a, make_row_major(Shape{c.m * c.k}));
  Tensor sB = dynamic_shared(c.b, make_row_major(Shape{c.n * c.k}), (a_bytes + 1023) / 1024 * 1024);
  MatrixTile b = filled(gB, sB, c.n, c.k, c.swizzle, c.b_transposed);
  MatrixTile a = filled(gA, sA, c.m, c.k, c.swizzle, c.a_transposed);
  fence_async_proxy(ProxySpace::shared);
  barrier();
  Accumulator sums(c.sum, c.m, c.n);
  Var accumulate(Arg(c.filled_with != 0), Uniformity::grid);
  if (c.filled_with != 0) {
    sums.fill(c.filled_with);
    Fragment begun = sums.read();  // and may be read before the first product
    for (int i = 0; i < begun.size(); ++i)
      begun[i] = begun[i].get() + begun[i].get();
  }
  for (int twice = 0; twice < 2; ++twice) {
    if (c.a_in_registers) {
      Fragment fragment = registers_of(gA, c);
      wgmma_fence();
      wgmma(sums, fragment, b, accumulate);
    } else {
      wgmma_fence();
      wgmma(sums, a, b, accumulate);
    }
    wgmma_commit();
    wgmma_wait();
    accumulate = Arg(true);
  }
  Fragment result = sums.read();
  Layout places = wgmma_layout_c(c.n);
  int each = 64 * c.n / 128;
  for (int i = 0; i < result.size(); ++i) {
    Int place = places(coord(thread_idx().x, i % each));
    Value row = to_value(place % Int(64) + Int(i / each * 64)), column = to_value(place / Int(64));
    out(row * c.n + column) = result[i].get().to(f32);
  }
}

const Case kCases[] = {
    {"f16, 128-byte swizzle", f16, f16, f32, 64, 16, 64, TensorSwizzle::b128},
    {"f16, 64-byte swizzle", f16, f16, f32, 64, 24, 64, TensorSwizzle::b64},
    {"f16, 32-byte swizzle, f16 sums", f16, f16, f16, 64, 8, 32, TensorSwizzle::b32},
    {"bf16, no swizzle", bf16, bf16, f32, 64, 40, 48, TensorSwizzle::none},
    {"bf16, two blocks of rows and two panels", bf16, bf16, f32, 128, 32, 128, TensorSwizzle::b128},
    {"bf16, A transposed", bf16, bf16, f32, 64, 16, 64, TensorSwizzle::b128, true},
    {"bf16, B transposed", bf16, bf16, f32, 64, 192, 64, TensorSwizzle::b128, false, true},
    {"f16, both transposed, 64 bytes", f16, f16, f32, 128, 64, 32, TensorSwizzle::b64, true, true},
    {"f16, both transposed, 32 bytes", f16, f16, f32, 64, 32, 32, TensorSwizzle::b32, true, true},
    {"bf16, both transposed, no swizzle", bf16, bf16, f32, 64, 16, 32, TensorSwizzle::none, true,
     true},
    {"tf32", tf32, tf32, f32, 64, 16, 64, TensorSwizzle::b128},
    {"tf32, no swizzle", tf32, tf32, f32, 64, 8, 16, TensorSwizzle::none},
    {"e4m3 by e5m2", e4m3, e5m2, f32, 64, 16, 128, TensorSwizzle::b128},
    {"e5m2 by e4m3, f16 sums", e5m2, e4m3, f16, 64, 16, 64, TensorSwizzle::b64},
    {"s8", s8, s8, s32, 64, 24, 128, TensorSwizzle::b128},
    {"u8 by s8", u8, s8, s32, 64, 16, 32, TensorSwizzle::b32},
    {"bf16, A in registers", bf16, bf16, f32, 128, 16, 64, TensorSwizzle::b128, false, false, true},
    {"f16, A in registers, B transposed", f16, f16, f32, 64, 64, 64, TensorSwizzle::b128, false,
     true, true},
    {"tf32, A in registers", tf32, tf32, f32, 64, 8, 16, TensorSwizzle::b64, false, false, true},
    {"e4m3, A in registers", e4m3, e4m3, f32, 64, 8, 64, TensorSwizzle::b64, false, false, true},
    {"s8, A in registers", s8, s8, s32, 64, 8, 64, TensorSwizzle::b64, false, false, true},
    {"bf16, onto sums of 3", bf16, bf16, f32, 64, 16, 64, TensorSwizzle::b128, false, false, false,
     3},
    {"s8, onto sums of -7", s8, s8, s32, 64, 16, 64, TensorSwizzle::b64, false, false, false, -7},
};

TEST_F(TracedWgmma, MultipliesEveryTypeSwizzleAndDirection) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    Numbers a(c.a, c.m, c.k, 1), b(c.b, c.n, c.k, 2);
    test::DeviceVector gA = vector(c.a, a.bits), gB = vector(c.b, b.bits);
    auto elems = static_cast<std::size_t>(c.m * c.n);
    test::DeviceVector gC = vector(f32, std::vector<float>(elems, -1));
    std::int64_t smem = (c.m * c.k * bytes(c.a) + 1023) / 1024 * 1024 + c.n * c.k * bytes(c.b);
    run(
        {.grid = {1, 1, 1}, .block = {128, 1, 1}, .dynamic_smem_bytes = smem},
        [&](const Tensor& x, const Tensor& y, const Tensor& z) { multiply(c, x, y, z); }, gA, gB,
        gC);
    std::vector<float> expected;
    for (int i = 0; i < c.m * c.n; ++i) {
      int sum = 2 * c.filled_with;
      for (int k = 0; k < c.k; ++k) {
        sum += 2 * a.values[static_cast<std::size_t>(i / c.n * c.k + k)] *
               b.values[static_cast<std::size_t>(i % c.n * c.k + k)];
      }
      expected.push_back(static_cast<float>(sum));  // exact: see Numbers
    }
    EXPECT_EQ(download<float>(gC.buffer), expected);
  }
}

TEST_F(TracedWgmma, TensorCopiesMatchTheTilesLayout) {
  for (TensorSwizzle swizzle :
       {TensorSwizzle::none, TensorSwizzle::b32, TensorSwizzle::b64, TensorSwizzle::b128}) {
    constexpr int kRows = 16, kColumns = 128;
    Numbers numbers(bf16, kRows, kColumns, 3);
    test::DeviceVector x = vector(bf16, numbers.bits);
    test::DeviceVector plain = vector(bf16, Bytes(numbers.bits.size(), 0xff));
    test::DeviceVector copied = vector(bf16, Bytes(numbers.bits.size(), 0xff));
    TensorMapArg map = tile_map(bf16, kRows, kColumns, swizzle);
    auto kernel = [&](const TensorMapParam& from, const TensorMapParam& to, const Tensor& out) {
      MatrixTile tile(shared(bf16, make_row_major(Shape{kRows * kColumns}), 1024), kRows, kColumns,
                      swizzle);
      Mbarriers full;
      if_(thread_idx().x == 0, [&] { full.init(1); });
      barrier();
      if_(thread_idx().x == 0, [&] {
        full[0].arrive_expect_tx(tile.bytes());
        load_tile(tile, from, {0, 0}, full[0]);
      });
      full[0].wait(0);
      for_(thread_idx().x, kRows * kColumns, 128,
           [&](const Value& i) { out(i) = tile.element(i / kColumns, i % kColumns).load(); });
      if_(thread_idx().x == 0, [&] {
        store_tile(to, {0, 0}, tile);
        bulk_commit();
        bulk_wait();
      });
    };
    TraceOptions options{.name = "tile", .target = device.target(), .block = {128, 1, 1}};
    Traced traced = trace(options, kernel, map, map, plain.arg);
    const std::int64_t shape[] = {kRows, kColumns};
    Parameters parameters;
    pack(parameters, device, map, make_view(x.buffer.address(), bf16, shape));
    pack(parameters, device, map, make_view(copied.buffer.address(), bf16, shape));
    pack(parameters, plain.arg, plain.view);
    compile(device, std::move(traced))
        .launch({.grid = {1, 1, 1}, .block = {128, 1, 1}}, parameters, stream);
    stream.synchronize();
    EXPECT_EQ(download<std::uint8_t>(plain.buffer), numbers.bits) << swizzle_bytes(swizzle);
    EXPECT_EQ(download<std::uint8_t>(copied.buffer), numbers.bits) << swizzle_bytes(swizzle);
  }
}

}  // namespace
}  // namespace tilewright
