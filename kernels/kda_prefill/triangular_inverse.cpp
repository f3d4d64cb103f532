// SPDX-License-Identifier: Apache-2.0
// Forward substitution in blocks of 16, then inverses of twice the size from their halves.
#include "kernels/kda_prefill/triangular_inverse.h"

#include "tilewright/control.h"
#include "tilewright/mma.h"
#include "tilewright/sync.h"
#include "tilewright/thread.h"

#include <vector>

namespace tilewright {
namespace {

constexpr int kBlock = 16;

/// Calls body(unit) for units in turn over the warps.
template <class Body>
void each_unit(int units, int warps, Body&& body) {
  for (int first = 0; first < units; first += warps) {
    Value unit = warp_idx() + first;
    if_(unit < units, [&] { body(unit.assume({1, 0, units - 1})); });
  }
}

/// Lane j of a warp has column j of a block's inverse. The upper lanes write the zeros of the block
/// beside it, which a step to twice the size reads.
void solve_block(const LowerBlocks& lower, const InverseTargets& targets, const Value& block,
                 bool alone) {
  Value first = block * kBlock, lane = lane_idx(), column = lane % kBlock;
  std::vector<Value> x;
  for (int i = 0; i < kBlock; ++i) {
    Value unit = select(column == i, 1.0f, 0.0f);
    if (i == 0) {
      x.push_back(unit);
      continue;
    }
    Fragment row = load(lower.diagonal(first + i, 0), (i + 3) / 4 * 4);
    // Two chains, of the even and the odd columns.
    Var even(unit), odd(-row[0].get() * x[0]);
    for (int j = 1; j < i; ++j) {
      Var& sum = j % 2 == 0 ? odd : even;
      sum = fma(-row[j].get(), x[static_cast<std::size_t>(j)], sum);
    }
    x.push_back(even + odd);
  }
  Value factor = targets.factors(first + column).load();
  Value solves = lane < kBlock;
  auto at = [&](const Value& place, int size) { return place.assume({1, 0, size - 1}); };
  for (int i = 0; i < kBlock; ++i) {
    const Value& own = x[static_cast<std::size_t>(i)];
    Value row = at(first + i, targets.to.rows());
    if_(solves, [&] {
      targets.to.element(row, at(first + column, targets.to.columns())) = (own * factor).to(f16);
    });
    if (alone) continue;
    // Lane l of an even block has column l of its pair, one of an odd block column 16 + l % 16.
    Value odd = block % 2 == 1;
    Value place = select(odd, kBlock + column, lane);
    if_(solves || !odd, [&] {
      targets.halves.element(row, at(place, 2 * kBlock)) = select(solves, own, 0.0f).to(f16);
    });
  }
}

/// A pair of inverses of `half` rows, one below the other, and 16 columns of what comes below them.
struct Join {
  int half = 0;
  Value first;   ///< row of the upper half
  Value column;  ///< of its columns
};

/// sums [16, rows of b] += a times b's rows, of 16 columns from `column` on.
void multiply_rows(const Fragment& sums, const Fragment& a, const MatrixTile& b, int column) {
  for (int row = 0; row < b.rows(); row += kBlock) {
    Fragment pair = load_matrix_b(b, row, column);
    mma(sums.part(row / 2, 4), a, pair.part(0, 4));
    mma(sums.part(row / 2 + 4, 4), a, pair.part(4, 4));
  }
}

/// [[A, 0], [L, B]]^-1 has -B^-1 L A^-1 below its diagonal: here columns of it, as rows.
Fragment joined(const Join& join, const MatrixTile& link, const MatrixTile& halves) {
  MatrixTile upper = halves.part(join.first, join.half).transposed();
  Value second = (join.first + join.half).assume({kBlock, 0, halves.rows() - join.half});
  MatrixTile lower = halves.part(second, join.half);
  // While halves are of 16, the lower one lies in the right part of its rows.
  int right = join.half == kBlock ? kBlock : 0;
  Fragment linked(f32, join.half / 2), sums(f32, join.half / 2);
  linked.fill(0.0f);
  sums.fill(0.0f);
  for (int k = 0; k < join.half; k += kBlock)
    multiply_rows(linked, load_matrix_a(upper, join.column, k), link, k);
  Fragment operand = linked.to(f16);
  for (int k = 0; k < join.half; k += kBlock)
    multiply_rows(sums, operand.part(k / 2, 8), lower, right + k);
  return map(sums, [](const Value& x) { return -x; });
}

/// The row of 16 bytes of `tile` that a lane names for a transposing store of 16 x 16: row `row`
/// on, column `column` on.
Element matrix_row(const MatrixTile& tile, const Value& row, const Value& column) {
  Value lane = lane_idx();
  Value r = (row + lane / 16 * 8 + lane % 8).assume({1, 0, tile.rows() - 1});
  Value c = (column + lane / 8 % 2 * 8).assume({8, 0, tile.columns() - 8});
  return tile.element(r, c);
}

void store_columns(const MatrixTile& tile, const Value& row, const Value& column,
                   const Fragment& columns) {
  for (int i = 0; i < columns.size() / 8; ++i) {
    stmatrix(matrix_row(tile, row + i * kBlock, column), columns.part(8 * i, 8), Transposed::yes);
  }
}

}  // namespace

void triangular_inverse(const LowerBlocks& lower, const InverseTargets& targets, int n, int warps) {
  each_unit(n / kBlock, warps,
            [&](const Value& block) { solve_block(lower, targets, block, n == kBlock); });
  for (int half = kBlock; half < n; half *= 2) {
    barrier();
    int parts = half / kBlock;
    each_unit(n / (2 * half) * parts, warps, [&](const Value& unit) {
      Value side = unit / parts, column = unit % parts * kBlock;
      Join join{half,
                (side * (2 * half)).assume({std::int64_t{2} * half, 0, n - std::int64_t{2} * half}),
                column.assume({kBlock, 0, half - kBlock})};
      MatrixTile link =
          half == kBlock
              ? lower.beside->part((side * kBlock).assume({kBlock, 0, n / 2 - kBlock}), kBlock)
              : *lower.corner;
      Fragment columns = joined(join, link, targets.halves);
      if (2 * half < n)
        store_columns(targets.halves, join.first + half, join.column, columns.to(f16));
      Value first = join.first + join.column + lane_idx() / 4;
      Value factors[2] = {targets.factors(first).load(), targets.factors(first + 8).load()};
      for (int e = 0; e < columns.size(); ++e)
        columns[e] = columns[e].get() * factors[e / 2 % 2];
      store_columns(targets.to, join.first + half, join.first + join.column, columns.to(f16));
    });
  }
}

}  // namespace tilewright
