// SPDX-License-Identifier: Apache-2.0
// Structured sparse operands: which columns the kept elements of A belong to.
#pragma once

#include "emu/grid.h"
#include "emu/number.h"

#include <array>

namespace tilewright::emu::detail {

/// What a sparse instruction says of its A, of k columns, half of them kept.
struct SparseOperand {
  Element a;
  int k = 0;
  int selector = 0;      ///< which lanes of a group of four hold the metadata
  bool ordered = false;  ///< indices ascend
};

/// The metadata bits of 16 rows, lowest first, gathered from the lanes of a warp.
using SparseRows = std::array<std::uint64_t, 16>;
SparseRows sparse_rows(const Exec& x, const Slot& metadata, const SparseOperand& how);

/// The column of the kept element number `kept` of a row.
int sparse_column(const SparseOperand& how, std::uint64_t row, int kept);

/// Reports metadata that the manual leaves undefined, once.
void check_sparse_rows(Exec& x, const SparseRows& rows, const SparseOperand& how);

}  // namespace tilewright::emu::detail
