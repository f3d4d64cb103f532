// SPDX-License-Identifier: Apache-2.0
// Programs that the emulator was not written for: nvcc's code for usual idioms.
#include "emu/programs.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <numeric>
#include <utility>

namespace tilewright::emu {
namespace {

using namespace test;

Ints histogram(const Ints& x) {
  Ints out(64);
  for (std::size_t i = 0; i < 1024; ++i)
    ++out[static_cast<std::size_t>(x[i] & 63)];
  return out;
}
Ints scan(const Ints& x) {
  Ints out(512);
  std::partial_sum(x.begin(), x.begin() + 512, out.begin());
  return out;
}
Ints window_order(const Ints& x) {
  return table(32, [&](int t) {
    Ints a = table(16, [&](int i) { return at(x, (t + i) & 31); });
    std::sort(a.begin(), a.end());
    return at(a, at(x, t) & 15);
  });
}
Ints areas(const Ints&) {
  return table(32, [](int t) { return (t & 1) != 0 ? t * t : 5 * t; });
}
Ints fibonacci(const Ints&) {
  return table(32, [](int t) {
    int a = 0, b = 1;
    for (int i = 0; i < t % 12; ++i)
      b = std::exchange(a, b) + b;
    return a;
  });
}
Ints heap(const Ints&) {
  return table(32, [](int t) { return 28 * t; });
}
Ints groups(const Ints& x) {
  return table(64, [&](int t) {
    int sum = 0, odd = 0;
    for (int i = 0; i < 16; ++i)
      sum += at(x, t / 16 * 16 + i);
    for (int i = 0; i < 32; ++i)
      odd += at(x, t / 32 * 32 + i) & 1;
    return sum + ((at(x, t) & 1) != 0 ? 1000 * odd : 0);
  });
}
Ints shifted(const Ints& x) {
  return table(128, [&](int i) { return at(x, (i + 3) % 128) + 3; });
}
Ints sorted(const Ints& x) {
  Ints out(x.begin(), x.begin() + 256);
  std::sort(out.begin(), out.end());
  return out;
}
Ints mirrored(const Ints& x) {
  return table(256, [&](int i) { return at(x, i / 64 * 64 + 63 - i % 64); });
}
Ints low_bits(const Ints& x) {
  return table(32, [&](int i) { return at(x, i) & 15; });
}
Ints neighbours(const Ints& x) {
  return table(256, [&](int i) {
    const int block = i / 32;
    return at(x, (block / 4 * 4 + (block + 1) % 4) * 32 + i % 32);
  });
}
Ints staged(const Ints& x) {
  return table(512, [&](int i) { return at(x, i) + i / 128; });
}
Ints remote(const Ints& x) { return {x[1], 1, 2, 3, x[0], 1, 2, 3}; }

const std::vector<ProgramRow> kPrograms = {
    {"histogram", 4, 64, 1, histogram},
    {"chained_scan", 8, 64, 1, scan},
    {"sort_local_array", 1, 32, 1, window_order},
    {"virtual_call", 1, 32, 1, areas},
    {"recursion", 1, 32, 1, fibonacci},
    {"heap", 1, 32, 1, heap},
    {"groups", 1, 64, 1, groups},
    {"grid_sync", 2, 64, 1, shifted, true},
    {"radix_sort", 1, 64, 1, sorted},
    {"cuda_barrier", 1, 64, 1, mirrored},
    {"fp8_round_trip", 1, 32, 1, low_bits},
    {"distributed_shared", 8, 32, 4, neighbours},
    {"bulk_ring", 1, 128, 1, staged},
    {"remote_store", 2, 32, 2, remote},
};

class Programs : public testing::TestWithParam<ProgramRow> {};

TEST_P(Programs, GiveWhatTheCpuComputesInEveryScheduleMode) {
  expect_program(GetParam(), "ptx_own/programs_sm_90a.ptx");
}

INSTANTIATE_TEST_SUITE_P(Nvcc, Programs, testing::ValuesIn(kPrograms),
                         [](const auto& row) { return row.param.entry; });

}  // namespace
}  // namespace tilewright::emu
