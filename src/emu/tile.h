// SPDX-License-Identifier: Apache-2.0
// Matrices taken out of the registers of a warp, multiplied, and put back.
#pragma once

#include "emu/grid.h"
#include "emu/number.h"

#include <cstdint>
#include <vector>

namespace tilewright::emu::detail {

struct Tile {
  int rows = 0, cols = 0;
  std::vector<double> value;
  std::vector<std::uint8_t> defined;

  Tile(int r, int c)
      : rows(r),
        cols(c),
        value(static_cast<std::size_t>(r) * static_cast<std::size_t>(c)),
        defined(value.size(), 1) {}
  std::size_t at(int r, int c) const {
    return static_cast<std::size_t>(r) * static_cast<std::size_t>(cols) +
           static_cast<std::size_t>(c);
  }
};

/// How element types multiply and accumulate.
struct Arithmetic {
  Element a, b, c, d;
  bool saturate = false;
  bool bits_xor = false;  ///< counts bits that differ instead of adding products
};

/// d = a * b + c by the arithmetic of ptx/semantics/matrix.h.
Tile multiply(const Tile& a, const Tile& b, const Tile& c, const Arithmetic& how);

}  // namespace tilewright::emu::detail
