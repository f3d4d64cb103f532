// SPDX-License-Identifier: Apache-2.0
// Multiplies matrices as tensor cores do, within the manual's freedom.
#include "emu/tile.h"

#include "ptx/semantics/matrix.h"

#include <algorithm>

namespace tilewright::emu::detail {

namespace {

namespace sem = ptx::semantics;

template <class T>
std::vector<T> values_of(const Tile& tile) {
  std::vector<T> out(tile.value.size());
  std::ranges::transform(tile.value, out.begin(), [](double v) { return static_cast<T>(v); });
  return out;
}

/// Bits that differ, added up.
void count_differences(const Tile& a, const Tile& b, const Tile& c, Tile& d) {
  for (int r = 0; r < a.rows; ++r) {
    for (int n = 0; n < b.cols; ++n) {
      double sum = c.value[c.at(r, n)];
      for (int k = 0; k < a.cols; ++k)
        sum += a.value[a.at(r, k)] != b.value[b.at(k, n)] ? 1 : 0;
      d.value[d.at(r, n)] = sum;
    }
  }
}

void multiply_values(const Tile& a, const Tile& b, const Tile& c, const Arithmetic& how, Tile& d) {
  const sem::MatrixExtent extent{a.rows, b.cols, a.cols};
  if (how.bits_xor) {
    count_differences(a, b, c, d);
  } else if (how.d.type == Type::f64) {
    sem::multiply_add(extent, a.value.data(), b.value.data(), c.value.data(), d.value.data());
  } else if (how.d.type == Type::s32) {
    std::vector<std::int32_t> sum = values_of<std::int32_t>(c);
    sem::multiply_add(extent, values_of<std::int32_t>(a).data(), values_of<std::int32_t>(b).data(),
                      sum.data(), sum.data(),
                      how.saturate ? sem::IntegerOverflow::saturate : sem::IntegerOverflow::wrap);
    std::ranges::copy(sum, d.value.begin());
  } else {
    std::vector<float> sum = values_of<float>(c);
    sem::multiply_add(extent, values_of<float>(a).data(), values_of<float>(b).data(), sum.data(),
                      sum.data());
    std::ranges::copy(sum, d.value.begin());
  }
}

/// An element is defined if its row of a, its column of b, and its element of c are.
void mark_defined(const Tile& a, const Tile& b, const Tile& c, Tile& d) {
  std::vector<std::uint8_t> row_good(static_cast<std::size_t>(a.rows), 1);
  std::vector<std::uint8_t> col_good(static_cast<std::size_t>(b.cols), 1);
  for (int r = 0; r < a.rows; ++r) {
    for (int k = 0; k < a.cols; ++k)
      row_good[static_cast<std::size_t>(r)] &= a.defined[a.at(r, k)];
  }
  for (int k = 0; k < b.rows; ++k) {
    for (int n = 0; n < b.cols; ++n)
      col_good[static_cast<std::size_t>(n)] &= b.defined[b.at(k, n)];
  }
  for (int r = 0; r < a.rows; ++r) {
    for (int n = 0; n < b.cols; ++n) {
      d.defined[d.at(r, n)] = row_good[static_cast<std::size_t>(r)] &
                              col_good[static_cast<std::size_t>(n)] & c.defined[c.at(r, n)];
    }
  }
}

}  // namespace

Tile multiply(const Tile& a, const Tile& b, const Tile& c, const Arithmetic& how) {
  Tile d(c.rows, c.cols);
  multiply_values(a, b, c, how, d);
  mark_defined(a, b, c, d);
  return d;
}

}  // namespace tilewright::emu::detail
