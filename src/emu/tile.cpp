// SPDX-License-Identifier: Apache-2.0
// Multiplies matrices as tensor cores do, within the manual's freedom.
#include "emu/tile.h"

#include <cmath>

namespace tilewright::emu::detail {

Tile multiply(const Tile& a, const Tile& b, const Tile& c, const Arithmetic& how) {
  Tile d(c.rows, c.cols);
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
      const bool exact = how.d.type == Type::f64;
      double sum = exact ? c.value[c.at(r, n)] : 0;
      for (int k = 0; k < a.cols; ++k) {
        const double x = a.value[a.at(r, k)], y = b.value[b.at(k, n)];
        if (how.bits_xor) {
          sum += x != y ? 1 : 0;
        } else if (exact) {
          sum = std::fma(x, y, sum);
        } else {
          sum += x * y;
        }
      }
      d.value[d.at(r, n)] = exact ? sum : sum + c.value[c.at(r, n)];
      d.defined[d.at(r, n)] = row_good[static_cast<std::size_t>(r)] &
                              col_good[static_cast<std::size_t>(n)] & c.defined[c.at(r, n)];
    }
  }
  return d;
}

}  // namespace tilewright::emu::detail
