// SPDX-License-Identifier: Apache-2.0
// Matrix products against plain loops.
#include "ptx/semantics/matrix.h"

#include <gtest/gtest.h>
#include <random>
#include <vector>

namespace tilewright::ptx::semantics {
namespace {

TEST(SemanticsMatrix, SumsInOrderOfK) {
  std::mt19937 random(4);
  for (const MatrixExtent extent :
       {MatrixExtent{16, 8, 16}, MatrixExtent{64, 72, 16}, MatrixExtent{3, 5, 7}}) {
    const auto size = [](int rows, int columns) {
      return static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns);
    };
    std::vector<float> a(size(extent.m, extent.k)), b(size(extent.k, extent.n)),
        c(size(extent.m, extent.n));
    for (auto* values : {&a, &b, &c}) {
      for (float& x : *values)
        x = static_cast<float>(static_cast<int>(random() % 2047) - 1023) / 64.0f;
    }
    std::vector<float> d = c;
    multiply_add(extent, a.data(), b.data(), d.data(), d.data());
    for (int i = 0; i < extent.m; ++i) {
      for (int j = 0; j < extent.n; ++j) {
        const auto at = static_cast<std::size_t>(i * extent.n + j);
        volatile float sum = c[at];
        for (int k = 0; k < extent.k; ++k) {
          sum = sum + a[static_cast<std::size_t>(i * extent.k + k)] *
                          b[static_cast<std::size_t>(k * extent.n + j)];
        }
        ASSERT_EQ(d[at], sum) << i << "," << j;
      }
    }
  }
}

TEST(SemanticsMatrix, IntegersWrapOrSaturate) {
  const std::int32_t a[] = {127, 127}, b[] = {127, 127}, c[] = {0x7fffffff};
  std::int32_t d[1];
  multiply_add({1, 1, 2}, a, b, c, d, IntegerOverflow::wrap);
  EXPECT_EQ(d[0], static_cast<std::int32_t>(0x7fffffffu + 2u * 127 * 127));
  multiply_add({1, 1, 2}, a, b, c, d, IntegerOverflow::saturate);
  EXPECT_EQ(d[0], 0x7fffffff);
}

TEST(SemanticsMatrix, DoublesFuse) {
  const double a[] = {1.0 + 0x1p-52}, b[] = {1.0 + 0x1p-52}, c[] = {-1.0 - 0x1p-51};
  double d[1];
  multiply_add({1, 1, 1}, a, b, c, d);
  EXPECT_EQ(d[0], 0x1p-104);
}

}  // namespace
}  // namespace tilewright::ptx::semantics
