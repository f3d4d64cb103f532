// SPDX-License-Identifier: Apache-2.0
// Tiled multiplications: which threads hold which elements of a tile, and the tile's instructions.
#pragma once

#include "tilewright/matrix_tile.h"
#include "tilewright/mma.h"
#include "tilewright/wgmma.h"

#include <vector>

namespace tilewright {

/// An instruction and what its threads hold: (thread, value) to column-major places in A (m x k),
/// B (n x k) and C (m x n). CuTe's MMA_Traits. Every thread sees all of an operand in shared
/// memory.
struct MmaAtom {
  Type type;  ///< of A and B
  MmaShape shape;
  int threads;
  Layout a, b, c;
};
/// mma.sync by a warp: two instructions side by side, 16 x 16, so that one ldmatrix fetches either
/// operand.
MmaAtom mma_atom(Type type, SourceLoc at = SourceLoc::here());
/// wgmma by a warpgroup.
MmaAtom wgmma_atom(Type type, int n, SourceLoc at = SourceLoc::here());

/// `groups_m` x `groups_n` warps (or warpgroups) side by side, m first. Larger tiles are covered by
/// repeating that. CuTe's TiledMMA.
class TiledMma {
 public:
  TiledMma(const MmaAtom& atom, int groups_m, int groups_n, SourceLoc at = SourceLoc::here());

  const MmaAtom& atom() const { return atom_; }
  int groups_m() const { return groups_m_; }
  int groups_n() const { return groups_n_; }
  int threads() const { return atom_.threads * groups_m_ * groups_n_; }
  int m() const { return atom_.shape.m * groups_m_; }
  int n() const { return atom_.shape.n * groups_n_; }
  int k() const { return atom_.shape.k; }
  // (thread, value) to places in the m() x k(), n() x k() and m() x n() that all threads cover.
  LayoutTV tv_a() const;
  LayoutTV tv_b() const;
  LayoutTV tv_c() const;

 private:
  MmaAtom atom_;
  int groups_m_, groups_n_;
};

// This thread's part of a tile as (values, rest_m, rest_k), (values, rest_n, rest_k) and
// (values, rest_m, rest_n): CuTe's partition_A, partition_B, partition_C.
// Pre: the tile's shape is static and a multiple of what the threads cover.
Tensor partition_a(const TiledMma& mma, const Tensor& tile, const Value& thread,
                   SourceLoc at = SourceLoc::here());
Tensor partition_b(const TiledMma& mma, const Tensor& tile, const Value& thread,
                   SourceLoc at = SourceLoc::here());
Tensor partition_c(const TiledMma& mma, const Tensor& tile, const Value& thread,
                   SourceLoc at = SourceLoc::here());

/// This thread's sums for a tile of m x n, undefined: its values in the order of partition_c().
Fragment make_fragment_c(const TiledMma& mma, Type sum, int m, int n,
                         SourceLoc at = SourceLoc::here());
/// This thread's fragments for one step along k of a tile in shared memory, one for each rest_m or
/// rest_n (ldmatrix). Pre: an atom of mma.sync, of 8- to 32-bit types.
std::vector<Fragment> load_fragments_a(const TiledMma& mma, const MatrixTile& a, int k,
                                       const Value& thread, SourceLoc at = SourceLoc::here());
std::vector<Fragment> load_fragments_b(const TiledMma& mma, const MatrixTile& b, int k,
                                       const Value& thread, SourceLoc at = SourceLoc::here());
/// The same from any memory, element by element, from a partition at one step: part(_, _, k).
std::vector<Fragment> load_fragments(const Tensor& part, SourceLoc at = SourceLoc::here());

/// In which order the instructions of a step are issued: it changes no result, but how often their
/// operands are read from the registers.
enum class MmaOrder : std::uint8_t {
  pairs,    ///< each 16 x 16 products, down the rows
  b_outer,  ///< every fragment of B meets all of A, back and forth
};
/// c += a b^T for one step along k. Pre: an atom of mma.sync.
void multiply(const TiledMma& mma, const Fragment& c, const std::vector<Fragment>& a,
              const std::vector<Fragment>& b, MmaOrder order = MmaOrder::pairs,
              SourceLoc at = SourceLoc::here());

/// Stores the sums of a tile in global or shared memory, without what is not inside, neighbours
/// along n together. Pre: pairs of neighbours lie inside or outside as a whole.
void store_fragment_c(const TiledMma& mma, const Fragment& c, const Tensor& tile,
                      const Bounds& inside, const Value& thread, SourceLoc at = SourceLoc::here());

}  // namespace tilewright
