// SPDX-License-Identifier: Apache-2.0
// Tiled copies: partitioning by thread-value layouts, and the copies themselves.
#include "tilewright/copy.h"

#include "lang/tracer.h"
#include "tilewright/thread.h"

#include <string>

namespace tilewright {

using lang::Tracer;

TiledCopy::TiledCopy(const Universal& atom, bool asynchronous, Type type, const Layout& threads,
                     const Layout& values, SourceLoc at)
    : atom_(atom),
      asynchronous_(asynchronous),
      type_(type),
      tv_(make_layout_tv(threads, values)),
      threads_(static_cast<int>(size(threads).value())) {
  bool divides = bits(type) >= 8 && atom.bits % bits(type) == 0 && atom.bits >= bits(type);
  bool allowed = asynchronous ? atom.bits == 32 || atom.bits == 64 || atom.bits == 128
                              : atom.bits >= 8 && atom.bits <= 128;
  if (!divides || !allowed || size(values).value() % (atom.bits / bits(type)) != 0) {
    throw Error(ErrorKind::user,
                "tiled_copy: " + std::to_string(atom.bits) + "-bit copies of " +
                    std::to_string(size(values).value()) + " values of type " +
                    std::string(name(type)) + " a thread; the bits must be " +
                    (asynchronous ? "32, 64 or 128" : "8 to 128") +
                    " and a multiple of the type's, the values a multiple of a copy's",
                at);
  }
}

TiledCopy::TiledCopy(const Universal& atom, Type type, const Layout& threads, const Layout& values,
                     SourceLoc at)
    : TiledCopy(atom, false, type, threads, values, at) {}
TiledCopy::TiledCopy(CpAsync atom, Type type, const Layout& threads, const Layout& values,
                     SourceLoc at)
    : TiledCopy(Universal{atom.bits, {}, {}}, true, type, threads, values, at) {}

namespace {

/// (thread, (value, rest)) of a tile's layout.
Layout partition_layout(const TiledCopy& copy, const Layout& tile, SourceLoc at) {
  if (!tile.shape().is_static() || tile.rank() != copy.tiler().rank() ||
      !evenly_divides(tile.shape(), copy.tiler())) {
    throw Error(ErrorKind::user,
                "copy: the tile " + to_string(tile) + " is not a multiple of the " +
                    to_string(copy.tiler()) +
                    " elements that the copy's threads cover; choose a tile of whole multiples",
                at);
  }
  Layout divided = zipped_divide(tile, Tiler(copy.tiler()));
  Layout thread_value = composition(divided.mode(0), copy.tv().layout);
  Layout value_rest = make_layout({thread_value.mode(1), divided.mode(1)});
  return make_layout({thread_value.mode(0), value_rest});
}

void require_contiguous(const TiledCopy& copy, const Layout& values, const char* which,
                        SourceLoc at) {
  int vector = copy.vector_elems();
  if (vector == 1) return;
  for (int i = 1; i < vector; ++i) {
    Int distance = values(Coord(Int(i))) - values(Coord(Int(0)));
    if (distance.is_static(i)) continue;
    throw Error(ErrorKind::user,
                "copy: the " + std::string(which) + " has values " + to_string(values) +
                    " a thread, of which " + std::to_string(vector) +
                    " are not contiguous as the " + std::to_string(copy.atom().bits) +
                    "-bit copy needs; lay the values along the contiguous mode or copy fewer bits",
                at);
  }
}

struct Parts {
  Tensor source, destination;
  Layout coordinates;  // (thread, (value, rest)) to coordinates of the tile
  Value thread;
};

void copy_vector(const TiledCopy& how, const Parts& parts, const Coord& where, const Value& inside,
                 SourceLoc at) {
  Element from = parts.source.element(where, at);
  Element to = parts.destination.element(where, at);
  Arg predicate(inside, at);
  int elems = how.vector_elems();
  if (how.asynchronous()) return copy_async_if(predicate, to, from, how.atom().bits / 8);
  Fragment moved = load_if(predicate, from, elems, how.atom().load);
  store_if(predicate, to, moved, how.atom().store);
}

void copy_parts(const TiledCopy& how, const Parts& parts, const Bounds* bounds, SourceLoc at) {
  auto values = static_cast<int>(size(parts.source.layout().mode(0)).value());
  auto rests = static_cast<int>(size(parts.source.layout().mode(1)).value());
  Int thread = to_int(parts.thread, at);
  for (int rest = 0; rest < rests; ++rest) {
    for (int value = 0; value < values; value += how.vector_elems()) {
      Value inside = ValueAccess::constant(pred, 1);
      Coord where{Int(value), Int(rest)};
      if (bounds != nullptr && !bounds->always()) {
        IntTuple c = evaluate(parts.coordinates, Coord{IntTuple(thread), where});
        Value predicate = bounds->contains(c, at);
        copy_vector(how, parts, where, predicate, at);
      } else {
        copy_vector(how, parts, where, inside, at);
      }
    }
  }
}

void copy_tile(const TiledCopy& how, const Tensor& source, const Tensor& destination,
               const Bounds* bounds, SourceLoc at) {
  Tracer& tracer = Tracer::current("copy", at);
  Tracer::AttributeTo attribute(tracer, at);
  Int from = size(source.layout());
  Int to = size(destination.layout());
  if (!equal(from, to).value_or(true)) {
    throw Error(ErrorKind::user,
                "copy: source has " + to_string(from) + " elements but destination has " +
                    to_string(to) + "; use equal tiles or copy_if",
                at);
  }
  if (source.type() != destination.type() || source.type() != how.type()) {
    throw Error(ErrorKind::user,
                "copy: types " + std::string(name(source.type())) + ", " +
                    std::string(name(destination.type())) + " and the copy's " +
                    std::string(name(how.type())) + " differ; copies do not convert",
                at);
  }
  if (block_threads(at) != how.threads()) {
    throw Error(ErrorKind::user,
                "copy: the copy is for " + std::to_string(how.threads()) +
                    " threads and the block has " + std::to_string(block_threads(at)) +
                    "; make them equal or use partition()",
                at);
  }
  Value thread = linear_thread_idx(at);
  Parts parts{partition(how, source, thread, at), partition(how, destination, thread, at),
              partition_layout(how, make_identity_layout(source.shape()), at), thread};
  copy_parts(how, parts, bounds, at);
}

}  // namespace

Tensor partition(const TiledCopy& copy, const Tensor& tile, const Value& thread, SourceLoc at) {
  Layout whole = partition_layout(copy, tile.layout(), at);
  require_contiguous(copy, whole.mode(1).mode(0), "tensor", at);
  OffsetLayout mine = slice_and_offset(Coord{IntTuple(to_int(thread, at)), _}, whole);
  return tile.at_offset(mine.offset, whole.mode(1), at);
}

Value Bounds::contains(const Coord& c, SourceLoc at) const {
  Value inside = ValueAccess::constant(pred, 1);
  std::vector<Value> predicates{inside};
  for (std::size_t i = 0; i < remaining_.size(); ++i) {
    Value position = to_value(c[static_cast<int>(i)].value(), at);
    Value limit = to_value(remaining_[i], at);
    Type type = bits(position.type()) == 64 || bits(limit.type()) == 64 ? s64 : s32;
    Value less = Arg(position.to(type, at), at) < Arg(limit.to(type, at), at);
    predicates.push_back(Arg(predicates.back(), at) && Arg(less, at));
  }
  return predicates.back();
}

bool Bounds::always() const {
  for (std::size_t i = 0; i < remaining_.size(); ++i) {
    if (remaining_[i].min() < size(tile_[static_cast<int>(i)]).value()) return false;
  }
  return true;
}

Bounds in_bounds(const Tensor& tensor, const Shape& tile, const Coord& at_block, SourceLoc at) {
  if (tensor.layout().rank() != tile.rank() || at_block.rank() != tile.rank() ||
      !tile.is_static()) {
    throw Error(ErrorKind::user,
                "in_bounds: the tensor has shape " + to_string(tensor.shape()) + ", the tile " +
                    to_string(tile) + " and the coordinate " + to_string(at_block) +
                    "; they need the same rank, and the tile a static shape",
                at);
  }
  std::vector<Int> remaining;
  for (int i = 0; i < tile.rank(); ++i) {
    Int extent = size(tensor.shape()[i]);
    Int tile_extent = size(tile[i]);
    // Whole tiles only: every tile of the grid is full.
    bool whole = extent.divisible_by(tile_extent.value());
    remaining.push_back(whole ? tile_extent : extent - at_block[i].value() * tile_extent);
  }
  return {tile, std::move(remaining)};
}

void copy(const TiledCopy& how, const Tensor& source, const Tensor& destination, SourceLoc at) {
  copy_tile(how, source, destination, nullptr, at);
}

void copy_if(const TiledCopy& how, const Tensor& source, const Tensor& destination,
             const Bounds& inside, SourceLoc at) {
  copy_tile(how, source, destination, &inside, at);
}

}  // namespace tilewright
