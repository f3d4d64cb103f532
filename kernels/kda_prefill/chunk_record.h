// SPDX-License-Identifier: Apache-2.0
// What a chunk of tokens does to the state of one head, as one kernel writes and another reads it.
#pragma once

#include "tilewright/matrix_tile.h"
#include "tilewright/tensor.h"

#include <cstdint>

namespace tilewright {

inline constexpr int kBlockRows = 16;  ///< tokens of a block of a chunk: rows of an mma

/// A chunk of tokens in sub-blocks of 16, and the elements of its record. With p the decay from the
/// chunk's start to a token and s the one from it to the chunk's end, a record holds, as operands,
///   queries q p, after k s: [chunk, K]; attention P: [chunk, chunk];
/// with a correction also keys k p: [chunk, K]; solve M diag(beta): [chunk, chunk];
/// and the decay of the whole chunk, K numbers of f32. Matrices are laid out as MatrixTile does.
struct ChunkShape {
  int tokens = 64;
  int k = 128;
  bool corrects = true;  ///< the delta rule, whose q and k have length 1
  /// Of mma(): f16 has more digits, bf16 the range of q and k of any length.
  Type operand() const { return corrects ? f16 : bf16; }
  friend bool operator==(const ChunkShape&, const ChunkShape&) = default;

  int blocks() const { return tokens / kBlockRows; }
  int vectors_elems() const { return tokens * k; }
  int matrix_elems() const { return tokens * tokens; }
  int keys_at() const { return 2 * vectors_elems(); }
  int matrices_at() const { return (corrects ? 3 : 2) * vectors_elems(); }
  int matrices_elems() const { return (corrects ? 2 : 1) * matrix_elems(); }
  int decay_at() const { return matrices_at() + matrices_elems(); }
  int used_elems() const { return decay_at() + 2 * k; }
  /// A multiple of 1024 bytes: what a swizzled tile's address has to be.
  int record_elems() const { return (used_elems() + 511) / 512 * 512; }
  std::int64_t record_bytes() const { return std::int64_t{record_elems()} * 2; }
};

/// The parts of a record in shared memory.
class ChunkRecord {
 public:
  /// `memory` is in shared memory, aligned to 1024 bytes.
  ChunkRecord(const ChunkShape& shape, const Tensor& memory) : s_(shape), memory_(memory) {}

  MatrixTile queries() const { return vectors(0); }
  MatrixTile after() const { return vectors(s_.vectors_elems()); }
  MatrixTile keys() const { return vectors(s_.keys_at()); }
  MatrixTile attention() const { return matrix(s_.matrices_at()); }
  MatrixTile solve() const { return matrix(s_.matrices_at() + s_.matrix_elems()); }
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
    return {part(at, s_.matrix_elems()), s_.tokens, s_.tokens,
            widest_swizzle(s_.operand(), s_.tokens)};
  }

  ChunkShape s_;
  Tensor memory_;
};

}  // namespace tilewright
