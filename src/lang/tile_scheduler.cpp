// SPDX-License-Identifier: Apache-2.0
// The order of tiles in bands.
#include "tilewright/tile_scheduler.h"

#include <string>

namespace tilewright {
namespace {

Value tiles(const Arg& count) {
  Value value = count.as(s32, "TileScheduler");
  if (!value.is_constant() || value.constant() > 0) return value;
  throw Error(ErrorKind::user,
              "TileScheduler: " + std::to_string(value.constant()) + " tiles; take at least 1",
              count.at());
}

}  // namespace

TileScheduler::TileScheduler(const Arg& tiles_m, const Arg& tiles_n, int band, SourceLoc at)
    : tiles_m_(tiles(tiles_m)),
      tiles_n_(tiles(tiles_n)),
      count_(Arg(tiles_m_, at) * Arg(tiles_n_, at)),
      band_(band) {
  if (band >= 1) return;
  throw Error(ErrorKind::user,
              "TileScheduler: bands of " + std::to_string(band) + " rows; take at least 1", at);
}

TileScheduler::Tile TileScheduler::tile(const Arg& index) const {
  SourceLoc at = index.at();
  Value i = index.as(s32, "TileScheduler");
  Value band_tiles = Arg(tiles_n_, at) * band_;
  Value band = Arg(i, at) / Arg(band_tiles, at);
  Value inside = Arg(i, at) - Arg(band, at) * Arg(band_tiles, at);
  Value first_row = Arg(band, at) * band_;
  // The last band may have fewer rows.
  Value rows = min(Arg(Arg(tiles_m_, at) - Arg(first_row, at), at), Arg(band_, at));
  Value column = Arg(inside, at) / Arg(rows, at);
  Value row = Arg(inside, at) - Arg(column, at) * Arg(rows, at);
  return {Arg(first_row, at) + Arg(row, at), column};
}

}  // namespace tilewright
