// SPDX-License-Identifier: Apache-2.0
// Partitioning by the thread-value layouts of multiplications.
#include "tilewright/tiled_mma.h"

#include "lang/tracer.h"
#include "tilewright/control.h"

#include <string>

namespace tilewright {

using lang::Tracer;

namespace {

/// The layout's places in a matrix of `rows` rows, as places in one of `tile_rows` rows.
Layout in_taller(const Layout& places, int rows, int columns, int tile_rows) {
  return composition(Layout(Shape{Int(rows), Int(columns)}, Stride{Int(1), Int(tile_rows)}),
                     places);
}

struct Extent {
  int rows, columns;
};

/// An atom's operand for all groups of threads: they lie `group_strides` apart in the tile's
/// places.
LayoutTV tile_of(const TiledMma& mma, const Layout& atom, Extent one, Extent tile,
                 Stride group_strides) {
  Layout places = in_taller(atom, one.rows, one.columns, tile.rows);
  Layout groups(Shape{Int(mma.groups_m()), Int(mma.groups_n())}, std::move(group_strides));
  Layout threads = make_layout({places.mode(0), groups});
  return {Shape{Int(tile.rows), Int(tile.columns)}, make_layout({threads, places.mode(1)})};
}

void require_positive(int groups_m, int groups_n, SourceLoc at) {
  if (groups_m > 0 && groups_n > 0) return;
  throw Error(ErrorKind::user,
              "TiledMma: " + std::to_string(groups_m) + " x " + std::to_string(groups_n) +
                  " groups of threads; take at least 1 x 1",
              at);
}

/// (thread, (values, rest, rest)) of a tile's layout.
Layout partition_layout(const char* what, const LayoutTV& tv, const Layout& tile, SourceLoc at) {
  if (!tile.shape().is_static() || tile.rank() != 2 || !evenly_divides(tile.shape(), tv.tiler)) {
    throw Error(ErrorKind::user,
                std::string(what) + ": the tile " + to_string(tile) + " is not a multiple of the " +
                    to_string(tv.tiler) +
                    " elements that the threads cover; choose a tile of whole multiples",
                at);
  }
  Layout divided = zipped_divide(tile, Tiler(tv.tiler));
  Layout thread_value = composition(divided.mode(0), tv.layout);
  Layout rest = divided.mode(1);
  return make_layout(
      {thread_value.mode(0), make_layout({thread_value.mode(1), rest.mode(0), rest.mode(1)})});
}

Tensor partition(const char* what, const TiledMma& mma, const LayoutTV& tv, const Tensor& tile,
                 const Value& thread, SourceLoc at) {
  Tracer& tracer = Tracer::current(what, at);
  Tracer::AttributeTo attribute(tracer, at);
  Layout whole = partition_layout(what, tv, tile.layout(), at);
  Value mine = thread.assume({1, 0, mma.threads() - 1});
  OffsetLayout part = slice_and_offset(Coord{IntTuple(to_int(mine, at)), _}, whole);
  return tile.at_offset(part.offset, whole.mode(1), at);
}

void require_warps(const char* what, const TiledMma& mma, SourceLoc at) {
  if (mma.atom().threads == 32 && bits(mma.atom().type) <= 32) return;
  throw Error(
      ErrorKind::user,
      std::string(what) + ": for mma.sync of 8- to 32-bit types; wgmma() reads tiles itself", at);
}

void require_extent(const char* what, int extent, int multiple, SourceLoc at) {
  if (extent > 0 && extent % multiple == 0) return;
  throw Error(ErrorKind::user,
              std::string(what) + ": a tile of " + std::to_string(extent) +
                  "; it takes multiples of " + std::to_string(multiple),
              at);
}

/// The group of threads along m, and along n.
Value group_m(const TiledMma& mma, const Value& thread, SourceLoc at) {
  Value group = Arg(thread, at) / mma.atom().threads;
  return (Arg(group, at) % mma.groups_m()).assume({1, 0, mma.groups_m() - 1});
}
Value group_n(const TiledMma& mma, const Value& thread, SourceLoc at) {
  return (Arg(thread, at) / (mma.atom().threads * mma.groups_m()))
      .assume({1, 0, mma.groups_n() - 1});
}

/// Where a group's rows of a repetition of the threads' tile begin.
Index first_row(const Value& group, int rows, int repetition_row, SourceLoc at) {
  Value begin = Arg(group, at) * rows;
  return to_int(begin, at) + Int(repetition_row);
}

}  // namespace

namespace {

constexpr int kPair = 2;  // instructions of an atom of mma.sync, along n

/// A layout's values for two instructions, the second `distance` places on.
Layout paired(const Layout& places, int distance) {
  Layout pair{Shape(kPair), Stride(distance)};
  Layout values = places.mode(1);
  return make_layout({places.mode(0), make_layout({values, pair})});
}

}  // namespace

MmaAtom mma_atom(Type type, SourceLoc at) {
  MmaShape one = mma_shape(type, at);
  // B of 8 rows becomes B of 16, whose columns lie twice as far apart.
  Layout b = in_taller(mma_layout_b(type, at), one.n, one.k, kPair * one.n);
  return {type,
          {one.m, kPair * one.n, one.k},
          32,
          mma_layout_a(type, at),
          paired(b, one.n),
          paired(mma_layout_c(), one.n * one.m)};
}

MmaAtom wgmma_atom(Type type, int n, SourceLoc at) {
  int k = wgmma_k(type, at);
  auto whole = [&](int rows) {
    return Layout(Shape{Int(128), Shape{Int(rows), Int(k)}},
                  Stride{Int(0), Stride{Int(1), Int(rows)}});
  };
  return {type, {64, n, k}, 128, whole(64), whole(n), wgmma_layout_c(n)};
}

TiledMma::TiledMma(const MmaAtom& atom, int groups_m, int groups_n, SourceLoc at)
    : atom_(atom), groups_m_(groups_m), groups_n_(groups_n) {
  require_positive(groups_m, groups_n, at);
}

LayoutTV TiledMma::tv_a() const {
  const MmaShape& s = atom_.shape;
  return tile_of(*this, atom_.a, {s.m, s.k}, {m(), s.k}, Stride{Int(s.m), Int(0)});
}
LayoutTV TiledMma::tv_b() const {
  const MmaShape& s = atom_.shape;
  return tile_of(*this, atom_.b, {s.n, s.k}, {n(), s.k}, Stride{Int(0), Int(s.n)});
}
LayoutTV TiledMma::tv_c() const {
  const MmaShape& s = atom_.shape;
  return tile_of(*this, atom_.c, {s.m, s.n}, {m(), n()}, Stride{Int(s.m), Int(s.n * m())});
}

Tensor partition_a(const TiledMma& mma, const Tensor& tile, const Value& thread, SourceLoc at) {
  return partition("partition_a", mma, mma.tv_a(), tile, thread, at);
}
Tensor partition_b(const TiledMma& mma, const Tensor& tile, const Value& thread, SourceLoc at) {
  return partition("partition_b", mma, mma.tv_b(), tile, thread, at);
}
Tensor partition_c(const TiledMma& mma, const Tensor& tile, const Value& thread, SourceLoc at) {
  return partition("partition_c", mma, mma.tv_c(), tile, thread, at);
}

Fragment make_fragment_c(const TiledMma& mma, Type sum, int m, int n, SourceLoc at) {
  require_extent("make_fragment_c", m, mma.m(), at);
  require_extent("make_fragment_c", n, mma.n(), at);
  return Fragment::undefined(sum, m * n / mma.threads(), at);
}

std::vector<Fragment> load_fragments_a(const TiledMma& mma, const MatrixTile& a, int k,
                                       const Value& thread, SourceLoc at) {
  const char* what = "load_fragments_a";
  require_warps(what, mma, at);
  require_extent(what, a.rows(), mma.m(), at);
  Value group = group_m(mma, thread, at);
  std::vector<Fragment> fragments;
  for (int row = 0; row < a.rows(); row += mma.m()) {
    Index begin = first_row(group, mma.atom().shape.m, row, at);
    fragments.push_back(load_matrix_a(a, begin, k * mma.k(), at));
  }
  return fragments;
}

std::vector<Fragment> load_fragments_b(const TiledMma& mma, const MatrixTile& b, int k,
                                       const Value& thread, SourceLoc at) {
  const char* what = "load_fragments_b";
  require_warps(what, mma, at);
  require_extent(what, b.rows(), mma.n(), at);
  Value group = group_n(mma, thread, at);
  std::vector<Fragment> fragments;
  for (int row = 0; row < b.rows(); row += mma.n()) {
    Index begin = first_row(group, mma.atom().shape.n, row, at);
    fragments.push_back(load_matrix_b(b, begin, k * mma.k(), at));
  }
  return fragments;
}

std::vector<Fragment> load_fragments(const Tensor& part, SourceLoc at) {
  const Layout& layout = part.layout();
  if (layout.rank() != 2) {
    throw Error(ErrorKind::user,
                "load_fragments: a part of shape " + to_string(part.shape()) +
                    "; give (values, rest), a partition at one step along k",
                at);
  }
  auto values = static_cast<int>(size(layout.mode(0)).value());
  auto rests = static_cast<int>(size(layout.mode(1)).value());
  std::vector<Fragment> fragments;
  for (int rest = 0; rest < rests; ++rest) {
    Fragment fragment(part.type(), values, at);
    for (int v = 0; v < values; ++v)
      fragment.at(v, at) = Arg(part.element(Coord{Int(v), Int(rest)}, at).load(), at);
    fragments.push_back(fragment);
  }
  return fragments;
}

void multiply(const TiledMma& mma, const Fragment& c, const std::vector<Fragment>& a,
              const std::vector<Fragment>& b, MmaOrder order, SourceLoc at) {
  const MmaShape& shape = mma.atom().shape;
  int values = shape.m * shape.n / mma.atom().threads;
  int count = static_cast<int>(a.size() * b.size());
  if (mma.atom().threads != 32 || c.size() != values * count) {
    throw Error(ErrorKind::user,
                "multiply: " + std::to_string(c.size()) + " sums for " + std::to_string(a.size()) +
                    " fragments A and " + std::to_string(b.size()) + " fragments B of mma.sync; " +
                    "it takes " + std::to_string(values) + " sums for each pair",
                at);
  }
  auto one = [&](std::size_t i, std::size_t j, int half) {
    int begin = static_cast<int>(j * a.size() + i) * values;
    int half_b = b[j].size() / kPair;
    Fragment sums = c.part(begin + half * values / kPair, values / kPair, at);
    tilewright::mma(sums, a[i], b[j].part(half * half_b, half_b, at), at);
  };
  for (std::size_t j = 0; j < b.size(); ++j) {
    if (order == MmaOrder::pairs) {
      for (std::size_t i = 0; i < a.size(); ++i) {
        for (int half = 0; half < kPair; ++half)
          one(i, j, half);
      }
      continue;
    }
    for (int half = 0; half < kPair; ++half) {  // down, then up
      for (std::size_t i = 0; i < a.size(); ++i)
        one(half == 0 ? i : a.size() - 1 - i, j, half);
    }
  }
}

void store_fragment_c(const TiledMma& mma, const Fragment& c, const Tensor& tile,
                      const Bounds& inside, const Value& thread, SourceLoc at) {
  Tracer& tracer = Tracer::current("store_fragment_c", at);
  Tracer::AttributeTo attribute(tracer, at);
  Tensor part = partition_c(mma, tile, thread, at);
  if (size(part.layout()).value() != c.size() || c.type() != tile.type()) {
    throw Error(ErrorKind::user,
                "store_fragment_c: " + std::to_string(c.size()) + " sums of " +
                    std::string(name(c.type())) + " for a part of shape " +
                    to_string(part.shape()) + " and type " + std::string(name(tile.type())) +
                    "; both must be equal",
                at);
  }
  Layout places =
      partition_layout("store_fragment_c", mma.tv_c(), make_identity_layout(tile.shape()), at);
  Int mine = to_int(thread.assume({1, 0, mma.threads() - 1}), at);
  constexpr int kNeighbours = 2;
  for (int i = 0; i < c.size(); i += kNeighbours) {
    bool together = (part.layout()(Int(i + 1)) - part.layout()(Int(i))).is_static(1);
    IntTuple place = evaluate(places, Coord{IntTuple(mine), IntTuple(Int(i))});
    Value stored = inside.contains(place, at);
    if (together) {
      store_if(Arg(stored, at), part.element(Int(i), at), c.part(i, kNeighbours, at));
      continue;
    }
    for (int e = i; e < i + kNeighbours; ++e) {
      if_(Arg(stored, at), [&] { part.element(Int(e), at).store(Arg(c.at(e, at).get(), at)); });
    }
  }
}

}  // namespace tilewright
