// SPDX-License-Identifier: Apache-2.0
// Dynamic leaves through the algebra: for every value that fits the facts, the dynamic result is
// the static one.
#include "layout/random_layout.h"
#include "tilewright/layout_text.h"

#include <functional>
#include <gtest/gtest.h>

namespace tilewright {
namespace {

using Values = std::vector<std::int64_t>;  // by symbol id

std::int64_t value_of(const Int& x, const Values& values) {
  if (x.is_static()) return x.value();
  const IntNode& node = *x.node();
  if (node.op == IntOp::symbol) return values.at(node.symbol);
  return Int::apply(node.op, value_of(node.lhs, values), value_of(node.rhs, values)).value();
}

IntTuple substitute(const IntTuple& t, const Values& values) {
  if (!t.is_tuple()) return {Int(value_of(t.value(), values)), t.basis()};
  std::vector<IntTuple> result;
  for (const IntTuple& e : t.elems()) {
    result.push_back(substitute(e, values));
  }
  return IntTuple::tuple(std::move(result));
}

Layout substitute(const Layout& layout, const Values& values) {
  return {substitute(layout.shape(), values), substitute(layout.stride(), values)};
}

// Replaces random leaves by symbols that are known to be multiples of something.
class Symbols {
 public:
  explicit Symbols(RandomLayouts& random) : random_(random) {}

  IntTuple hide(const IntTuple& t) {
    if (t.is_tuple()) {
      std::vector<IntTuple> result;
      for (const IntTuple& e : t.elems()) {
        result.push_back(hide(e));
      }
      return IntTuple::tuple(std::move(result));
    }
    const std::int64_t value = t.value().value();
    if (value < 2 || random_.pick(0, 2) != 0) return t;
    values_.push_back(value);
    const std::int64_t divisor = random_.pick(0, 1) == 0 ? value : std::gcd(value, std::int64_t{4});
    return Int::symbol(values_.size() - 1, {divisor, 1});
  }
  Layout hide(const Layout& layout) { return {hide(layout.shape()), hide(layout.stride())}; }
  const Values& values() const { return values_; }

 private:
  RandomLayouts& random_;
  Values values_{0};  // id 0 is no id
};

void expect_same(const Layout& dynamic, const Layout& fixed, const Values& values) {
  const Layout known = substitute(dynamic, values);
  ASSERT_EQ(size(known), size(fixed)) << to_string(dynamic);
  for (std::int64_t i = 0; i < size(fixed).value(); ++i) {
    ASSERT_EQ(known(i), fixed(i)) << to_string(dynamic) << " is " << to_string(known) << " not "
                                  << to_string(fixed);
  }
}

// Runs `f` on layouts with hidden leaves and on the same with known ones, and compares.
void compare(const char* name, int least,
             const std::function<Layout(const Layout&, RandomLayouts&)>& f) {
  int answered = 0;
  for (std::uint32_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(std::string(name) + ", seed " + std::to_string(seed));
    RandomLayouts random(seed);
    const Layout fixed = random.injective(3);
    Symbols symbols(random);
    const Layout dynamic = symbols.hide(fixed);
    RandomLayouts same_choices(seed + 1000);
    Layout result;
    try {
      result = f(dynamic, same_choices);
    } catch (const Error& e) {
      ASSERT_EQ(e.kind(), ErrorKind::user) << e.what();
      continue;
    }
    ++answered;
    same_choices = RandomLayouts(seed + 1000);
    expect_same(result, f(fixed, same_choices), symbols.values());
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GE(answered, least) << name;
}

TEST(Dynamic, ResultsAreTheStaticOnes) {
  compare("coalesce", 300, [](const Layout& a, RandomLayouts&) { return coalesce(a); });
  compare("composition", 100, [](const Layout& a, RandomLayouts& random) {
    return composition(a, random.divisor_of(24));
  });
  compare("logical_divide", 100, [](const Layout& a, RandomLayouts& random) {
    return logical_divide(a, random.pick(1, 4));
  });
  compare("zipped_divide", 100, [](const Layout& a, RandomLayouts& random) {
    const Shape tile =
        append_to_rank(IntTuple::tuple({random.pick(1, 4)}), a.rank() > 1 ? 2 : 1, 2);
    return zipped_divide(a.shape().is_tuple() ? a : make_layout({a}), tile);
  });
  compare("complement", 60,
          [](const Layout& a, RandomLayouts&) { return complement(a, IntTuple(720)); });
  compare("append", 300, [](const Layout& a, RandomLayouts&) { return append(a, Layout(4, 7)); });
  compare("upcast", 60, [](const Layout& a, RandomLayouts&) { return upcast(a, 2); });
}

TEST(Dynamic, CoordinatesBecomeExpressions) {
  for (std::uint32_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomLayouts random(seed);
    const Layout fixed = random.any(3);
    Symbols symbols(random);
    const Layout dynamic = symbols.hide(fixed);
    Values values = symbols.values();
    const Int coord = Int::symbol(values.size(), {1, 0, size(fixed).value() - 1});
    const Int index = dynamic(IntTuple(coord));
    values.push_back(0);
    for (std::int64_t i = 0; i < size(fixed).value(); ++i) {
      values.back() = i;
      ASSERT_EQ(value_of(index, values), fixed(i).value()) << to_string(fixed) << " at " << i;
      ASSERT_GE(value_of(index, values), index.min());
      ASSERT_LE(value_of(index, values), index.max());
      ASSERT_TRUE(index.divisor() == 0 || value_of(index, values) % index.divisor() == 0);
    }
  }
}

struct LayoutRow {
  const char* name;
  Layout result;
  const char* expected;
};

TEST(Dynamic, TilesOfDynamicMatricesRoundUp) {
  const Int rows = Int::symbol(1);
  const Int pitch = Int::symbol(2, {64, 64});
  const Layout matrix(Shape{rows, pitch}, Stride{pitch, 1});
  const LayoutRow table[] = {
      {"the grid of ragged tiles", zipped_divide(matrix, Shape{128, 64}),
       "((128,64),(?,?)):((?{div=64},1),(?{div=8192},64))"},
      {"a tile of it", local_tile(matrix, Shape{128, 64}, Coord{3, _}).layout,
       "(128,64,?):(?{div=64},1,64)"},
      {"an exact tile", logical_divide(Layout(Shape(pitch)), 16), "(16,?{div=4}):(1,16)"},
      {"a mode of tiles below a dynamic one",
       composition(parse_layout("((16,?{div=4}),8):((1,32),16)"), Layout(64)), "(16,4):(1,32)"},
  };
  for (const LayoutRow& row : table) {
    EXPECT_EQ(to_string(row.result), row.expected) << row.name;
  }
  EXPECT_EQ(local_tile(matrix, Shape{128, 64}, Coord{3, 2}).offset, pitch * 384 + 128);
  EXPECT_EQ(max_common_vector(matrix, make_row_major(Shape{128, 64})), Int(1))
      << "a dynamic extent is not known to reach 64";
  EXPECT_EQ(max_alignment(matrix), Int(64));
}

TEST(Dynamic, UndecidedCasesNameTheLeafAndTheRemedy) {
  const auto message = [](const char* lhs, const char* rhs) -> std::string {
    try {
      return to_string(composition(parse_layout(lhs), parse_layout(rhs)));
    } catch (const Error& e) {
      return e.message();
    }
  };
  EXPECT_EQ(
      message("(?,8):(1,3)", "8:1"),
      "composition: (?,8):(1,3) o 8:1: the extent 8 is no multiple of the ? steps of stride 1 "
      "that the mode ?:1 has room for; give the dynamic one a divisor, or make it static");
  EXPECT_EQ(message("(?{div=8},8):(1,3)", "8:1"), "8:1");
  EXPECT_EQ(
      message("(?,8):(1,3)", "2:4"),
      "composition: (?,8):(1,3) o 2:4: the stride 4 is not known to be less than, or a multiple "
      "of, the extent of the mode ?:1; give the dynamic one a divisor or bounds, or make it "
      "static");
  EXPECT_EQ(message("(?{min=8,max=9},8):(1,3)", "2:4"), "2:4");
}

}  // namespace
}  // namespace tilewright
