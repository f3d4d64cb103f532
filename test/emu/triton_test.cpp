// SPDX-License-Identifier: Apache-2.0
// Triton's PTX (test/data/ptx_triton): values, and no finding.
#include "emu/half_tiles.h"
#include "emu/programs.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <numeric>

namespace tilewright::emu {
namespace {

using namespace test;

/// Triton's entries take two scratch pointers behind their parameters, null here.
class Triton : public testing::Test {
 protected:
  template <class T>
  std::uint64_t upload(const std::vector<T>& data) {
    const auto bytes = std::as_bytes(std::span(data));
    const std::uint64_t address = machine.allocate(static_cast<std::int64_t>(bytes.size()));
    machine.write(address, bytes);
    return address;
  }
  template <class T>
  std::vector<T> download(std::uint64_t address, std::size_t count) {
    std::vector<T> out(count);
    machine.read(address, std::as_writable_bytes(std::span(out)));
    return out;
  }
  void run(const std::string& entry, Dim3 grid, std::int64_t smem,
           const std::vector<std::uint64_t>& values, const Options& o) {
    Launch launch;
    launch.program = machine.load(module_of("ptx_triton/" + entry + ".ptx"));
    launch.entry = entry;
    launch.grid = grid;
    launch.block.x = 128;
    launch.dynamic_smem_bytes = smem;
    const std::vector<ParamSlot> slots = parameters(launch.program, entry);
    ASSERT_EQ(slots.size(), values.size() + 2);
    launch.params.resize(static_cast<std::size_t>(slots.back().offset + slots.back().bytes));
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::memcpy(launch.params.data() + slots[i].offset, &values[i],
                  static_cast<std::size_t>(slots[i].bytes));
    }
    expect_clean(machine.launch(launch, o), o);
  }

  Machine machine{ptx::parse_target("sm_90a")};
};

TEST_F(Triton, Adds) {
  const std::vector<float> x = {1, 2.5F, -3}, y = {0.5F, 4, 1e6F};
  const std::uint64_t to = machine.allocate(12);
  run("add", {1, 1, 1}, 0, {upload(x), upload(y), to, 3}, {});
  EXPECT_EQ(download<float>(to, 3), (std::vector<float>{1.5F, 6.5F, 999997}));
}

TEST_F(Triton, ScansAndCounts) {
  Ints x = table(256, [](int i) { return i * 37 % 101; });
  Ints sums(256), counts(8);
  std::partial_sum(x.begin(), x.end(), sums.begin());
  for (const int v : x)
    ++counts[static_cast<std::size_t>(v & 7)];
  const std::uint64_t out = machine.allocate(1024), bins = upload(Ints(8));
  run("scan_and_count", {1, 1, 1}, 32, {upload(x), out, bins}, {});
  EXPECT_EQ(download<std::int32_t>(out, 256), sums);
  EXPECT_EQ(download<std::int32_t>(bins, 8), counts);
}

/// ex2.approx and rcp-based division: a few units in the last place of f32.
TEST_F(Triton, TakesASoftmax) {
  std::vector<float> x(1000);
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>(i * 7919 % 1009) / 256 - 2;
  const std::uint64_t out = machine.allocate(4000);
  run("softmax", {2, 1, 1}, 16, {upload(x), out, 500}, {});
  const std::vector<float> y = download<float>(out, 1000);
  for (std::size_t row = 0; row < 2; ++row) {
    double sum = 0;
    for (std::size_t i = 0; i < 500; ++i)
      sum += std::exp(double{x[row * 500 + i]});
    for (std::size_t i = 0; i < 500; ++i) {
      const double exact = std::exp(double{x[row * 500 + i]}) / sum;
      EXPECT_NEAR(y[row * 500 + i], exact, 4e-6 * exact) << row << " " << i;
    }
  }
}

/// Tensor copies in, wgmma, and a tensor copy out; the ones of a give the sums of b's columns.
TEST_F(Triton, MultipliesMatricesByTensorMaps) {
  const int k = 128;
  std::vector<std::uint16_t> a(64 * static_cast<std::size_t>(k), half(1)), b;
  for (int i = 0; i < k * 64; ++i)
    b.push_back(half(i % 64 == i / 64 ? 3 : 0));
  const std::uint64_t at_a = upload(a), at_b = upload(b), at_c = machine.allocate(2 * 64 * 64);
  const EncodedTensorMap maps[3] = {tiles_of(at_a, 64, k), tiles_of(at_b, k, 64),
                                    tiles_of(at_c, 64, 64)};
  Launch launch;
  launch.program = machine.load(module_of("ptx_triton/multiply_tma.ptx"));
  launch.entry = "multiply_tma";
  launch.block.x = 128;
  launch.dynamic_smem_bytes = 49176;
  const std::vector<ParamSlot> slots = parameters(launch.program, launch.entry);
  launch.params.resize(static_cast<std::size_t>(slots.back().offset + slots.back().bytes));
  std::size_t next = 0;
  for (const ParamSlot& slot : slots) {
    if (slot.bytes == 128 && next < 3) {
      std::memcpy(launch.params.data() + slot.offset, &maps[next++], 128);
    }
  }
  std::memcpy(launch.params.data() + slots[15].offset, &k, 4);
  expect_clean(machine.launch(launch), {});
  EXPECT_EQ(download<std::uint16_t>(at_c, 64 * 64), std::vector<std::uint16_t>(64 * 64, half(3)));
}

/// wgmma behind a cp.async pipeline; small integers make it exact.
TEST_F(Triton, MultipliesMatricesInEveryScheduleMode) {
  const int m = 64, n = 64, k = 96;
  auto value = [](int i) { return i * 31 % 7 - 3; };
  std::vector<std::uint16_t> a, b;
  for (int i = 0; i < m * k; ++i)
    a.push_back(half(value(i)));
  for (int i = 0; i < k * n; ++i)
    b.push_back(half(value(i + 5)));
  std::vector<float> c(static_cast<std::size_t>(m * n));
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      int sum = 0;
      for (int l = 0; l < k; ++l)
        sum += value(i * k + l) * value(l * n + j + 5);
      c[static_cast<std::size_t>(i * n + j)] = static_cast<float>(sum);
    }
  }
  const std::uint64_t at_a = upload(a), at_b = upload(b), at_c = machine.allocate(4 * m * n);
  for (const Options& o : schedules()) {
    run("multiply", {1, 1, 1}, 16384, {at_a, at_b, at_c, n, k}, o);
    EXPECT_EQ(download<float>(at_c, c.size()), c) << "seed " << o.seed;
    if (HasFailure()) return;
  }
}

/// Causal attention by two wgmma a step and an online softmax; queries and keys are small integers,
/// and exponentials are rounded to f16 (relative 2^-11) before the second product.
TEST_F(Triton, AttendsToEarlierTokens) {
  const int n = 128, d = 64;
  auto value = [](int i) { return i * 29 % 5 - 2; };
  std::vector<std::uint16_t> q, k, v;
  for (int i = 0; i < n * d; ++i) {
    q.push_back(half(value(i)));
    k.push_back(half(value(i + i / d)));
    v.push_back(half(value(3 * i + 1)));
  }
  const float scale = 0.125F;
  const std::uint64_t out = machine.allocate(4 * n * d);
  const std::vector<std::uint64_t> values = {
      upload(q), upload(k), upload(v), out, n, std::bit_cast<std::uint32_t>(scale)};
  for (const unsigned mode : {0U, 13U}) {
    run("attention", {2, 1, 1}, 16384, values, schedules()[mode]);
    const std::vector<float> got = download<float>(out, static_cast<std::size_t>(n * d));
    for (int row = 0; row < n; row += 9) {
      std::vector<double> weight(static_cast<std::size_t>(n)), sum(static_cast<std::size_t>(d));
      double total = 0;
      for (int key = 0; key <= row; ++key) {
        int dot = 0;
        for (int i = 0; i < d; ++i)
          dot += value(row * d + i) * value(key * d + i + key);
        const double w = std::exp(dot * double{scale});
        total += w;
        for (int i = 0; i < d; ++i)
          sum[static_cast<std::size_t>(i)] += w * value(3 * (key * d + i) + 1);
      }
      for (int i = 0; i < d; ++i) {
        // Weights sum to 1 and values are at most 2: 2 * 2^-11, and as much again for the rest.
        EXPECT_NEAR(got[static_cast<std::size_t>(row * d + i)],
                    sum[static_cast<std::size_t>(i)] / total, 4 * 0x1p-11)
            << row << " " << i;
      }
    }
  }
}

TEST_F(Triton, SortsInEveryScheduleMode) {
  Ints x = program_input();
  x.resize(512);
  Ints sorted = x;
  std::sort(sorted.begin(), sorted.begin() + 256);
  std::sort(sorted.begin() + 256, sorted.end());
  const std::uint64_t from = upload(x), out = machine.allocate(2048);
  for (const Options& o : schedules()) {
    run("sort_rows", {2, 1, 1}, 1024, {from, out}, o);
    EXPECT_EQ(download<std::int32_t>(out, 512), sorted) << schedule_text(o);
    if (HasFailure()) return;
  }
}

TEST_F(Triton, MultipliesBytesExactly) {
  const int m = 64, n = 128, k = 128;
  auto value = [](int i) { return i * 37 % 251 - 125; };
  std::vector<std::int8_t> a, b;
  for (int i = 0; i < m * k; ++i)
    a.push_back(static_cast<std::int8_t>(value(i)));
  for (int i = 0; i < n * k; ++i)
    b.push_back(static_cast<std::int8_t>(value(i + 7)));
  const std::uint64_t out = machine.allocate(4 * m * n);
  run("multiply_bytes", {1, 2, 1}, 16384, {upload(a), upload(b), out, n, k}, {});
  const Ints got = download<std::int32_t>(out, static_cast<std::size_t>(m * n));
  const Ints expected = table(m * n, [&](int i) {
    int sum = 0;
    for (int l = 0; l < k; ++l)
      sum += value(i / n * k + l) * value(i % n * k + l + 7);
    return sum;
  });
  EXPECT_EQ(got, expected);
}

}  // namespace
}  // namespace tilewright::emu
