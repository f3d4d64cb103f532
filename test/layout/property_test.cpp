// SPDX-License-Identifier: Apache-2.0
// Post-conditions of every operation over random layouts.
#include "layout/random_layout.h"
#include "tilewright/swizzle.h"

#include <gtest/gtest.h>
#include <set>

namespace tilewright {
namespace {

std::int64_t size_of(const Layout& layout) { return size(layout).value(); }
std::int64_t at(const Layout& layout, std::int64_t i) { return layout(i).value(); }

std::multiset<std::int64_t> image(const Layout& layout) {
  std::multiset<std::int64_t> result;
  for (std::int64_t i = 0; i < size_of(layout); ++i) {
    result.insert(at(layout, i));
  }
  return result;
}

// How many of the rounds an operation answered: a property that is never tried proves nothing.
class Tried {
 public:
  explicit Tried(int least) : least_(least) {}
  ~Tried() { EXPECT_GE(count_, least_); }
  Tried(const Tried&) = delete;
  Tried& operator=(const Tried&) = delete;
  void one() { ++count_; }

 private:
  int least_;
  int count_ = 0;
};

TEST(Property, CrdToIdxIsTheSumOfDigitsTimesStrides) {
  for_each_seed([](RandomLayouts& random) {
    const Layout a = random.any();
    const Shape extents = flatten(a.shape());
    const Stride strides = flatten(a.stride());
    for (std::int64_t i = 0; i < size_of(a); ++i) {
      std::int64_t rest = i;
      std::int64_t index = 0;
      for (int mode = 0; mode < extents.rank(); ++mode) {
        index += rest % extents[mode].value().value() * strides[mode].value().value();
        rest /= extents[mode].value().value();
      }
      ASSERT_EQ(at(a, i), index) << to_string(a) << " at " << i;
      ASSERT_EQ(a(idx2crd(i, a.shape())), Int(index));
      ASSERT_EQ(crd2idx(idx2crd(i, a.shape()), a.shape()), Int(i));
    }
  });
}

TEST(Property, CoalesceKeepsTheFunctionAndIsFlat) {
  for_each_seed([](RandomLayouts& random) {
    const Layout a = random.any();
    const Layout b = coalesce(a);
    SCOPED_TRACE(to_string(a) + " to " + to_string(b));
    ASSERT_EQ(size(b), size(a));
    ASSERT_LE(depth(b), 1);
    for (std::int64_t i = 0; i < size_of(a); ++i) {
      ASSERT_EQ(at(a, i), at(b, i));
    }
    for (int i = 0; b.rank() > 1 && i < b.rank(); ++i) {
      ASSERT_NE(b.shape()[i], IntTuple(1));
      ASSERT_TRUE(i == 0 ||
                  !(b.shape()[i - 1].value() * b.stride()[i - 1].value() == b.stride()[i].value()));
    }
    const Layout by_mode =
        coalesce(a, repeat_like(take(IntTuple::tuple({0, 0, 0, 0}), 0, a.rank()), 1));
    ASSERT_EQ(by_mode.rank(), a.rank());
    for (std::int64_t i = 0; i < size_of(a); ++i) {
      ASSERT_EQ(at(a, i), at(by_mode, i));
    }
  });
}

TEST(Property, FilterKeepsTheImage) {
  for_each_seed([](RandomLayouts& random) {
    const Layout a = random.any();
    const std::multiset<std::int64_t> all = image(a);
    const std::multiset<std::int64_t> kept = image(filter(a));
    ASSERT_EQ(std::set<std::int64_t>(all.begin(), all.end()),
              std::set<std::int64_t>(kept.begin(), kept.end()))
        << to_string(a);
    ASSERT_EQ(size_of(a), size_of(filter(a)) * size_of(nullspace(a))) << to_string(a);
  });
}

TEST(Property, CompositionIsTheFunctionOfBothOrIsRefusedWithReason) {
  Tried tried(kRounds / 3);
  for_each_seed([&tried](RandomLayouts& random) {
    const Layout a = random.any();
    const Layout b = random.pick(0, 2) == 0 ? random.any(3) : random.divisor_of(size_of(a));
    Layout c;
    try {
      c = composition(a, b);
    } catch (const Error& e) {
      ASSERT_EQ(e.kind(), ErrorKind::user) << e.what();
      ASSERT_NE(e.message().find("composition: "), std::string::npos);
      return;
    }
    tried.one();
    ASSERT_TRUE(compatible(b.shape(), c.shape())) << to_string(c);
    for (std::int64_t i = 0; i < size_of(b); ++i) {
      // The last mode of a goes on beyond its end, also below 0.
      ASSERT_EQ(at(c, i), at(a, at(b, i)))
          << to_string(a) << " o " << to_string(b) << " = " << to_string(c) << " at " << i;
    }
  });
}

TEST(Property, CompositionWithAPermutationOfCoordinatesNeverFails) {
  for_each_seed([](RandomLayouts& random) {
    const Layout a = random.any();
    const Layout inverse = right_inverse(Layout(a.shape()));
    const Layout c = composition(a, inverse);
    for (std::int64_t i = 0; i < size_of(a); ++i) {
      ASSERT_EQ(at(c, i), at(a, i));
    }
  });
}

TEST(Property, ComplementIsOrderedDisjointAndFills) {
  Tried tried(kRounds / 2);
  for_each_seed([&tried](RandomLayouts& random) {
    const Layout a = random.injective(3);
    const std::int64_t target = cosize(a).value() * random.pick(1, 3);
    const Layout b = complement(a, IntTuple(target));
    SCOPED_TRACE(to_string(a) + " in " + std::to_string(target) + ": " + to_string(b));
    tried.one();
    for (std::int64_t i = 1; i < size_of(b); ++i) {
      ASSERT_LT(at(b, i - 1), at(b, i));
    }
    const Layout both = make_layout({a, b});
    const std::multiset<std::int64_t> all = image(both);
    ASSERT_EQ(std::set<std::int64_t>(all.begin(), all.end()).size(), all.size());
    for (std::int64_t i = 0; i < target; ++i) {
      ASSERT_EQ(all.count(i), 1U) << i;
    }
  });
}

TEST(Property, PaddedBlocksHaveComplementsAndProducts) {
  for_each_seed([](RandomLayouts& random) {
    const Layout a = random.padded(3);
    const std::int64_t target = cosize(a).value() * random.pick(1, 3);
    const Layout b = complement(a, IntTuple(target));
    SCOPED_TRACE(to_string(a) + " in " + std::to_string(target) + ": " + to_string(b));
    for (std::int64_t i = 1; i < size_of(b); ++i) {
      ASSERT_LT(at(b, i - 1), at(b, i));
    }
    const Layout copies(Shape(size_of(b) * random.pick(1, 3)));
    for (const Layout& both : {make_layout({a, b}), logical_product(a, copies)}) {
      const std::multiset<std::int64_t> all = image(both);
      ASSERT_EQ(std::set<std::int64_t>(all.begin(), all.end()).size(), all.size())
          << to_string(both);
    }
    ASSERT_EQ(size_of(logical_product(a, copies)), size_of(a) * size_of(copies));
  });
}

TEST(Property, InversesInvert) {
  for_each_seed([](RandomLayouts& random) {
    const Layout a = random.any();
    const Layout right = right_inverse(a);
    for (std::int64_t i = 0; i < size_of(right); ++i) {
      ASSERT_EQ(at(a, at(right, i)), i) << to_string(a) << ", " << to_string(right);
    }
    const Layout b = random.injective();
    const Layout left = left_inverse(b);
    for (std::int64_t i = 0; i < size_of(b); ++i) {
      ASSERT_EQ(at(left, at(b, i)), i) << to_string(b) << ", " << to_string(left);
    }
    const Layout c = random.compact();
    ASSERT_EQ(size(right_inverse(c)), size(c)) << to_string(c);
  });
}

TEST(Property, NullspaceMapsToZero) {
  for_each_seed([](RandomLayouts& random) {
    const Layout a = random.any();
    const Layout n = nullspace(a);
    for (std::int64_t i = 0; i < size_of(n); ++i) {
      ASSERT_EQ(at(a, at(n, i)), 0) << to_string(a) << ", " << to_string(n);
    }
  });
}

TEST(Property, DividesPermuteTheElements) {
  Tried tried(kRounds / 4);
  for_each_seed([&tried](RandomLayouts& random) {
    const Layout a = random.compact();
    std::vector<Tiler> modes;
    for (int i = 0; i < a.rank(); ++i) {
      modes.push_back(random.pick(0, 3) == 0 ? Tiler(_)
                                             : Tiler(random.divisor_of(size_of(a.mode(i)), 1)));
    }
    const Tiler tiler = Tiler::by_mode(modes);
    Layout logical;
    try {
      logical = logical_divide(a, tiler);
    } catch (const Error&) {
      return;  // a tile that cuts across nested modes
    }
    tried.one();
    SCOPED_TRACE(to_string(a) + " by " + to_string(tiler));
    const Layout zipped = zipped_divide(a, tiler);
    const Layout tiled = tiled_divide(a, tiler);
    const Layout flat = flat_divide(a, tiler);
    for (const Layout& result : {logical, zipped, tiled, flat}) {
      ASSERT_EQ(image(result), image(a)) << to_string(result);
    }
    ASSERT_EQ(zipped.rank(), 2);
    ASSERT_EQ(coalesce(zipped), coalesce(tiled));
    ASSERT_EQ(coalesce(zipped), coalesce(flat));
    // The tile at the origin is the composition with the tiler.
    for (std::int64_t i = 0; i < size_of(zipped.mode(0)); ++i) {
      ASSERT_EQ(zipped(Coord{i, 0}), zipped.mode(0)(i));
    }
  });
}

TEST(Property, LogicalDivideByALayoutTakesItFirst) {
  Tried tried(kRounds / 4);
  for_each_seed([&tried](RandomLayouts& random) {
    const Layout a = random.any();
    const Layout tile = random.divisor_of(size_of(a));
    try {
      const Layout divided = logical_divide(a, tile);
      tried.one();
      ASSERT_EQ(size(divided), size(a));
      for (std::int64_t i = 0; i < size_of(tile); ++i) {
        ASSERT_EQ(divided(Coord{i, 0}), a(tile(i)));
      }
      ASSERT_EQ(image(divided), image(a)) << to_string(a) << " by " << to_string(tile);
    } catch (const Error& e) {
      ASSERT_EQ(e.kind(), ErrorKind::user);
    }
  });
}

TEST(Property, ProductsRepeatTheBlock) {
  Tried tried(kRounds / 4);
  for_each_seed([&tried](RandomLayouts& random) {
    const Layout block = random.pick(0, 1) == 0 ? random.injective(2) : random.compact(2);
    const Layout tiler = random.compact(2);
    Layout product;
    try {
      product = logical_product(block, tiler);
    } catch (const Error&) {
      return;  // gaps of the block that the tiler does not fill evenly
    }
    tried.one();
    SCOPED_TRACE(to_string(block) + " by " + to_string(tiler) + ": " + to_string(product));
    ASSERT_EQ(product.mode(0), block);
    ASSERT_TRUE(compatible(tiler.shape(), product.mode(1).shape()));
    const std::multiset<std::int64_t> all = image(product);
    ASSERT_EQ(std::set<std::int64_t>(all.begin(), all.end()).size(), all.size());
    if (block.rank() != tiler.rank() || !block.shape().is_tuple()) return;
    for (const Layout& result : {blocked_product(block, tiler), raked_product(block, tiler)}) {
      ASSERT_EQ(result.rank(), block.rank());
      ASSERT_EQ(image(result), all) << to_string(result);
    }
  });
}

TEST(Property, TileToShapeRepeatsTheBlockOverTheTarget) {
  for_each_seed([](RandomLayouts& random) {
    const Layout block = append_to_rank(random.compact(2), 2);
    const std::int64_t rows = size(block.shape()[0]).value();
    const std::int64_t columns = size(block.shape()[1]).value();
    const Shape target{rows * random.pick(1, 3), columns * random.pick(1, 3)};
    const Layout result = tile_to_shape(block, target);
    SCOPED_TRACE(to_string(block) + " to " + to_string(target) + ": " + to_string(result));
    ASSERT_TRUE(compatible(target, result.shape()));
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < columns; ++j) {
        ASSERT_EQ(result(i, j), block(i, j));
      }
    }
    const std::multiset<std::int64_t> all = image(result);
    ASSERT_EQ(*all.rbegin() + 1, size_of(result));
    ASSERT_EQ(std::set<std::int64_t>(all.begin(), all.end()).size(), all.size());
  });
}

TEST(Property, RecastsCoverTheSameBytes) {
  for_each_seed([](RandomLayouts& random) {
    const Layout a = random.compact();
    const std::int64_t n = max_alignment(a).value();
    ASSERT_GE(n, 1);
    const Layout wide = upcast(a, n);
    ASSERT_EQ(size_of(wide) * n, size_of(a)) << to_string(a) << " by " << n;
    std::set<std::int64_t> narrow;
    for (std::int64_t i : image(a)) {
      narrow.insert(i / n);
    }
    const std::multiset<std::int64_t> all = image(wide);
    ASSERT_EQ(narrow, std::set<std::int64_t>(all.begin(), all.end())) << to_string(wide);
    if (size_of(a) == 1) return;
    const Layout thin = downcast(a, 4);
    ASSERT_EQ(size_of(thin), size_of(a) * 4);
    ASSERT_EQ(coalesce(upcast(thin, 4)), coalesce(a));
  });
}

TEST(Property, CommonVectorsAreContiguousInBoth) {
  for_each_seed([](RandomLayouts& random) {
    const Layout a = random.compact();
    const Layout b(a.shape(), random.pick(0, 1) == 0 ? a.stride() : compact_row_major(a.shape()));
    const std::int64_t n = max_common_vector(a, b).value();
    const Layout common = max_common_layout(a, b);
    ASSERT_EQ(size_of(common), n);
    for (std::int64_t i = 0; i < n; ++i) {
      ASSERT_EQ(at(a, at(common, i)), i) << to_string(a) << ", " << to_string(b);
      ASSERT_EQ(at(b, at(common, i)), i) << to_string(a) << ", " << to_string(b);
    }
  });
}

TEST(Property, SliceAndDiceSplitTheCoordinate) {
  for_each_seed([](RandomLayouts& random) {
    const Layout a = append_to_rank(random.any(), 2);
    const std::int64_t fixed = random.pick(0, static_cast<int>(size(a.shape()[1]).value()) - 1);
    std::vector<IntTuple> coord{_, fixed};
    coord.resize(static_cast<std::size_t>(a.rank()), _);
    const OffsetLayout part = slice_and_offset(IntTuple::tuple(coord), a);
    ASSERT_EQ(part.layout.rank(), a.rank() - 1);
    for (std::int64_t i = 0; i < size(a.shape()[0]).value(); ++i) {
      std::vector<IntTuple> whole(static_cast<std::size_t>(a.rank()), 0);
      whole[0] = i;
      whole[1] = fixed;
      std::vector<IntTuple> rest(static_cast<std::size_t>(a.rank() - 1), 0);
      rest[0] = i;
      ASSERT_EQ(part.layout(IntTuple::tuple(rest)) + part.offset, a(IntTuple::tuple(whole)));
    }
    ASSERT_EQ(dice(IntTuple::tuple(coord), a).rank(), 1);
    const IntTuple corner = idx2crd(random.pick(0, static_cast<int>(size_of(a)) - 1), a.shape());
    ASSERT_EQ(domain_offset(corner, a), (OffsetLayout{a, a(corner)}));
  });
}

TEST(Property, OrderedLayoutsAreCompact) {
  for_each_seed([](RandomLayouts& random) {
    const Shape shape = IntTuple::tuple(random.extents(4));
    std::vector<IntTuple> order;
    for (int i = 0; i < shape.rank(); ++i) {
      order.insert(order.begin() + random.pick(0, i), i);
    }
    const Layout a = make_ordered_layout(shape, IntTuple::tuple(order));
    ASSERT_EQ(size(right_inverse(a)), size(a)) << to_string(a);
    const Layout b = make_layout_like(random.injective());
    ASSERT_EQ(size(right_inverse(b)), size(b)) << to_string(b);
  });
}

TEST(Property, IdentityLayoutsGiveTheirCoordinate) {
  for_each_seed([](RandomLayouts& random) {
    const Shape shape = IntTuple::tuple(random.extents(3));
    const Layout a = make_identity_layout(shape);
    const Layout order = random.divisor_of(size_of(Layout(shape)));
    for (std::int64_t i = 0; i < size_of(a); ++i) {
      ASSERT_EQ(evaluate(a, i), idx2crd(i, shape));
    }
    try {
      const Layout picked = composition(a, order);
      for (std::int64_t i = 0; i < size_of(order); ++i) {
        ASSERT_EQ(crd2idx(append_to_rank(evaluate(picked, i), shape.rank(), 0), shape), order(i));
      }
    } catch (const Error& e) {
      ASSERT_NE(e.message().find("composition: "), std::string::npos) << e.what();
    }
  });
}

TEST(Property, ThreadValueLayoutsNumberEveryElementOnce) {
  for_each_seed([](RandomLayouts& random) {
    const Layout threads = append_to_rank(random.compact(2), 2);
    const Layout values = append_to_rank(random.compact(2), 2);
    const LayoutTV tv = make_layout_tv(threads, values);
    ASSERT_EQ(tv.layout.rank(), 2);
    ASSERT_EQ(size(tv.tiler), size(tv.layout));
    const std::multiset<std::int64_t> all = image(tv.layout);
    ASSERT_EQ(std::set<std::int64_t>(all.begin(), all.end()).size(), all.size());
    ASSERT_EQ(*all.rbegin() + 1, size_of(tv.layout));
  });
}

TEST(Property, LocalTilesAndPartitionsCoverOnce) {
  for_each_seed([](RandomLayouts& random) {
    const std::int64_t rows = random.pick({2, 4, 6});
    const std::int64_t columns = random.pick({1, 3, 4});
    const Layout a = random.pick(0, 1) == 0 ? Layout(Shape{rows * 2, columns * 3})
                                            : make_row_major(Shape{rows * 2, columns * 3});
    std::multiset<std::int64_t> tiles;
    for (int i = 0; i < 2; ++i) {
      for (int j = 0; j < 3; ++j) {
        const OffsetLayout tile = local_tile(a, Shape{rows, columns}, Coord{i, j});
        ASSERT_EQ(tile.layout.shape(), (Shape{rows, columns}));
        ASSERT_EQ(tile.offset, a(i * rows, j * columns));
        for (std::int64_t e : image(tile.layout)) {
          tiles.insert(e + tile.offset.value());
        }
      }
    }
    ASSERT_EQ(tiles, image(a));
    const Layout threads = make_row_major(Shape{rows, columns});
    std::multiset<std::int64_t> parts;
    for (std::int64_t t = 0; t < size_of(threads); ++t) {
      const OffsetLayout part = local_partition(a, threads, t);
      ASSERT_EQ(part.offset, a(t / columns, t % columns));
      for (std::int64_t e : image(part.layout)) {
        parts.insert(e + part.offset.value());
      }
    }
    ASSERT_EQ(parts, image(a));
  });
}

TEST(Property, SwizzlesAreTheirOwnInverseAndPermuteABlock) {
  for_each_seed([](RandomLayouts& random) {
    const int bits = random.pick(0, 3);
    const int shift = random.pick(bits, 4) * (random.pick(0, 1) == 0 ? 1 : -1);
    const Swizzle s(bits, random.pick(0, 4), shift);
    for (std::int64_t i = 0; i < 2048; ++i) {
      ASSERT_EQ(s(s(i)), Int(i));
      ASSERT_EQ(s(i).value() & ~s.target_mask(), i & ~s.target_mask());
    }
    const Layout bits_moved = make_ordered_layout(Shape{64, 64}, IntTuple{1, 0});
    if (s.is_identity() || std::max(s.source_mask(), s.target_mask()) >= 4096) return;
    try {
      const ComposedLayout moved = composition(bits_moved, s);
      for (std::int64_t i = 0; i < 4096; ++i) {
        ASSERT_EQ(moved(i), bits_moved(s(i))) << to_string(s);
      }
    } catch (const Error& e) {
      ASSERT_NE(e.message().find("composition: "), std::string::npos) << e.what();
    }
    const ComposedLayout tile = composition(s, Layout(Shape{64, 64}));
    const ComposedLayout wide = recast_layout(32, 16, tile);
    for (std::int64_t i = 0; i < 32; ++i) {
      if (s.base() == 0) break;  // a swizzle within a wide element cannot be recast
      ASSERT_EQ(wide(i, 5).value(), tile(2 * i, 5).value() / 2) << to_string(wide);
    }
  });
}

}  // namespace
}  // namespace tilewright
