// SPDX-License-Identifier: Apache-2.0
// Quotients and remainders by constants, around multiples of them and at the ends of the types.
#include "reference.h"
#include "run_fixture.h"

#include <limits>

namespace tilewright::test {
namespace {

constexpr std::int64_t kDivisors[] = {2,  3,  4,   128, 1 << 30, 5,    6,    7,    9,
                                      11, 56, 100, 224, 641,     1000, 7168, 65537};

std::int64_t largest(Type type) {
  return bits(type) == 64 ? std::numeric_limits<std::int64_t>::max()
                          : std::numeric_limits<std::int32_t>::max();
}

/// Around small, middling and the largest multiples of d, and the type's ends.
std::vector<std::int64_t> dividends(Type type, std::int64_t d) {
  const std::int64_t most = largest(type);
  std::vector<std::int64_t> numbers{0, most, -most, -most - 1};
  for (std::int64_t k : {std::int64_t{1}, std::int64_t{2}, most / d / 3, most / d}) {
    if (k > most / d) continue;
    for (std::int64_t off : {-1, 0, 1}) {
      if (off > 0 && k * d > most - off) continue;
      numbers.push_back(k * d + off);
      numbers.push_back(-(k * d + off));
    }
  }
  return numbers;
}

class ConstantDivision : public RunTest {
 protected:
  /// Facts know that there is no sign where it is cleared.
  void check(Type type, std::int64_t d, bool clear_sign) {
    const std::vector<std::int64_t> numbers = dividends(type, d);
    std::vector<std::uint64_t> raw;
    raw.reserve(numbers.size());
    for (std::int64_t n : numbers)
      raw.push_back(cut(type, static_cast<std::uint64_t>(n)));
    Data in = vector_of(type, raw);
    Data out(type, {2, static_cast<std::int64_t>(numbers.size())});
    auto body = [&](const Tensor& source, const Tensor& destination) {
      Value i = thread_idx().x;
      Value n = source(i);
      Value dividend = clear_sign ? n & largest(type) : n;
      destination(0, i) = dividend / constant(type, d);
      destination(1, i) = dividend % constant(type, d);
    };
    run({.threads = static_cast<int>(numbers.size())}, body, in, out);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const std::int64_t n = clear_sign ? numbers[i] & largest(type) : numbers[i];
      EXPECT_EQ(as_signed(type, out.bits[i]), n / d) << name(type) << " " << n << " / " << d;
      EXPECT_EQ(as_signed(type, out.bits[numbers.size() + i]), n % d)
          << name(type) << " " << n << " % " << d;
    }
  }
};

TEST_F(ConstantDivision, IsExactOverTheWholeRange) {
  for (Type type : {s32, s64}) {
    for (std::int64_t d : kDivisors) {
      check(type, d, false);
      check(type, d, true);
    }
    check(type, largest(type), false);
    check(type, largest(type) / 2 + 2, true);
  }
}

}  // namespace
}  // namespace tilewright::test
