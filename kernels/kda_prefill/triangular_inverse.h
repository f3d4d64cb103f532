// SPDX-License-Identifier: Apache-2.0
// The inverse of a unit lower triangular matrix, by a block.
#pragma once

#include "tilewright/matrix_tile.h"
#include "tilewright/tensor.h"

#include <optional>

namespace tilewright {

/// The part of a matrix of n x n (n 16, 32 or 64) below its diagonal, as blocks.
struct LowerBlocks {
  Tensor diagonal;  ///< [n, 24] f32: rows of the blocks of 16 on the diagonal, 16 columns of each
  /// [n / 2, 16] f16: the block beside every second one of those. Absent: n is 16.
  std::optional<MatrixTile> beside = {};
  std::optional<MatrixTile> corner = {};  ///< [32, 32] f16, if n is 64
};

/// (I + lower)^-1 diag(factors) below the diagonal and on it to `to` [n, n] f16; blocks of 16 above
/// it are left alone. `halves` is [n, 32] f16 (16 columns if n is 16), for inverses of the halves.
/// Blocks of 16 are solved row by row in f32, those below by products of f16. By all threads, after
/// a barrier; ends before one.
struct InverseTargets {
  MatrixTile to, halves;
  Tensor factors;  ///< [n] f32
};
void triangular_inverse(const LowerBlocks& lower, const InverseTargets& targets, int n, int warps);

}  // namespace tilewright
