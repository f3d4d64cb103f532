// SPDX-License-Identifier: Apache-2.0
// What a chunk of tokens does to the state of one head, as one kernel writes and another reads it.
#pragma once

#include "tilewright/matrix_tile.h"
#include "tilewright/tensor.h"

#include <cstdint>

namespace tilewright {

inline constexpr int kBlockRows = 16;  ///< tokens of a block of a chunk: rows of an mma

/// A chunk of tokens in sub-blocks of 16, and the elements of its record. With p the decay from the
/// chunk's start to a token and s the one from it to the chunk's end, a record holds, in f16,
///   keys k p, queries q p, after k s: [chunk, K]; solve M diag(beta), attention P: [chunk, chunk];
/// and the decay of the whole chunk, K numbers of f32. Matrices are laid out as MatrixTile does.
struct ChunkShape {
  int tokens = 64;
  int k = 128;
  friend bool operator==(const ChunkShape&, const ChunkShape&) = default;

  int blocks() const { return tokens / kBlockRows; }
  int vectors_elems() const { return tokens * k; }
  int matrix_elems() const { return tokens * tokens; }
  int solve_at() const { return 3 * vectors_elems(); }
  int decay_at() const { return solve_at() + 2 * matrix_elems(); }
  /// A multiple of 1024 bytes: what a swizzled tile's address has to be.
  int record_elems() const { return (decay_at() + 2 * k + 511) / 512 * 512; }
  std::int64_t record_bytes() const { return std::int64_t{record_elems()} * 2; }
};

/// The parts of a record in shared memory.
class ChunkRecord {
 public:
  /// `memory` is in shared memory, aligned to 1024 bytes.
  ChunkRecord(const ChunkShape& shape, const Tensor& memory) : s_(shape), memory_(memory) {}

  MatrixTile keys() const { return vectors(0); }
  MatrixTile queries() const { return vectors(s_.vectors_elems()); }
  MatrixTile after() const { return vectors(2 * s_.vectors_elems()); }
  MatrixTile solve() const { return matrix(s_.solve_at()); }
  MatrixTile attention() const { return matrix(s_.solve_at() + s_.matrix_elems()); }
  /// [K] f32
  Tensor decay() const {
    Value base = memory_.base() + s_.decay_at() * 2;
    return {f32, memory_.space(), base, make_row_major(Shape{s_.k}), 16};
  }

 private:
  Tensor part(int at, int elems) const {
    return memory_.at_offset(Int(at), make_row_major(Shape{elems}));
  }
  MatrixTile vectors(int at) const {
    return {part(at, s_.vectors_elems()), s_.tokens, s_.k, TensorSwizzle::b128};
  }
  MatrixTile matrix(int at) const {
    return {part(at, s_.matrix_elems()), s_.tokens, s_.tokens, widest_swizzle(f16, s_.tokens)};
  }

  ChunkShape s_;
  Tensor memory_;
};

}  // namespace tilewright
