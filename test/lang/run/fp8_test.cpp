// SPDX-License-Identifier: Apache-2.0
// Fragments of fp8 elements: every code widens exactly, and f32 narrows as the host's conversions.
#include "run_fixture.h"
#include "tilewright/fragment.h"
#include "tilewright/number_formats.h"

#include <bit>

namespace tilewright {
namespace {

using test::Data;

class Fp8 : public test::RunTest {
 protected:
  /// The bits of to's elements, converted `size` at a time.
  std::vector<std::uint64_t> converted(Type from, Type to, int size,
                                       const std::vector<std::uint64_t>& bits) {
    auto count = static_cast<std::int64_t>(bits.size());
    Data in = test::vector_of(from, bits);
    Data out(to, {count});
    int threads = static_cast<int>(count) / size;
    run(
        {.threads = threads},
        [&](const Tensor& x, const Tensor& y) {
          Value first = thread_idx().x * size;
          store(y(first), load(x(first), size).to(to));
        },
        in, out);
    return out.bits;
  }
};

TEST_F(Fp8, WidensEveryCode) {
  for (Type type : {e4m3, e5m2}) {
    std::vector<std::uint64_t> codes(256);
    std::iota(codes.begin(), codes.end(), 0u);
    for (int size : {1, 2, 4, 8}) {
      std::vector<std::uint64_t> wide = converted(type, f32, size, codes);
      for (std::size_t c = 0; c < 256; ++c) {
        auto code = static_cast<std::uint8_t>(c);
        float expected = type == e4m3 ? e4m3_to_f32(code) : e5m2_to_f32(code);
        float got = std::bit_cast<float>(static_cast<std::uint32_t>(wide[c]));
        EXPECT_TRUE(got == expected || (got != got && expected != expected)) << c;
      }
    }
  }
}

TEST_F(Fp8, NarrowsToTheNearestEvenAndSaturates) {
  std::vector<std::uint64_t> numbers;
  for (std::uint32_t i = 0; i < 1016; ++i)
    numbers.push_back(i * 4227137u);  // signs, exponents and fractions of all kinds
  for (float x : {0x1p-10f, 15 * 0x1p-10f, 1.0625f, 464.0f, 464.1f, 1e9f, 61440.0f, -0.0f})
    numbers.push_back(std::bit_cast<std::uint32_t>(x));
  for (Type type : {e4m3, e5m2}) {
    for (int size : {1, 2, 4, 8}) {
      std::vector<std::uint64_t> some(numbers.end() - 512 * (size == 1 ? 1 : 2), numbers.end());
      std::vector<std::uint64_t> codes = converted(f32, type, size, some);
      for (std::size_t i = 0; i < some.size(); ++i) {
        float x = std::bit_cast<float>(static_cast<std::uint32_t>(some[i]));
        EXPECT_EQ(codes[i], type == e4m3 ? f32_to_e4m3(x) : f32_to_e5m2(x)) << x;
      }
    }
  }
}

}  // namespace
}  // namespace tilewright
