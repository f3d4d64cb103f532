// SPDX-License-Identifier: Apache-2.0
// Tiles of matrices in shared memory, laid out as tensor copies write and wgmma reads them.
#pragma once

#include "tilewright/copy.h"
#include "tilewright/fragment.h"
#include "tilewright/swizzle.h"
#include "tilewright/tma.h"

#include <initializer_list>

namespace tilewright {

/// Where element (row, column) of a tile lies, counted in elements from its first: panels as wide
/// as the swizzle (16 bytes without one), one after the other, each with its rows one after the
/// other, chunks of 16 bytes permuted as the copy engine does. CuTe's GMMA layouts.
/// Throws Error(user) unless the columns fill panels, the rows groups of 8.
ComposedLayout matrix_tile_layout(Type type, int rows, int columns, TensorSwizzle swizzle,
                                  SourceLoc at = SourceLoc::here());
/// The widest swizzle whose panels `columns` elements of the type fill.
TensorSwizzle widest_swizzle(Type type, int columns);

/// The recipe of the tensor map that load_tile() and store_tile() take for such tiles.
TensorMapArg tile_map(Type type, int rows, int columns, TensorSwizzle swizzle,
                      SourceLoc at = SourceLoc::here());

/// A tile of `rows` x `columns` elements; the columns of a row are neighbours, unless transposed.
class MatrixTile {
 public:
  /// The tile begins at the first element of `memory`, which is in shared memory and aligned to 8
  /// rows of a panel: 1024 bytes for TensorSwizzle::b128 (all dynamic shared memory is).
  MatrixTile(const Tensor& memory, int rows, int columns, TensorSwizzle swizzle,
             SourceLoc at = SourceLoc::here());

  int rows() const { return transposed_ ? columns_ : rows_; }
  int columns() const { return transposed_ ? rows_ : columns_; }
  Type type() const { return memory_.type(); }
  TensorSwizzle swizzle() const { return swizzle_; }
  bool is_transposed() const { return transposed_; }
  const Tensor& memory() const { return memory_; }
  int bytes() const { return rows_ * columns_ * tilewright::bytes(type()); }
  int panels() const { return columns_ / panel_columns(); }
  int panel_columns() const { return swizzle_bytes(swizzle_) / tilewright::bytes(type()); }
  /// From the first element of a panel to that of the next.
  int panel_stride_elems() const { return panel_stride_; }

  /// The same memory with rows and columns exchanged: what CuTe calls MN-major.
  MatrixTile transposed() const;
  /// Rows [first, first + count): multiples of 8, of panel_columns() if transposed.
  MatrixTile part(const Index& first, int count, SourceLoc at = SourceLoc::here()) const;
  /// Panel i alone.
  MatrixTile panel(int i, SourceLoc at = SourceLoc::here()) const;
  Element element(const Index& row, const Index& column, SourceLoc at = SourceLoc::here()) const;

 private:
  MatrixTile(const Tensor& memory, const MatrixTile& like, int rows, int columns);
  Tensor memory_;
  int rows_, columns_;  // as they lie in memory
  TensorSwizzle swizzle_;
  int panel_stride_;
  bool transposed_ = false;
};

// By one thread, with a map of tile_map(); coordinates are those of the tile's first element,
// (column, row, ...) in the order of tma.h. Each panel is one copy.

/// Begins copying to the tile; tile.bytes() complete at `done`.
void load_tile(const MatrixTile& tile, const TensorMapParam& map,
               std::initializer_list<Arg> coordinates, const Mbarrier& done,
               SourceLoc at = SourceLoc::here());
/// The same to the same place in every block of the cluster whose bit is set in `blocks` (u16).
void load_tile_multicast(const MatrixTile& tile, const TensorMapParam& map,
                         std::initializer_list<Arg> coordinates, const Mbarrier& done,
                         const Arg& blocks);
/// Begins copying from the tile, in the thread's bulk group: see bulk_commit(). Needs
/// fence_async_proxy() and a barrier after ordinary writes of the tile.
void store_tile(const TensorMapParam& map, std::initializer_list<Arg> coordinates,
                const MatrixTile& tile, SourceLoc at = SourceLoc::here());

/// By all threads of the block: begins copying the tile `source` in global memory, of the same
/// shape, by cp.async; zeros for what is not inside. See cp_async_commit(). Pre: 16 neighbouring
/// bytes of a row are aligned, and inside or outside as a whole.
void load_tile_async(const MatrixTile& tile, const Tensor& source, const Bounds& inside,
                     SourceLoc at = SourceLoc::here());
/// The same by `threads` of them, of which this one is number `thread`: those of a role().
void load_tile_async(const MatrixTile& tile, const Tensor& source, const Bounds& inside,
                     const Value& thread, int threads, SourceLoc at = SourceLoc::here());

/// A's fragment of mma() for rows [row, row + 16) and mma_shape().k columns from `column` on
/// (ldmatrix). A transposed tile has 16-bit elements.
Fragment load_matrix_a(const MatrixTile& tile, const Index& row, int column,
                       SourceLoc at = SourceLoc::here());
/// B's fragments for rows [row, row + 16) of a tile of n x k, in two halves: of 8 rows each.
Fragment load_matrix_b(const MatrixTile& tile, const Index& row, int column,
                       SourceLoc at = SourceLoc::here());

/// Writes 16-bit results of a warp's m16 x n fragment (the layout of mma_layout_c(), column blocks
/// of 8 one after the other) to rows [first, first + 16) of the tile (stmatrix).
void store_matrix(const MatrixTile& tile, const Index& first_row, const Fragment& fragment,
                  SourceLoc at = SourceLoc::here());

}  // namespace tilewright
