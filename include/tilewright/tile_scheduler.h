// SPDX-License-Identifier: Apache-2.0
// Persistent grids: in which order the blocks of a launch take the tiles of an output.
#pragma once

#include "tilewright/control.h"
#include "tilewright/thread.h"

namespace tilewright {

/// Tiles of an m x n output, taken in bands of `band` rows of tiles, each band column by column:
/// the operands of neighbours in the order are few, so that they stay in the L2 cache.
class TileScheduler {
 public:
  /// `tiles_m` and `tiles_n` are s32.
  TileScheduler(const Arg& tiles_m, const Arg& tiles_n, int band, SourceLoc at = SourceLoc::here());

  struct Tile {
    Value m, n;
  };
  /// The tile at a place in the order, from 0 on.
  Tile tile(const Arg& index) const;
  Value count() const { return count_; }

  /// `body(Value m, Value n)` for every `step`-th tile from the `first` one on. The blocks of a
  /// persistent grid do so with their index and number, clusters with theirs: then the blocks of a
  /// cluster share the tile.
  template <class Body>
  void for_each(const Arg& first, const Arg& step, Body&& body) const {
    SourceLoc at = first.at();
    for_(first, Arg(count_, at), step, [&](const Value& index) {
      Tile at_index = tile(Arg(index, at));
      body(at_index.m, at_index.n);
    });
  }

 private:
  Value tiles_m_, tiles_n_, count_;
  int band_;
};

}  // namespace tilewright
