// SPDX-License-Identifier: Apache-2.0
// What lessons 9 and 11 share: matrices of bf16, and whether C = A B^T is right.
#pragma once

#include "tilewright/tilewright.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <vector>

namespace lesson {

namespace tw = tilewright;

struct Problem {
  std::int64_t m, n, k;
};
/// A is m x k, B is n x k, C is m x n; rows are contiguous.
struct Matrices {
  tw::View a, b, c;
};

inline float from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

/// Numbers in [-1, 1] of which bf16 has each: multiples of 1/8.
inline std::vector<std::uint16_t> numbers(std::int64_t count, std::uint32_t seed) {
  std::vector<std::uint16_t> out(static_cast<std::size_t>(count));
  for (std::uint16_t& x : out) {
    seed = seed * 1664525 + 1013904223;
    float value = static_cast<float>(static_cast<int>(seed >> 28) - 8) / 8;
    x = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
  }
  return out;
}

/// Runs `multiply(matrices, stream)` and compares elements of C with sums in double: all of them,
/// or every 97th of large matrices. Returns what main() does.
template <class Multiply>
int check_gemm(const char* what, const tw::Device& device, const Problem& p, Multiply&& multiply) {
  std::vector<std::uint16_t> a = numbers(p.m * p.k, 1), b = numbers(p.n * p.k, 2);
  tw::Buffer a_memory = tw::upload(device, std::span<const std::uint16_t>(a));
  tw::Buffer b_memory = tw::upload(device, std::span<const std::uint16_t>(b));
  tw::Buffer c_memory(device, p.m * p.n * 2);
  auto view = [](const tw::Buffer& memory, std::int64_t rows, std::int64_t columns) {
    const std::int64_t shape[] = {rows, columns};
    return tw::make_view(memory.address(), tw::bf16, shape);
  };
  tw::Stream stream(device);
  multiply(Matrices{view(a_memory, p.m, p.k), view(b_memory, p.n, p.k), view(c_memory, p.m, p.n)},
           stream);
  stream.synchronize();

  // Products are multiples of 1/64 and sums of k <= 8192 of them exact in f32: what is left is
  // rounding the result to 8 bits, at most 2^-8 of it.
  std::vector<std::uint16_t> c = tw::download<std::uint16_t>(c_memory);
  std::int64_t step = p.m * p.n > 1'000'000 ? 97 : 1, wrong = 0;
  for (std::int64_t at = 0; at < p.m * p.n; at += step) {
    const std::uint16_t* row = a.data() + at / p.n * p.k;
    const std::uint16_t* column = b.data() + at % p.n * p.k;
    double sum = 0;
    for (std::int64_t i = 0; i < p.k; ++i)
      sum += static_cast<double>(from_bf16(row[i])) * static_cast<double>(from_bf16(column[i]));
    double is = static_cast<double>(from_bf16(c[static_cast<std::size_t>(at)]));
    if (!(std::fabs(is - sum) <= std::fabs(sum) * 0x1p-8)) ++wrong;
  }
  std::printf("%s: %ld x %ld x %ld on %s: %ld wrong elements, %zu findings\n", what,
              static_cast<long>(p.m), static_cast<long>(p.n), static_cast<long>(p.k),
              device.id().c_str(), static_cast<long>(wrong), device.findings().size());
  for (const tw::emu::Diagnostic& finding : device.findings())
    std::printf("%s\n", tw::emu::to_string(finding).c_str());
  if (wrong > 0) return 1;
  return device.findings().empty() ? 0 : 3;
}

}  // namespace lesson
