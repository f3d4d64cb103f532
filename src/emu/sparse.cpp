// SPDX-License-Identifier: Apache-2.0
// PTX ISA, "Sparse matrix storage" and the metadata figures of mma.sp and wgmma.mma_async.sp.
#include "emu/sparse.h"

#include "emu/report.h"

#include <algorithm>

namespace tilewright::emu::detail {

namespace {

/// Elements that one index moves (4-bit ones go in pairs), the bits of an index, and the
/// elements of a chunk. tf32 keeps one of two and spends four bits on it; others two of four.
struct Format {
  int unit, width, chunk;
};
Format format_of(Element a) {
  if (a.type == Type::tf32) return {1, 4, 2};
  return a.bits == 4 ? Format{2, 2, 8} : Format{1, 2, 4};
}

int bits_of_row(const SparseOperand& how) {
  const Format f = format_of(how.a);
  return how.k / 2 / f.unit * f.width;
}

std::uint64_t index_of(const SparseOperand& how, std::uint64_t row, int kept) {
  const Format f = format_of(how.a);
  return row >> (kept / f.unit * f.width) & ((1U << f.width) - 1);
}

/// tf32: 0b0100 is the lower element, 0b1110 the upper one.
bool is_defined(const SparseOperand& how, std::uint64_t row, int kept) {
  const std::uint64_t index = index_of(how, row, kept);
  if (how.a.type == Type::tf32) return index == 0b0100 || index == 0b1110;
  const int unit = format_of(how.a).unit;
  if (kept / unit % 2 == 0) return true;
  const std::uint64_t before = index_of(how, row, kept - unit);
  return how.ordered ? before < index : before != index;
}

}  // namespace

SparseRows sparse_rows(const Exec& x, const Slot& metadata, const SparseOperand& how) {
  const int count = bits_of_row(how);
  const bool halves = how.a.bits >= 16;  // a register: 16 bits for row g and 16 for row g + 8
  const int lanes = count / 16;          // of a group of four: 32 bits each for two rows
  SparseRows rows{};
  for (int row = 0; row < 16; ++row) {
    for (int i = 0; i < lanes; ++i) {
      const int lane = row % 8 * 4 + lanes * how.selector % 4 + i;
      const std::uint64_t word = x.value(metadata, static_cast<unsigned>(lane));
      auto& bits = rows[static_cast<std::size_t>(row)];
      if (halves) {
        bits |= (word >> (row / 8 * 16) & 0xffff) << (16 * i);
      } else if (i % 2 == row / 8) {
        bits |= word << (i / 2 * 32);
      }
    }
  }
  return rows;
}

int sparse_column(const SparseOperand& how, std::uint64_t row, int kept) {
  const Format f = format_of(how.a);
  const int chunk = kept / (f.chunk / 2) * f.chunk;
  const std::uint64_t index = index_of(how, row, kept);
  if (how.a.type == Type::tf32) return chunk + static_cast<int>(index >> 3);
  return chunk + static_cast<int>(index) * f.unit + kept % f.unit;
}

void check_sparse_rows(Exec& x, const SparseRows& rows, const SparseOperand& how) {
  for (std::size_t row = 0; row < rows.size(); ++row) {
    for (int kept = 0; kept < how.k / 2; ++kept) {
      if (is_defined(how, rows[row], kept)) continue;
      report(x, {.kind = Kind::illegal_instruction,
                 .severity = Severity::undefined,
                 .lane = static_cast<unsigned>(row % 8 * 4),
                 .message = "has metadata " + hex(rows[row]) + " for row " + std::to_string(row) +
                            ", which does not keep " +
                            (how.a.type == Type::tf32 ? "one of two elements"
                             : how.ordered            ? "two different elements in order"
                                                      : "two different elements"),
                 .range = {},
                 .other = {}});
      return;
    }
  }
}

}  // namespace tilewright::emu::detail
