// SPDX-License-Identifier: Apache-2.0
// Tiled copies: which thread moves which elements of a tile, with which instruction.
#pragma once

#include "tilewright/fragment.h"
#include "tilewright/tensor.h"

namespace tilewright {

/// Loads and stores of `bits` each (ld/st, PTX ISA).
struct Universal {
  int bits = 128;
  LoadOptions load = {};
  StoreOptions store = {};
};
/// Asynchronous copies of `bits` (32, 64 or 128) from global to shared memory (cp.async).
struct CpAsync {
  int bits = 128;
};

/// A copy instruction repeated over threads and values.
class TiledCopy {
 public:
  TiledCopy(const Universal& atom, Type type, const Layout& threads, const Layout& values,
            SourceLoc at);
  TiledCopy(CpAsync atom, Type type, const Layout& threads, const Layout& values, SourceLoc at);

  bool asynchronous() const { return asynchronous_; }
  const Universal& atom() const { return atom_; }
  Type type() const { return type_; }
  int vector_elems() const { return atom_.bits / bits(type_); }
  /// The tile that all threads cover at once.
  const Shape& tiler() const { return tv_.tiler; }
  const LayoutTV& tv() const { return tv_; }
  int threads() const { return threads_; }

 private:
  TiledCopy(const Universal& atom, bool asynchronous, Type type, const Layout& threads,
            const Layout& values, SourceLoc at);
  Universal atom_;
  bool asynchronous_;
  Type type_;
  LayoutTV tv_;
  int threads_;
};

/// Threads laid out as `threads` over the tile, each with `values` of it: CuTe's make_tiled_copy.
inline TiledCopy tiled_copy(const Universal& atom, Type type, const Layout& threads,
                            const Shape& values, SourceLoc at = SourceLoc::here()) {
  return {atom, type, threads, make_row_major(values), at};
}
inline TiledCopy tiled_copy(CpAsync atom, Type type, const Layout& threads, const Shape& values,
                            SourceLoc at = SourceLoc::here()) {
  return {atom, type, threads, make_row_major(values), at};
}

/// This thread's part of a tile as (values, rest): `thread` counts from 0 to copy.threads() - 1.
/// Pre: the tile's shape is static and a multiple of the copy's tiler.
Tensor partition(const TiledCopy& copy, const Tensor& tile, const Value& thread,
                 SourceLoc at = SourceLoc::here());

/// Which coordinates of a tile lie inside the tensor it was cut from.
class Bounds {
 public:
  Bounds(Shape tile, std::vector<Int> remaining)
      : tile_(std::move(tile)), remaining_(std::move(remaining)) {}
  const Shape& tile() const { return tile_; }
  /// A predicate: coordinate `c` of the tile is inside. Constant where that is known when traced.
  Value contains(const Coord& c, SourceLoc at = SourceLoc::here()) const;
  bool always() const;

 private:
  Shape tile_;
  std::vector<Int> remaining_;  // of each mode, from the tile's first coordinate on
};
/// Pre: tile coordinate `at_block` is within the grid of tiles.
Bounds in_bounds(const Tensor& tensor, const Shape& tile, const Coord& at_block,
                 SourceLoc at = SourceLoc::here());

/// Copies the tile; every thread of the block takes part (linear_thread_idx). An asynchronous copy
/// is only begun: cp_async_commit() and cp_async_wait() end it.
void copy(const TiledCopy& how, const Tensor& source, const Tensor& destination,
          SourceLoc at = SourceLoc::here());
/// As copy, without the elements outside. Asynchronous copies write zeros for those.
/// Pre: a vector lies either inside or outside as a whole.
void copy_if(const TiledCopy& how, const Tensor& source, const Tensor& destination,
             const Bounds& inside, SourceLoc at = SourceLoc::here());

}  // namespace tilewright
