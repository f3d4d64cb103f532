// SPDX-License-Identifier: Apache-2.0
// Products of the vectors of every two tokens of a chunk, with the decays between them.
#pragma once

#include "kernels/kda_prefill/chunk_rows.h"
#include "kernels/kda_prefill/triangular_inverse.h"

#include <optional>

namespace tilewright {

/// Where pairs' products go, and what goes into them.
struct PairTargets {
  Tensor tiles;  ///< [2, 2 tokens, K] operands: two buffers of k's rows, then q's
  std::optional<LowerBlocks> coupling;  ///< L; absent: it is not wanted
  MatrixTile attention;                 ///< P as operands
  Tensor beta;                          ///< [tokens] f32
  Tensor diagonal;                      ///< [tokens] f32: q k of the same token
  Tensor totals;                        ///< [blocks, K] f32: decay of a block
};

/// L(i,j) = beta_i sum_c k_ic k_jc exp(G_ic - G_jc) for j < i, and P(i,j) the same with q_i,
/// without beta, for j <= i; G are the sums of log decays. Elements above the diagonals in blocks
/// of 16 x 16 on it are 0, blocks above are left alone. By all threads; ends before a barrier.
///
/// No decay is divided by another, so that none may overflow: i and j differ first in some bit, and
/// there is a token between them, at which i's upper bits end. k_j times the decay from j to there
/// and k_i (or q_i) times the one from there to i are the operands; two bits are one round of
/// multiplications.
void pair_products(const ChunkShape& shape, const ThreadRows& rows, const RowValues& values,
                   const PairTargets& targets);

}  // namespace tilewright
