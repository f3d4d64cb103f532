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
constexpr int kStep = 8;  // of k, and of n: m16n8k8 of tf32

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
void solve_block(const Tensor& lower, const Tensor& inverse, const Value& block, int n) {
  Value first = block * kBlock, column = lane_idx() % kBlock;
  std::vector<Value> x;
  for (int i = 0; i < kBlock; ++i) {
    Fragment row = load(lower(first + i, first), kBlock);
    Var sum(select(column == i, 1.0f, 0.0f));
    for (int j = 0; j < i; ++j)
      sum = fma(-row[j].get(), x[static_cast<std::size_t>(j)], sum);
    x.emplace_back(sum);
  }
  Value solves = lane_idx() < kBlock;
  Value beside = n > kBlock ? block % 2 == 0 : constant(pred, false);
  if_(solves || beside, [&] {
    for (int i = 0; i < kBlock; ++i) {
      inverse(first + i, first + lane_idx()) = select(solves, x[static_cast<std::size_t>(i)], 0.0f);
    }
  });
}

/// Elements of tf32 fragments of m16n8k8: lane (g, t) has A (g or g + 8, t or t + 4) and
/// B (t or t + 4, g).
Fragment load_a(const Tensor& a, const Value& row, const Value& column) {
  Fragment out(tf32, 4);
  Value r = row + lane_idx() / 4, c = column + lane_idx() % 4;
  for (int e = 0; e < 4; ++e)
    out[e] = a(r + e % 2 * 8, c + e / 2 * 4).load().to(tf32);
  return out;
}
Fragment load_b(const Tensor& b, const Value& row, const Value& column) {
  Fragment out(tf32, 2);
  Value r = row + lane_idx() % 4, c = column + lane_idx() / 4;
  for (int e = 0; e < 2; ++e)
    out[e] = b(r + e * 4, c).load().to(tf32);
  return out;
}

/// A square of `size` of a matrix.
struct Square {
  const Tensor& matrix;
  Value row, column;
};

/// to = factor a b for the tile `unit` of 16 x 8 of a square of `size`.
void multiply_tile(const Square& to, const Square& a, const Square& b, int size, float factor,
                   const Value& unit) {
  Value m = unit % (size / kBlock) * kBlock, n = unit / (size / kBlock) * kStep;
  Fragment sums(f32, 4);
  sums.fill(0.0f);
  for (int k = 0; k < size; k += kStep) {
    mma(sums, load_a(a.matrix, a.row + m, a.column + k), load_b(b.matrix, b.row + k, b.column + n));
  }
  Value row = to.row + m + lane_idx() / 4, column = to.column + n + lane_idx() % 4 * 2;
  for (int e = 0; e < 4; ++e)
    to.matrix(row + e / 2 * 8, column + e % 2) = sums[e].get() * factor;
}

}  // namespace

void triangular_inverse(const Tensor& lower, const Tensor& inverse, const Tensor& scratch, int n,
                        int warps) {
  each_unit(n / kBlock, warps, [&](const Value& block) { solve_block(lower, inverse, block, n); });
  barrier();
  for (int half = kBlock; half < n; half *= 2) {
    // [[A, 0], [L, B]]^-1 has -B^-1 L A^-1 below its diagonal.
    int tiles = (half / kBlock) * (half / kStep), units = n / (2 * half) * tiles;
    auto with_square = [&](auto&& body) {
      each_unit(units, warps, [&](const Value& unit) {
        Value begin = unit / tiles * (2 * half);
        body(begin, begin + half, unit % tiles);
      });
    };
    with_square([&](const Value& a, const Value& b, const Value& tile) {
      multiply_tile({scratch, b, a}, {lower, b, a}, {inverse, a, a}, half, 1.0f, tile);
    });
    barrier();
    with_square([&](const Value& a, const Value& b, const Value& tile) {
      multiply_tile({inverse, b, a}, {inverse, b, b}, {scratch, b, a}, half, -1.0f, tile);
    });
    barrier();
  }
}

}  // namespace tilewright
