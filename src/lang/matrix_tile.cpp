// SPDX-License-Identifier: Apache-2.0
// Panels, swizzles and copies of matrix tiles.
#include "tilewright/matrix_tile.h"

#include "lang/address.h"
#include "lang/tensor_copy.h"
#include "tilewright/mma.h"
#include "tilewright/thread.h"

#include <algorithm>
#include <string>
#include <vector>

namespace tilewright {

using lang::Tracer;

namespace {

constexpr int kChunkBytes = 16;  // what swizzles move; PTX ISA, shared memory matrix layout
constexpr int kGroupRows = 8;    // rows of a core matrix

std::string size_text(int rows, int columns, Type type) {
  return std::to_string(rows) + " x " + std::to_string(columns) + " of " + std::string(name(type));
}

void require_size(Type type, int rows, int columns, TensorSwizzle swizzle, SourceLoc at) {
  bool addressable = type != pred && type != none && bits(type) >= 8 && bits(type) <= 64 &&
                     bits(type) % 8 == 0 && !is_packed(type);
  int panel = addressable ? swizzle_bytes(swizzle) / bytes(type) : 0;
  if (addressable && rows > 0 && columns > 0 && rows % kGroupRows == 0 && columns % panel == 0)
    return;
  throw Error(ErrorKind::user,
              "matrix tile: " + size_text(rows, columns, type) +
                  (addressable ? "; with this swizzle it takes rows by 8 and columns by " +
                                     std::to_string(panel)
                               : "; it takes elements of 8 to 64 bits"),
              at);
}

/// The swizzle as a function of offsets in elements.
Swizzle element_swizzle(Type type, TensorSwizzle swizzle) {
  if (swizzle == TensorSwizzle::none) return {};
  int base = 4;
  for (int size = bytes(type); size > 1; size /= 2)
    --base;
  return {static_cast<int>(swizzle), base, 3};
}

ComposedLayout panel_layout(Type type, int rows, int columns, TensorSwizzle swizzle,
                            int panel_stride) {
  int panel = swizzle_bytes(swizzle) / bytes(type);
  Layout layout(Shape{Int(rows), Shape{Int(panel), Int(columns / panel)}},
                Stride{Int(panel), Stride{Int(1), Int(panel_stride)}});
  return {element_swizzle(type, swizzle), Int(0), std::move(layout)};
}

void require_memory(const Tensor& memory, TensorSwizzle swizzle, SourceLoc at) {
  if (memory.space() != MemorySpace::shared) {
    throw Error(ErrorKind::user,
                std::string("matrix tile: it is in ") + lang::space_word(memory.space()) +
                    " memory; it must be in shared memory",
                at);
  }
  int alignment = std::max(128, kGroupRows * swizzle_bytes(swizzle));
  if (memory.alignment_bytes() % alignment == 0) return;
  throw Error(ErrorKind::user,
              "matrix tile: it is known to be aligned to " +
                  std::to_string(memory.alignment_bytes()) + " bytes; its swizzle needs " +
                  std::to_string(alignment) + ", as dynamic_shared() and its multiples have",
              at);
}

void require_own_map(const char* what, const MatrixTile& tile, const TensorMapParam& map,
                     SourceLoc at) {
  const TensorMapArg& arg = map.arg();
  bool plain = !tile.is_transposed();
  int rows = plain ? tile.rows() : tile.columns();
  bool fits = arg.type == tile.type() && arg.box[0] == tile.panel_columns() && arg.box[1] == rows &&
              arg.swizzle == tile.swizzle();
  for (std::size_t i = 2; i < arg.box.size(); ++i)
    fits &= arg.box[i] <= 1;
  if (fits) return;
  throw Error(ErrorKind::user,
              std::string(what) + ": the map's box is " + std::to_string(arg.box[0]) + " x " +
                  std::to_string(arg.box[1]) + " of " + std::string(name(arg.type)) +
                  ", a panel of the tile " + std::to_string(tile.panel_columns()) + " x " +
                  std::to_string(rows) + " of " + std::string(name(tile.type())) +
                  ", or their swizzles differ; make the map with tile_map() for the same tile",
              at);
}

/// copy(box, coordinates) for each panel.
template <class Copy>
void each_panel(const MatrixTile& tile, std::initializer_list<Arg> coordinates, SourceLoc at,
                Copy&& copy) {
  for (int i = 0; i < tile.panels(); ++i) {
    std::vector<Arg> moved;
    moved.reserve(coordinates.size());
    for (const Arg& coordinate : coordinates) {
      bool innermost = moved.empty() && i > 0;
      if (!innermost) {
        moved.push_back(coordinate);
      } else {
        moved.emplace_back(Arg(coordinate.natural(), at) + i * tile.panel_columns(), at);
      }
    }
    Element box(tile.memory(), Int(i) * tile.panel_stride_elems(), at);
    copy(box, lang::Coordinates(moved));
  }
}

}  // namespace

ComposedLayout matrix_tile_layout(Type type, int rows, int columns, TensorSwizzle swizzle,
                                  SourceLoc at) {
  require_size(type, rows, columns, swizzle, at);
  return panel_layout(type, rows, columns, swizzle, rows * swizzle_bytes(swizzle) / bytes(type));
}

TensorSwizzle widest_swizzle(Type type, int columns) {
  for (TensorSwizzle swizzle : {TensorSwizzle::b128, TensorSwizzle::b64, TensorSwizzle::b32}) {
    if (columns % (swizzle_bytes(swizzle) / bytes(type)) == 0) return swizzle;
  }
  return TensorSwizzle::none;
}

TensorMapArg tile_map(Type type, int rows, int columns, TensorSwizzle swizzle, SourceLoc at) {
  require_size(type, rows, columns, swizzle, at);
  return {type, {swizzle_bytes(swizzle) / bytes(type), rows}, swizzle};
}

MatrixTile::MatrixTile(const Tensor& memory, int rows, int columns, TensorSwizzle swizzle,
                       SourceLoc at)
    : memory_(memory), rows_(rows), columns_(columns), swizzle_(swizzle), panel_stride_(0) {
  require_size(memory.type(), rows, columns, swizzle, at);
  require_memory(memory, swizzle, at);
  panel_stride_ = rows * panel_columns();
  Int room = cosize(memory.layout());
  if (room.is_static() && room.value() < std::int64_t{rows} * columns) {
    throw Error(ErrorKind::user,
                "matrix tile: " + size_text(rows, columns, memory.type()) + " in memory of " +
                    std::to_string(room.value()) + " elements; allocate as many",
                at);
  }
}

MatrixTile::MatrixTile(const Tensor& memory, const MatrixTile& like, int rows, int columns)
    : memory_(memory),
      rows_(rows),
      columns_(columns),
      swizzle_(like.swizzle_),
      panel_stride_(like.panel_stride_) {}

MatrixTile MatrixTile::transposed() const {
  MatrixTile other = *this;
  other.transposed_ = !transposed_;
  return other;
}

MatrixTile MatrixTile::part(const Index& first, int count, SourceLoc at) const {
  const Int& row = first.coord().value(at);
  int unit = transposed_ ? panel_columns() : kGroupRows;
  bool inside = row.min() >= 0 && count > 0 && count <= rows() &&
                (!row.is_static() || row.value() + count <= rows());
  if (!inside || !row.divisible_by(unit) || count % unit != 0) {
    throw Error(ErrorKind::user,
                "matrix tile: " + std::to_string(count) + " rows from " + to_string(row) +
                    " on of a " + (transposed_ ? "transposed " : "") + "tile of " +
                    size_text(rows(), columns(), type()) + "; a part takes rows by " +
                    std::to_string(unit) + " inside the tile",
                at);
  }
  Int offset = transposed_ ? row / Int(unit) * Int(panel_stride_) : row * Int(panel_columns());
  Tensor begin = memory_.at_offset(offset, memory_.layout(), at);
  MatrixTile made(begin, *this, transposed_ ? rows_ : count, transposed_ ? count : columns_);
  made.transposed_ = transposed_;
  return made;
}

MatrixTile MatrixTile::panel(int i, SourceLoc at) const {
  if (transposed_ || i < 0 || i >= panels()) {
    throw Error(ErrorKind::user,
                "matrix tile: panel " + std::to_string(i) + " of " + std::to_string(panels()) +
                    "; panels count from 0, before the tile is transposed",
                at);
  }
  Tensor begin = memory_.at_offset(Int(i) * panel_stride_, memory_.layout(), at);
  return {begin, *this, rows_, panel_columns()};
}

Element MatrixTile::element(const Index& row, const Index& column, SourceLoc at) const {
  ComposedLayout layout = panel_layout(type(), rows_, columns_, swizzle_, panel_stride_);
  const IntTuple& r = transposed_ ? column.coord() : row.coord();
  const IntTuple& c = transposed_ ? row.coord() : column.coord();
  bool inside = r.value(at).max() >= 0 && r.value(at).min() < rows_ && c.value(at).max() >= 0 &&
                c.value(at).min() < columns_;
  if (!inside) {
    throw Error(ErrorKind::user,
                "matrix tile: element (" + to_string(row.coord()) + "," +
                    to_string(column.coord()) + ") lies outside of " +
                    size_text(rows(), columns(), type()) + "; indices count from 0",
                at);
  }
  return {memory_, layout(r, c), at};
}

void load_tile(const MatrixTile& tile, const TensorMapParam& map,
               std::initializer_list<Arg> coordinates, const Mbarrier& done, SourceLoc at) {
  require_own_map("load_tile", tile, map, at);
  each_panel(tile, coordinates, at, [&](const Element& box, lang::Coordinates moved) {
    lang::tensor_load({"load_tile", at}, box, map, moved, done);
  });
}

void load_tile_multicast(const MatrixTile& tile, const TensorMapParam& map,
                         std::initializer_list<Arg> coordinates, const Mbarrier& done,
                         const Arg& blocks) {
  const char* what = "load_tile_multicast";
  require_own_map(what, tile, map, blocks.at());
  each_panel(tile, coordinates, blocks.at(), [&](const Element& box, lang::Coordinates moved) {
    lang::tensor_load_multicast(what, box, map, moved, done, blocks);
  });
}

void store_tile(const TensorMapParam& map, std::initializer_list<Arg> coordinates,
                const MatrixTile& tile, SourceLoc at) {
  require_own_map("store_tile", tile, map, at);
  each_panel(tile, coordinates, at, [&](const Element& box, lang::Coordinates moved) {
    lang::tensor_store({"store_tile", at}, map, moved, box);
  });
}

void load_tile_async(const MatrixTile& tile, const Tensor& source, const Bounds& inside,
                     SourceLoc at) {
  load_tile_async(tile, source, inside, linear_thread_idx(at), block_threads(at), at);
}

void load_tile_async(const MatrixTile& tile, const Tensor& source, const Bounds& inside,
                     const Value& thread, int threads, SourceLoc at) {
  Tracer& tracer = Tracer::current("load_tile_async", at);
  Tracer::AttributeTo attribute(tracer, at);
  int elems = kChunkBytes / bytes(tile.type());
  int across = tile.columns() / elems;  // threads beside one another in a row
  int step = threads / std::max(across, 1);
  Shape shape{tile.rows(), tile.columns()};
  bool fits = !tile.is_transposed() && source.type() == tile.type() && source.shape() == shape &&
              inside.tile() == shape && threads > 0;
  if (!fits || threads % across != 0 || step % kGroupRows != 0 || tile.rows() % step != 0) {
    throw Error(ErrorKind::user,
                "load_tile_async: a source of " + to_string(source.shape()) + " and type " +
                    std::string(name(source.type())) + " for a tile of " +
                    size_text(tile.rows(), tile.columns(), tile.type()) + " by " +
                    std::to_string(threads) +
                    " threads; the shapes must be equal, and all threads take 16 bytes each of "
                    "whole groups of 8 rows",
                at);
  }
  Value mine = thread.assume({1, 0, threads - 1});
  Value row = (Arg(mine, at) / across).assume({1, 0, step - 1});
  Value column = Arg(Arg(mine, at) % across, at) * elems;
  for (int i = 0; i < tile.rows() / step; ++i) {
    Int at_row = to_int(row, at) + Int(i * step);
    Coord place{IntTuple(at_row), IntTuple(to_int(column, at))};
    Element to = tile.part(i * step, step, at).element(to_int(row, at), to_int(column, at), at);
    copy_async_if(Arg(inside.contains(place, at), at), to, source.element(place, at), kChunkBytes);
  }
}

namespace {

/// Four matrices of 8 x 16 bytes of a tile: the rows' halves first (A), or the columns' (B).
Fragment load_four(const char* what, const MatrixTile& tile, const Index& first_row, int column,
                   bool rows_first, SourceLoc at) {
  int elems = kChunkBytes / bytes(tile.type());
  const Int& row = first_row.coord().value(at);
  bool inside = row.min() >= 0 && (!row.is_static() || row.value() + 16 <= tile.rows()) &&
                column >= 0 && column + 2 * elems <= tile.columns() && row.divisible_by(8) &&
                column % elems == 0;
  if (!inside || bits(tile.type()) > 32 || (tile.is_transposed() && bits(tile.type()) != 16)) {
    throw Error(ErrorKind::user,
                std::string(what) + ": rows from " + to_string(row) + " and columns from " +
                    std::to_string(column) + " on of a " +
                    (tile.is_transposed() ? "transposed " : "") + "tile of " +
                    size_text(tile.rows(), tile.columns(), tile.type()) +
                    "; 16 rows and 32 bytes must lie inside, and only 16-bit types may be "
                    "transposed",
                at);
  }
  // Lane 8 i + r gives row r of matrix i.
  Value lane = lane_idx(at);
  Int in_matrix = to_int((Arg(lane, at) & 7).assume({1, 0, 7}), at);
  Int odd = to_int((Arg(Arg(lane, at) >> 3, at) & 1).assume({1, 0, 1}), at);
  Int upper = to_int((Arg(lane, at) >> 4).assume({1, 0, 1}), at);
  Int r = (rows_first ? odd : upper) * Int(8);
  Int c = (rows_first ? upper : odd) * Int(elems) + Int(column);
  if (tile.is_transposed())
    return ldmatrix(tile.element(r + row, c + in_matrix, at), 4, Transposed::yes, at);
  return ldmatrix(tile.part(row, 16, at).element(r + in_matrix, c, at), 4, Transposed::no, at);
}

}  // namespace

Fragment load_matrix_a(const MatrixTile& tile, const Index& row, int column, SourceLoc at) {
  return load_four("load_matrix_a", tile, row, column, true, at);
}

Fragment load_matrix_b(const MatrixTile& tile, const Index& row, int column, SourceLoc at) {
  return load_four("load_matrix_b", tile, row, column, false, at);
}

void store_matrix(const MatrixTile& tile, const Index& first_row, const Fragment& fragment,
                  SourceLoc at) {
  constexpr int kStepElems = 8;  // of a thread in 16 x 16 elements, which one stmatrix.x4 writes
  if (bits(tile.type()) != 16 || tile.is_transposed() || fragment.type() != tile.type() ||
      fragment.size() * 2 != tile.columns() || fragment.size() % kStepElems != 0) {
    throw Error(ErrorKind::user,
                "store_matrix: " + std::to_string(fragment.size()) + " elements of " +
                    std::string(name(fragment.type())) + " for a tile of " +
                    size_text(tile.rows(), tile.columns(), tile.type()) +
                    "; it takes half as many 16-bit elements as the tile has columns, 16 columns "
                    "at a time",
                at);
  }
  // Lane 8 i + r gives row r of matrix i; the matrices are (0,0), (8,0), (0,8), (8,8).
  Value lane = lane_idx(at);
  Value row_in_block = Arg(lane, at) & 15;
  Value column_in_block = Arg(Arg(lane, at) / 16, at) * 8;
  Int row = first_row.coord().value(at) + to_int(row_in_block.assume({1, 0, 15}), at);
  for (int i = 0; i < fragment.size() / kStepElems; ++i) {
    Int column = to_int(column_in_block.assume({8, 0, 8}), at) + Int(16 * i);
    stmatrix(tile.element(row, column, at), fragment.part(i * kStepElems, kStepElems, at),
             Transposed::no, at);
  }
}

}  // namespace tilewright
