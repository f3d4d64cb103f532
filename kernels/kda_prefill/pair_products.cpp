// SPDX-License-Identifier: Apache-2.0
// The rounds of multiplications of pair_products().
#include "kernels/kda_prefill/pair_products.h"

#include "kernels/kda_prefill/lane_rows.h"
#include "tilewright/control.h"
#include "tilewright/mma.h"
#include "tilewright/sync.h"
#include "tilewright/thread.h"

namespace tilewright {
namespace {

constexpr int kBlockLevels = 4;  // log2 of kBlockRows

/// Sums of 16 x 16 pairs: two fragments of 16 x 8.
struct BlockSums {
  BlockSums() {
    left.fill(0.0f);
    right.fill(0.0f);
  }
  Fragment left{f32, 4}, right{f32, 4};
};
/// Of k's rows, and of q's.
struct PairSums {
  BlockSums k, q;
};

class Rounds {
 public:
  Rounds(const ChunkShape& shape, const ThreadRows& rows, const RowValues& values,
         const PairTargets& targets)
      : s_(shape),
        rows_(rows),
        v_(values),
        t_(targets),
        warps_(shape.k / 2 * shape.blocks() / 32),
        places_(shape, rows, 2 * shape.tokens),
        loader_(TensorSwizzle::b128) {}

  void run() const {
    int levels = kBlockLevels;
    for (int blocks = s_.blocks(); blocks > 1; blocks /= 2)
      ++levels;
    for (int level = levels - 1; level >= 0; level -= 2) {
      if (level < levels - 1) barrier();  // the round before has read the buffers
      write(level, 0);
      if (level > 0) write(level - 1, 1);
      barrier();
      int units = units_of(level), all = units + (level > 0 ? units_of(level - 1) : 0);
      for (int first = 0; first < all; first += warps_) {
        Value unit = warp_idx() + first;
        if_(unit < units, [&] {
          multiply(level, 0, unit.assume({1, 0, units - 1}));
        }).else_([&] {
          if (level == 0) return;
          if_(unit < all, [&] {
            multiply(level - 1, 1, (unit - units).assume({1, 0, all - units - 1}));
          });
        });
      }
    }
  }

 private:
  Tensor buffer(int which) const {
    return t_.tiles.at_offset(Int(which * 2 * s_.vectors_elems()),
                              make_row_major(Shape{2 * s_.vectors_elems()}));
  }

  void store_k(int which, int row, const Fragment& factor) const {
    store(places_.in(buffer(which), row), scaled_pair(v_.k, row, factor));
  }
  /// q's rows follow all of k's within a panel.
  Element q_place(int which, int row) const {
    Element place = places_.in(buffer(which), row);
    return {place.tensor(), place.offset() + Int(s_.tokens * 64), SourceLoc::here()};
  }
  void store_q(int which, int row, const Fragment& factor) const {
    store(q_place(which, row), scaled_pair(v_.q, row, factor));
  }

  /// Blocks of 16 x 16 that have pairs of a level.
  int units_of(int level) const {
    if (level < kBlockLevels) return s_.blocks();
    return s_.blocks() / 2 << (level - kBlockLevels);
  }

  void write(int level, int which) const {
    if (level < kBlockLevels) return write_in_blocks(level, which);
    write_blocks(level - kBlockLevels, which);
  }

  /// Operands for tokens of different blocks, whose numbers differ first in bit `bit`.
  void write_blocks(int bit, int which) const {
    Value upper = ((rows_.block >> bit) & 1) == 1;
    Fragment first = to_middle(bit);
    if_(upper, [&] {
      decays_from_start(v_, first, 0, kBlockRows, [&](int row, const Fragment& factor) {
        store_k(which, row, factor);
        store_q(which, row, factor);
      });
    }).else_([&] {
      decays_to_end(v_, first, 0, kBlockRows,
                    [&](int row, const Fragment& factor) { store_k(which, row, factor); });
    });
  }

  /// The decays of the blocks between the thread's own and the middle of its two sides: of at most
  /// one, as there are at most four blocks.
  Fragment to_middle(int bit) const {
    Fragment factor = pair_of(constant(f32, 1.0f), constant(f32, 1.0f));
    if (bit == 0) return factor;
    Value outer = rows_.block == 0 || rows_.block == 3;
    Fragment total = load(t_.totals(rows_.block ^ 1, rows_.channel), 2);
    factor[0] = select(outer, total[0].get(), 1.0f);
    factor[1] = select(outer, total[1].get(), 1.0f);
    return factor;
  }

  /// Operands for tokens of one block, whose numbers in it differ first in bit `level`.
  void write_in_blocks(int level, int which) const {
    int half = 1 << level;
    Fragment one = pair_of(constant(f32, 1.0f), constant(f32, 1.0f));
    Fragment zero(s_.operand(), 2);
    for (int begin = 0; begin < kBlockRows; begin += 2 * half) {
      decays_to_end(v_, one, begin, begin + half, [&](int row, const Fragment& factor) {
        store_k(which, row, factor);
        // Read, but of no pair: what a buffer holds from such a level before does, too.
        if (level >= kBlockLevels - 2) store(q_place(which, row), zero);
      });
      decays_from_start(v_, one, begin + half, begin + 2 * half,
                        [&](int row, const Fragment& factor) {
                          store_k(which, row, factor);
                          store_q(which, row, factor);
                        });
    }
  }

  void multiply(int level, int which, const Value& unit) const {
    if (level < kBlockLevels) {
      PairSums sums = product(which, unit, unit);
      return store_in_block(level, sums, unit);
    }
    int half = 1 << (level - kBlockLevels);  // blocks of either side
    Value side = unit / (half * half), in_side = unit % (half * half);
    Value upper = in_side / half, lower = in_side % half;
    Value i = side * (2 * half) + half + upper, j = side * (2 * half) + lower;
    PairSums sums = product(which, i, j);
    store_block(half, sums, {i, j, side, upper, lower});
  }

  /// Sums for rows of block i and of block j of k.
  PairSums product(int which, const Value& i, const Value& j) const {
    constexpr int kPanel = 64;  // columns; a loop over panels holds fewer operands at once
    int rows = 2 * s_.tokens;
    MatrixTile operands(buffer(which), rows, s_.k, TensorSwizzle::b128);
    PairSums sums;
    for_(s_.k / kPanel, [&](const Value& panel) {
      // A panel's rows follow all of the panel's before it.
      auto row = [&](const Value& first) { return to_int(first + panel * rows); };
      Int k_row = row(row_of(i)), q_row = row(row_of(i) + s_.tokens), other = row(row_of(j));
      for (int k = 0; k < kPanel; k += 16) {
        Fragment b = loader_.b(operands, other, k);
        if (t_.coupling) {
          Fragment a = loader_.a(operands, k_row, k);
          mma(sums.k.left, a, b.part(0, 4));
          mma(sums.k.right, a, b.part(4, 4));
        }
        Fragment c = loader_.a(operands, q_row, k);
        mma(sums.q.left, c, b.part(0, 4));
        mma(sums.q.right, c, b.part(4, 4));
      }
    });
    return sums;
  }

  Value row_of(const Value& block) const {
    return (block * kBlockRows).assume({kBlockRows, 0, s_.tokens - kBlockRows});
  }

  static Value lane_row() { return lane_idx() / 4; }
  static Value lane_column() { return lane_idx() % 4 * 2; }

  /// A lane's pair of sums in row g of `upper` half and columns 2 t of `right` half, to L and P.
  /// `diagonal` says that it may lie on the diagonal of the matrix.
  struct Pair {
    Fragment k, q;
    Value row, column;  ///< in the block
  };
  static Pair pair_of_sums(const PairSums& sums, int upper, int right) {
    const Fragment& k = right == 0 ? sums.k.left : sums.k.right;
    const Fragment& q = right == 0 ? sums.q.left : sums.q.right;
    return {k.part(2 * upper, 2), q.part(2 * upper, 2), lane_row() + 8 * upper,
            lane_column() + 8 * right};
  }

  void store_attention(const Value& i, const Value& j, const Pair& pair) const {
    Value row = (row_of(i) + pair.row).assume({1, 0, s_.tokens - 1});
    Value column = (row_of(j) + pair.column).assume({2, 0, s_.tokens - 2});
    store(t_.attention.element(row, column), pair.q.to(s_.operand()));
  }
  Value beta(const Value& i, const Pair& pair) const {
    return t_.beta(row_of(i) + pair.row).load();
  }

  /// Which block below the diagonal: (i, j) of the matrix, (upper, lower) of its two sides.
  struct Place {
    Value i, j, side, upper, lower;
  };
  void store_block(int half, const PairSums& sums, const Place& at) const {
    for (int upper = 0; upper < 2; ++upper) {
      for (int right = 0; right < 2; ++right) {
        Pair pair = pair_of_sums(sums, upper, right);
        store_attention(at.i, at.j, pair);
        if (t_.coupling) store_coupling(half, pair, at);
      }
    }
  }

  void store_coupling(int half, const Pair& pair, const Place& at) const {
    const MatrixTile& tile = half == 1 ? *t_.coupling->beside : *t_.coupling->corner;
    Value first = half == 1 ? at.side * kBlockRows : at.upper * kBlockRows;
    Value row = (first + pair.row).assume({1, 0, tile.rows() - 1});
    Value column = (at.lower * kBlockRows + pair.column).assume({2, 0, tile.columns() - 2});
    store(tile.element(row, column), (pair.k * beta(at.i, pair)).to(f16));
  }

  /// The pairs of a level in a block on the diagonal. In the highest these are rows 8 to 15 with
  /// columns 0 to 7; else both are in the first or both in the second half, and a lane's two
  /// columns are pairs of one level, but for the lowest, which takes the diagonal too and zeros
  /// above it.
  void store_in_block(int level, const PairSums& sums, const Value& block) const {
    if (level == kBlockLevels - 1) {
      store_diagonal_pair(pair_of_sums(sums, 1, 0), block);
      return;
    }
    Value row = lane_row(), column = lane_column();
    Value differing = row ^ column;  // of eight rows and columns
    Value mine = level == 0 ? column + 1 >= row
                            : row > column && differing >= (1 << level) && differing < (2 << level);
    for (int half = 0; half < 2; ++half) {
      Pair pair = pair_of_sums(sums, half, half);
      if (level == 0) finish_diagonal(pair, block);
      if_(mine, [&] { store_diagonal_pair(pair, block); });
    }
  }

  void store_diagonal_pair(const Pair& pair, const Value& block) const {
    store_attention(block, block, pair);
    if (!t_.coupling) return;
    store(t_.coupling->diagonal(row_of(block) + pair.row, pair.column), pair.k * beta(block, pair));
  }

  void finish_diagonal(const Pair& pair, const Value& block) const {
    Value same = t_.diagonal(row_of(block) + pair.row).load();
    for (int e = 0; e < 2; ++e) {
      Value column = pair.column + e;
      Value below = column < pair.row;
      pair.k[e] = select(below, pair.k[e].get(), 0.0f);
      pair.q[e] = select(below, pair.q[e].get(), select(column == pair.row, same, 0.0f));
    }
  }

  const ChunkShape& s_;
  const ThreadRows& rows_;
  const RowValues& v_;
  const PairTargets& t_;
  int warps_;
  PairPlaces places_;
  OperandLoader loader_;
};

}  // namespace

void pair_products(const ChunkShape& shape, const ThreadRows& rows, const RowValues& values,
                   const PairTargets& targets) {
  Rounds(shape, rows, values, targets).run();
}

}  // namespace tilewright
