// SPDX-License-Identifier: Apache-2.0
// What nvcc makes of more idioms (test/data/ptx_own/idioms.cu), against the same formulas here.
#include "emu/programs.h"

#include <algorithm>
#include <bit>
#include <cfenv>
#include <cmath>
#include <numeric>

namespace tilewright::emu {
namespace {

using namespace test;

std::int32_t low(std::int64_t value) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(value & 0xffffffff));
}
std::uint32_t word(const Ints& x, int i) { return static_cast<std::uint32_t>(at(x, i)); }
std::int32_t sum(const Ints& x, int count) {
  return std::accumulate(x.begin(), x.begin() + count, 0);
}

Ints generic_ring(const Ints& x) {
  return table(64, [&](int t) {
    int all = 0;
    for (int i = 0; i < 12; ++i)
      all += 3 * at(x, i * 64 + 63 - t);
    return all;
  });
}
Ints bulk_add(const Ints& x) {
  return table(256, [&](int i) {
    return 2 * (at(x, i) + at(x, i + 256) + at(x, i + 512) + at(x, i + 768));
  });
}
Ints cluster_histogram(const Ints& x) {
  Ints out(64);
  for (int i = 0; i < 512; ++i)
    ++out[static_cast<std::size_t>(at(x, i) & 63)];
  return out;
}
/// To the 8 significant bits of bf16, ties to even.
int round_bf16(int v) {
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(v));
  return static_cast<int>(std::bit_cast<float>((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000U));
}
Ints half_maths(const Ints&) {
  Ints out;
  for (int t = 0; t < 32; ++t) {
    const int small = 2 * t * t + t, large = 2 * t * t + 3 * t;  // doubled, and exchanged
    out.push_back(small + 10000 * large);
    const int c = std::min(512, round_bf16(std::max(0, t * t - 16)));
    const int d = std::min(512, round_bf16(std::max(0, 4 * t * t - 16)));
    out.push_back(c + 1000 * d);
  }
  return out;
}
Ints local_structs(const Ints& x) {
  return table(32, [&](int t) {
    int all = 0;
    for (int i = 0; i < 8; ++i)
      all += (at(x, (t * 8 + ((at(x, t) + i) & 7)) & 1023) + (t + i) % 5) * (i + 1);
    return all;
  });
}
Ints function_pointers(const Ints& x) {
  auto call = [](int which, int v) { return which == 0 ? 2 * v : which == 1 ? v * v : -v; };
  return table(96, [&](int i) { return call(at(x, i % 32) % 3, i % 32) + call(i / 32, 1); });
}
Ints recursive_sort(const Ints& x) {
  Ints out(x.begin(), x.begin() + 512);
  for (int t = 0; t < 32; ++t)
    std::sort(out.begin() + t * 16, out.begin() + t * 16 + 16);
  return out;
}
Ints atomics(const Ints& x) {
  Ints out(201);
  const std::int32_t most = *std::max_element(x.begin(), x.begin() + 64);
  const auto total = std::bit_cast<std::uint64_t>(0.25 * sum(x, 64));
  out[0] = 0x5400;                 // 64 as f16
  out[1] = 0x4280 | 0x4300 << 16;  // 64 and 128 as bf16
  out[2] = low(static_cast<std::int64_t>(total));
  out[3] = low(static_cast<std::int64_t>(total >> 32));
  out[5] = 64 << 1;  // 64 times 2^33
  out[7] = most;
  out[8] = -most;
  out[9] = 64 % 10;  // wraps behind 9
  out[10] = 10 - 64 % 10;
  out[11] = -1;
  for (int i = 0; i < 64; ++i) {
    out[12] ^= at(x, i);
    out[static_cast<std::size_t>(13 + i)] = at(x, i);
  }
  out[200] = 3 * 64 << 16;
  return out;
}
Ints shuffles(const Ints& x) {
  const std::int32_t most = *std::max_element(x.begin(), x.begin() + 32);
  std::int32_t odd = 0;
  for (int i = 0; i < 32; ++i)
    odd ^= at(x, i);
  return table(32, [&](int t) {
    const int up = t % 8 >= 3 ? t - 3 : t, down = t % 16 + 2 < 16 ? t + 2 : t;
    const int next = t / 4 * 4 + (t + 1) % 4;
    return at(x, t ^ 5) + 2 * at(x, up) + 3 * at(x, down) + 5 * at(x, next) + 2 * at(x, t ^ 16) +
           1 + 2 * at(x, 31 - t) + most + odd;
  });
}

std::uint32_t byte_of(std::uint32_t v, int i) { return v >> (8 * i) & 255; }
/// Sums of products of signed bytes.
std::int32_t dp4a(std::uint32_t a, std::uint32_t b, std::int32_t c) {
  for (int i = 0; i < 4; ++i) {
    c += static_cast<std::int8_t>(byte_of(a, i)) * static_cast<std::int8_t>(byte_of(b, i));
  }
  return c;
}
std::uint32_t reverse(std::uint32_t v) {
  std::uint32_t out = 0;
  for (int i = 0; i < 32; ++i)
    out |= (v >> i & 1) << (31 - i);
  return out;
}
__extension__ using U128 = unsigned __int128;

std::uint32_t integers_of(std::uint32_t v, std::uint32_t t) {
  const std::uint32_t b = t * 77, c = 0x0ff0f00f, majority = (v & b) | (v & c) | (b & c);
  const std::uint64_t w = std::uint64_t{v} * 0x9e3779b97f4a7c15ULL;
  const std::uint32_t bytes = byte_of(v, 1) | byte_of(t, 2) << 8 | byte_of(t, 1) << 16 |
                              byte_of(v, 2) << 24;  // selector 0x2561
  const std::uint32_t shifted = (t & 31) == 0 ? t : t << (t & 31) | v >> (32 - (t & 31));
  std::uint32_t r = majority ^ bytes ^ shifted ^ reverse(v);
  r ^= w == 0 ? 0 : static_cast<std::uint32_t>(std::countr_zero(w) + 1);
  const std::uint32_t low_half = (v & 0xffff) * byte_of(majority, 0);
  const std::uint32_t dp2a = low_half + (v >> 16) * byte_of(majority, 1) + 3;
  const std::uint32_t sad = (v > majority ? v - majority : majority - v) + 9;
  r += static_cast<std::uint32_t>(dp4a(v, majority, 7)) + dp2a + sad;
  r += static_cast<std::uint32_t>(std::uint64_t{v} * majority >> 32);
  r += static_cast<std::uint32_t>(static_cast<std::uint64_t>(U128{w} * w >> 64));
  r += static_cast<std::uint32_t>(std::countl_zero(w >> (t & 31)) + std::popcount(w));
  const std::int64_t half =
      (std::int64_t{static_cast<std::int32_t>(v)} + static_cast<std::int32_t>(majority) + 1) >> 1;
  r += static_cast<std::uint32_t>(low(half));
  std::uint32_t added = 0, largest = 0;
  for (int i = 0; i < 4; ++i)
    added |= ((byte_of(v, i) + byte_of(majority, i)) & 255) << (8 * i);
  for (int i = 0; i < 32; i += 16) {
    const auto p = static_cast<std::int16_t>(v >> i), q = static_cast<std::int16_t>(majority >> i);
    largest |= static_cast<std::uint32_t>(static_cast<std::uint16_t>(std::max(p, q))) << i;
  }
  return r + added + largest;
}
Ints integer_maths(const Ints& x) {
  return table(32, [&](int t) {
    return static_cast<std::int32_t>(
        integers_of(word(x, t) * 2654435761U, static_cast<std::uint32_t>(t)));
  });
}
Ints wide_integers(const Ints& x) {
  return table(32, [&](int t) {
    const U128 a = (U128{word(x, t) + 1} << 90) + word(x, t + 32) * std::uint64_t{12345};
    const U128 b = U128{word(x, t + 64) + 3} << (t & 15);
    const std::int64_t c = (std::int64_t{at(x, t)} << 35) - 99999999999;
    auto cut = [](U128 v) { return static_cast<std::int32_t>(static_cast<std::uint32_t>(v)); };
    return cut(a / b) ^ cut(a % b) ^ cut(a * b >> 97) ^ low(c / (at(x, t + 96) + 1)) ^
           low(c % (at(x, t + 96) - 2000));
  });
}

/// `f` under a rounding mode; volatile operands and result keep it between the calls.
template <class F>
decltype(std::declval<F>()()) rounded(int mode, F f) {
  const int before = std::fegetround();
  std::fesetround(mode);
  volatile auto result = f();
  std::fesetround(before);
  return result;
}
Ints rounding_modes(const Ints& x) {
  return table(32, [&](int t) {
    volatile float a = std::fma(static_cast<float>(at(x, t)), 1e-3F, 1.0F);
    volatile float b = std::fma(static_cast<float>(t), 0.7F, 3.0F), s = b * 1e-5F;
    volatile double p = a, q = b, third = q / 3;
    const float sum = rounded(FE_TOWARDZERO, [&] { return a + s; });
    const float product = rounded(FE_UPWARD, [&] { return a * b; });
    const float quotient = rounded(FE_DOWNWARD, [&] { return a / b; });
    const float root = rounded(FE_UPWARD, [&] { return std::sqrt(b); });
    auto bits = [](float v) { return std::bit_cast<std::uint32_t>(v); };
    std::uint32_t h = bits(sum) ^ bits(product) * 3 ^ bits(quotient) * 5 ^ bits(root) * 7;
    const double ratio = rounded(FE_TOWARDZERO, [&] { return p / q; });
    const double wide_root = rounded(FE_UPWARD, [&] { return std::sqrt(q); });
    const double fused = rounded(FE_DOWNWARD, [&] { return std::fma(p, q, -1e-9); });
    auto cut = [](auto v) { return static_cast<std::uint32_t>(std::bit_cast<std::uint64_t>(v)); };
    h ^= cut(static_cast<std::int64_t>(std::floor(ratio * 1e12))) ^ cut(wide_root) ^ cut(fused);
    h ^= bits(rounded(FE_UPWARD, [&] { return static_cast<float>(third); }));
    h ^= static_cast<std::uint32_t>(std::ceil(a * 100)) ^ bits(std::nearbyint(b * 3));
    return static_cast<std::int32_t>(h);
  });
}
Ints partitions(const Ints& x) {
  return table(64, [&](int t) {
    int scan = 0, size = 0, rank = 0;
    for (int i = t / 8 * 8; i <= t; ++i)
      scan += at(x, i);
    for (int i = t / 32 * 32; i < t / 32 * 32 + 32; ++i) {
      const int same = at(x, i) % 3 == at(x, t) % 3 ? 1 : 0;
      size += same;
      rank += i < t ? same : 0;
    }
    return 2 * scan - at(x, t) + 100000 * size + 10000000 * rank;
  });
}
Ints pipelined_copy(const Ints& x) {
  return table(128, [&](int t) {
    int all = 0;
    for (int i = 1; i <= 6; ++i)
      all += i * at(x, 128 * (i - 1) + 127 - t);
    return all;
  });
}
Ints last_block(const Ints& x) { return {sum(x, 256)}; }
Ints spin_lock(const Ints& x) { return {2 * sum(x, 32)}; }
Ints named_barriers(const Ints& x) {
  Ints out = table(64, [&](int t) { return at(x, t) + 1; });
  const auto odd = std::count_if(x.begin(), x.begin() + 128, [](int v) { return (v & 1) != 0; });
  out.insert(out.end(), {static_cast<int>(odd), 1, 1});
  return out;
}
Ints aggregated(const Ints& x) {
  Ints out(72);
  for (int t = 0; t < 64; ++t) {
    const int place = out[static_cast<std::size_t>(at(x, t) & 3)]++;
    ++out[static_cast<std::size_t>(8 + place)];
    out[4] += at(x, t) % 2 == 0 ? 1 : 0;
  }
  return out;
}
Ints variables(const Ints& x) {
  constexpr int kWeights[] = {1, -2, 3, -4, 5, -6, 7, -8};
  return table(32, [&](int t) {
    const int other = t ^ 1;
    return kWeights[at(x, other) & 7] * ((other & 1) != 0 ? 40 : 20) + at(x, t) + at(x, 1) +
           at(x, 2) + at(x, 3);
  });
}
Ints stack_array(const Ints& x) {
  return table(32, [&](int t) {
    int all = 0;
    for (int i = at(x, t) % 5 + 2; i-- > 0;)
      all = 3 * all + i * i + at(x, i);
    return all;
  });
}
int one_case(const Ints& x, int v, int i) {
  switch ((v + i) % 9) {
    case 0:
      return v + 17;
    case 1:
      return v ^ 0x55;
    case 2:
      return v * 3 + 1;
    case 3:
      return std::popcount(static_cast<unsigned>(v));
    case 4:
      return (v - 4) * 2;
    case 5:
      return v * 2;
    case 6:
      return at(x, v & 1023);
    case 7:
      return (v & 1) != 0 ? v : v / 3;
    default:
      return ~v & 0xffff;
  }
}
Ints many_cases(const Ints& x) {
  return table(32, [&](int t) {
    int v = at(x, t);
    for (int i = 0; i < 4; ++i)
      v = one_case(x, v, i);
    return v;
  });
}
Ints scoped_atomics(const Ints& x) {
  return {((at(x, 0) * 3 + at(x, 1)) * 3 + at(x, 2)) * 3 + at(x, 3),
          *std::max_element(x.begin(), x.begin() + 128)};
}
Ints transpose(const Ints& x) {
  return table(1024, [&](int i) { return at(x, i % 32 * 32 + i / 32); });
}
Ints tree(const Ints& x) { return {sum(x, 512)}; }
Ints remote_barrier(const Ints& x) {
  return table(128, [&](int i) {
    const int t = i % 32, first = i / 64 * 64;
    return at(x, first + (i % 64 < 32 ? 63 : 31) - t);
  });
}
Ints dependent_launch(const Ints& x) {
  return table(32, [&](int t) { return at(x, t) + 1; });
}

const std::vector<ProgramRow> kPrograms = {
    {"generic_ring", 1, 128, 1, generic_ring},
    {"bulk_add", 4, 64, 1, bulk_add},
    {"cluster_histogram", 8, 64, 4, cluster_histogram},
    {"half_maths", 1, 32, 1, half_maths},
    {"local_structs", 1, 32, 1, local_structs},
    {"function_pointers", 3, 32, 1, function_pointers},
    {"recursive_sort", 1, 32, 1, recursive_sort},
    {"atomics", 1, 64, 1, atomics},
    {"shuffles", 1, 32, 1, shuffles},
    {"integer_maths", 1, 32, 1, integer_maths},
    {"wide_integers", 1, 32, 1, wide_integers},
    {"rounding_modes", 1, 32, 1, rounding_modes},
    {"partitions", 1, 64, 1, partitions},
    {"pipelined_copy", 1, 128, 1, pipelined_copy},
    {"last_block", 8, 32, 1, last_block},
    {"spin_lock", 2, 32, 1, spin_lock},
    {"named_barriers", 1, 128, 1, named_barriers},
    {"aggregated", 1, 64, 1, aggregated},
    {"variables", 1, 32, 1, variables, false, 128},
    {"stack_array", 1, 32, 1, stack_array},
    {"many_cases", 1, 32, 1, many_cases},
    {"scoped_atomics", 1, 128, 1, scoped_atomics},
    {"transpose", 1, 32, 1, transpose, false, 0, 8},
    {"tree", 1, 256, 1, tree},
    {"remote_barrier", 4, 32, 2, remote_barrier},
    {"dependent_launch", 1, 32, 1, dependent_launch},
};

const std::string kFile = "ptx_own/idioms_sm_90a.ptx";

class Idioms : public testing::TestWithParam<ProgramRow> {};

TEST_P(Idioms, GiveWhatTheCpuComputesInEveryScheduleMode) { expect_program(GetParam(), kFile); }

INSTANTIATE_TEST_SUITE_P(Nvcc, Idioms, testing::ValuesIn(kPrograms),
                         [](const auto& row) { return row.param.entry; });

TEST(Idiom, PrintfFormatsAsTheHostDoes) {
  const ProgramRun run = run_program({"prints"}, kFile, {});
  expect_clean(run.report, {});
  EXPECT_EQ(run.report.output,
            "t=5 x=1099511627776 f=6.50 s=text c=z %\nt=21 x=1099511627776 f=6.50 s=text c=z %\n");
}

/// f32: the worst of the sum is __sinf, 2^-20.5 absolute; f64 is rounded to f32 in the end.
TEST(Idiom, ApproximateFunctionsAreNearTheExactOnes) {
  const ProgramRun run = run_program({"approximations"}, kFile, {});
  expect_clean(run.report, {});
  for (int t = 0; t < 32; ++t) {
    const double a = static_cast<double>(std::fma(static_cast<float>(t), 0.37F, 0.1F));
    const double f = std::sin(a) + std::exp(-a) + std::log(a) + 1 / std::sqrt(a) + std::tanh(a) +
                     a / 3 + std::pow(a, 1.5) + std::erf(a) + std::cbrt(a);
    const double d = std::sin(a) + std::exp(-a) + std::log1p(a) + std::pow(a, 2.5) + std::atan(a) +
                     1 / std::sqrt(a);
    const auto lane = static_cast<std::size_t>(t);
    EXPECT_NEAR(std::bit_cast<float>(run.out[lane]), f, 2e-6 + 2e-6 * f) << t;
    EXPECT_NEAR(std::bit_cast<float>(run.out[32 + lane]), d, 0x1p-24 * d) << t;
  }
}

}  // namespace
}  // namespace tilewright::emu
