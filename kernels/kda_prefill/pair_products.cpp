// SPDX-License-Identifier: Apache-2.0
// The rounds of multiplications of pair_products().
#include "kernels/kda_prefill/pair_products.h"

#include "tilewright/control.h"
#include "tilewright/inline_ptx.h"
#include "tilewright/mma.h"
#include "tilewright/sync.h"
#include "tilewright/thread.h"

namespace tilewright {
namespace {

constexpr int kBlockLevels = 4;  // log2 of kBlockRows

/// Sums of 16 x 16 pairs: two fragments of 16 x 8.
struct BlockSums {
  Fragment left{f32, 4}, right{f32, 4};
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
        places_(shape, rows, 2 * shape.tokens) {}

  void run() const {
    int levels = kBlockLevels;
    for (int blocks = s_.blocks(); blocks > 1; blocks /= 2)
      ++levels;
    for (int level = levels - 1; level >= kBlockLevels; --level)
      block_round(level - kBlockLevels, level % 2);
    in_blocks();
  }

 private:
  Tensor buffer(int which) const {
    return t_.tiles.at_offset(Int(which * 2 * s_.vectors_elems()),
                              make_row_major(Shape{2 * s_.vectors_elems()}));
  }
  MatrixTile tile(int which) const {
    return {buffer(which), 2 * s_.tokens, s_.k, TensorSwizzle::b128};
  }

  template <class Body>
  void each_unit(int units, Body&& body) const {
    for (int first = 0; first < units; first += warps_) {
      Value unit = warp_idx() + first;
      if (first + warps_ <= units) {
        body(unit.assume({1, 0, units - 1}));
      } else {
        if_(unit < units, [&] { body(unit.assume({1, 0, units - 1})); });
      }
    }
  }

  void store_k(int which, int row, const Fragment& factor) const {
    store(places_.in(buffer(which), row), scaled_pair(v_.k, row, factor));
  }
  void store_q(int which, int row, const Fragment& factor) const {
    Element place = places_.in(buffer(which), row);
    // q's rows follow all of k's within a panel.
    store(Element(place.tensor(), place.offset() + Int(s_.tokens * 64), SourceLoc::here()),
          scaled_pair(v_.q, row, factor));
  }

  /// Sums for rows of block i of k (which = 0) or q (1) and of block j of k.
  BlockSums product(int which_buffer, const Value& which, const Value& i, const Value& j) const {
    MatrixTile operands = tile(which_buffer);
    int last = s_.tokens - kBlockRows;
    Value row = ((which * s_.blocks() + i) * kBlockRows).assume({kBlockRows, 0, s_.tokens + last});
    Value other = (j * kBlockRows).assume({kBlockRows, 0, last});
    BlockSums sums;
    sums.left.fill(0.0f);
    sums.right.fill(0.0f);
    for (int k = 0; k < s_.k; k += 16) {
      Fragment a = load_matrix_a(operands, row, k);
      Fragment b = load_matrix_b(operands, other, k);
      mma(sums.left, a, b.part(0, 4));
      mma(sums.right, a, b.part(4, 4));
    }
    return sums;
  }

  /// Pairs of tokens of different blocks, whose numbers differ first in bit `bit`.
  void block_round(int bit, int which_buffer) const {
    Value upper = ((rows_.block >> bit) & 1) == 1;
    Fragment first = to_middle(bit);
    if_(upper, [&] {
      decays_from_start(v_.decay, first, 0, kBlockRows, [&](int row, const Fragment& factor) {
        store_k(which_buffer, row, factor);
        store_q(which_buffer, row, factor);
      });
    }).else_([&] {
      decays_to_end(v_.decay, first, 0, kBlockRows,
                    [&](int row, const Fragment& factor) { store_k(which_buffer, row, factor); });
    });
    barrier();
    int half = 1 << bit;  // blocks of either side
    int sides = s_.blocks() / (2 * half);
    each_unit(2 * sides * half * half, [&](const Value& unit) {
      Value pair = unit / 2;
      Value side = pair / (half * half), in_side = pair % (half * half);
      Value i = side * (2 * half) + half + in_side / half, j = side * (2 * half) + in_side % half;
      store_sums(product(which_buffer, unit % 2, i, j), unit % 2, i, j);
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

  /// Pairs of tokens of one block.
  void in_blocks() const {
    int units = 2 * s_.blocks();
    std::vector<BlockSums> kept(static_cast<std::size_t>((units + warps_ - 1) / warps_));
    for (int level = kBlockLevels - 1; level >= 0; --level) {
      write_level(level);
      barrier();
      for (std::size_t i = 0; i < kept.size(); ++i) {
        Value unit = (warp_idx() + static_cast<int>(i) * warps_).assume({1, 0, units - 1});
        keep(level, product(level % 2, unit % 2, unit / 2, unit / 2), kept[i]);
      }
    }
    for (std::size_t i = 0; i < kept.size(); ++i) {
      Value unit = (warp_idx() + static_cast<int>(i) * warps_).assume({1, 0, units - 1});
      finish_diagonal(kept[i], unit % 2, unit / 2);
      store_sums(kept[i], unit % 2, unit / 2, unit / 2);
    }
  }

  /// Operands for pairs whose numbers in the block differ first in bit `level`.
  void write_level(int level) const {
    int half = 1 << level;
    Fragment one = pair_of(constant(f32, 1.0f), constant(f32, 1.0f));
    Fragment zero(f16, 2);
    for (int begin = 0; begin < kBlockRows; begin += 2 * half) {
      decays_to_end(v_.decay, one, begin, begin + half, [&](int row, const Fragment& factor) {
        store_k(level % 2, row, factor);
        if (level >= kBlockLevels - 2) store_q(level % 2, row, zero);  // read, but of no pair
      });
      decays_from_start(v_.decay, one, begin + half, begin + 2 * half,
                        [&](int row, const Fragment& factor) {
                          store_k(level % 2, row, factor);
                          store_q(level % 2, row, factor);
                        });
    }
  }

  /// Takes the sums of a level's pairs. In the highest these are rows 8 to 15 with columns 0 to 7,
  /// else both are in the first or both in the second half.
  void keep(int level, const BlockSums& sums, const BlockSums& kept) const {
    if (level == kBlockLevels - 1) {
      kept.left[2] = sums.left[2];
      kept.left[3] = sums.left[3];
      kept.right[0] = constant(f32, 0.0f);
      kept.right[1] = constant(f32, 0.0f);
      return;
    }
    for (int e = 0; e < 2; ++e) {
      bool first = level == kBlockLevels - 2;
      Value mine = differing(e) < (2 << level);
      auto take = [&](const Fragment& to, const Fragment& from, int element) {
        Value sum = from[element].get();
        to[element] = first ? sum : select(mine, sum, to[element].get());
      };
      take(kept.left, sums.left, e);
      take(kept.right, sums.right, 2 + e);
    }
  }

  static Value lane_row() { return lane_idx() / 4; }
  static Value lane_column(int e) { return lane_idx() % 4 * 2 + e; }
  /// The bits in which a lane's row and column e differ, modulo 8.
  static Value differing(int e) { return lane_row() ^ lane_column(e); }

  /// The diagonal itself, of q alone, and zeros above it.
  void finish_diagonal(const BlockSums& kept, const Value& which, const Value& block) const {
    Value row = block * kBlockRows + lane_row();
    for (int e = 0; e < 2; ++e) {
      Value above = lane_row() < lane_column(e), on = lane_row() == lane_column(e);
      auto finish = [&](const Fragment& sums, int element, int first_row) {
        Value same = t_.diagonal(row + first_row).load();
        Value diagonal = select(which == 1, same, 0.0f);
        sums[element] = select(above, 0.0f, select(on, diagonal, sums[element].get()));
      };
      finish(kept.left, e, 0);
      finish(kept.right, 2 + e, 8);
    }
  }

  /// To L or P, as `which` says.
  void store_sums(const BlockSums& sums, const Value& which, const Value& i, const Value& j) const {
    int last = s_.tokens - kBlockRows;
    Value row = (i * kBlockRows).assume({kBlockRows, 0, last});
    Value column = (j * kBlockRows).assume({kBlockRows, 0, last});
    auto pair = [&](const Fragment& of, int upper, int right, auto&& store_pair) {
      Value r = row + lane_row() + upper * 8, c = column + lane_column(0) + right * 8;
      store_pair(of.part(2 * upper, 2), r.assume({1, 0, s_.tokens - 1}),
                 c.assume({2, 0, s_.tokens - 2}));
    };
    auto all = [&](auto&& store_pair) {
      for (int upper = 0; upper < 2; ++upper) {
        pair(sums.left, upper, 0, store_pair);
        pair(sums.right, upper, 1, store_pair);
      }
    };
    if_(which == 0, [&] {
      all([&](const Fragment& values, const Value& r, const Value& c) {
        store(t_.coupling(r, c), values * t_.beta(r).load());
      });
    }).else_([&] {
      all([&](const Fragment& values, const Value& r, const Value& c) {
        store(t_.attention.element(r, c), values.to(f16));
      });
    });
  }

  const ChunkShape& s_;
  const ThreadRows& rows_;
  const RowValues& v_;
  const PairTargets& t_;
  int warps_;
  PairPlaces places_;
};

}  // namespace

void pair_products(const ChunkShape& shape, const ThreadRows& rows, const RowValues& values,
                   const PairTargets& targets) {
  Rounds(shape, rows, values, targets).run();
}

}  // namespace tilewright
