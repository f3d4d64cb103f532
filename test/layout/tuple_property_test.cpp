// SPDX-License-Identifier: Apache-2.0
// Post-conditions of the functions on shapes and modes, over random ones.
#include "layout/random_layout.h"

#include <numeric>

namespace tilewright {
namespace {

std::vector<IntTuple> leaves(const IntTuple& t) {
  const IntTuple flat = flatten(t);
  return {flat.elems().begin(), flat.elems().end()};
}
std::int64_t number(const IntTuple& leaf) { return leaf.value().value(); }

/// Positive numbers of the shape's nesting.
IntTuple numbers_like(RandomLayouts& random, const Shape& shape) {
  std::vector<IntTuple> numbers;
  for (const IntTuple& extent : leaves(shape)) {
    numbers.push_back(random.pick(1, static_cast<int>(number(extent)) + 1));
  }
  return shape.is_tuple() ? unflatten(IntTuple::tuple(std::move(numbers)), shape) : numbers[0];
}

TEST(TupleProperty, MeasuresSayHowFarALayoutReaches) {
  for_each_seed([](RandomLayouts& random) {
    const Layout a = random.injective();
    std::int64_t elements = 1;
    std::int64_t largest = 0;
    for (std::size_t i = 0; i < leaves(a.shape()).size(); ++i) {
      const std::int64_t extent = number(leaves(a.shape())[i]);
      elements *= extent;
      largest += (extent - 1) * number(leaves(a.stride())[i]);
    }
    ASSERT_EQ(size(a).value(), elements) << to_string(a);
    ASSERT_EQ(cosize(a).value(), largest + 1) << to_string(a);
    ASSERT_EQ(coshape(a), IntTuple(largest + 1)) << to_string(a);
    int deepest = 0;
    for (int i = 0; a.shape().is_tuple() && i < rank(a); ++i) {
      deepest = std::max(deepest, depth(a.mode(i)));
    }
    ASSERT_EQ(depth(a), a.shape().is_tuple() ? deepest + 1 : 0) << to_string(a);
  });
}

TEST(TupleProperty, ArithmeticGoesByTheLeaves) {
  for_each_seed([](RandomLayouts& random) {
    const Shape a = random.shape(4);
    const IntTuple b = numbers_like(random, a);
    SCOPED_TRACE(to_string(a) + ", " + to_string(b));
    std::int64_t multiplied = 1, added = 0, inner = 0;
    for (std::size_t i = 0; i < leaves(a).size(); ++i) {
      multiplied *= number(leaves(a)[i]);
      added += number(leaves(a)[i]);
      inner += number(leaves(a)[i]) * number(leaves(b)[i]);
    }
    ASSERT_EQ(product(a).value(), multiplied);
    ASSERT_EQ(sum(a).value(), added);
    ASSERT_EQ(inner_product(a, b).value(), inner);
    ASSERT_EQ(product(product_each(a)).value(), multiplied);
    ASSERT_EQ(rank(product_each(a)), rank(a));
    ASSERT_LE(depth(product_each(a)), 1);
    ASSERT_TRUE(congruent(elem_scale(a, b), a));
    ASSERT_EQ(sum(elem_scale(a, b)).value(), inner);
  });
}

TEST(TupleProperty, DivisorsAreUsedUpModeByMode) {
  for_each_seed([](RandomLayouts& random) {
    const Shape a = random.shape(4);
    const IntTuple b = numbers_like(random, a);
    SCOPED_TRACE(to_string(a) + ", " + to_string(b));
    const IntTuple quotient = ceil_div(a, b);
    const IntTuple whole = round_up(a, b);
    ASSERT_EQ(elem_scale(quotient, b), whole);
    for (std::size_t i = 0; i < leaves(a).size(); ++i) {
      ASSERT_GE(number(leaves(whole)[i]), number(leaves(a)[i]));
      ASSERT_LT(number(leaves(whole)[i]), number(leaves(a)[i]) + number(leaves(b)[i]));
    }
    // The first modes, and a divisor of the next one.
    std::int64_t divisor = 1;
    for (const IntTuple& leaf : leaves(a)) {
      const bool all = random.pick(0, 1) == 0;
      divisor *= all ? number(leaf) : std::gcd(number(leaf), std::int64_t{random.pick(1, 8)});
      if (!all) break;
    }
    ASSERT_EQ(size(shape_div(a, IntTuple(divisor))).value() * divisor, size(a).value()) << divisor;
  });
}

TEST(TupleProperty, ProfilesAreComparedLeafByLeaf) {
  for_each_seed([](RandomLayouts& random) {
    const Shape a = random.shape(4);
    const IntTuple b = numbers_like(random, a);
    SCOPED_TRACE(to_string(a) + ", " + to_string(b));
    bool divides = true;
    for (std::size_t i = 0; i < leaves(a).size(); ++i) {
      divides = divides && number(leaves(a)[i]) % number(leaves(b)[i]) == 0;
    }
    ASSERT_EQ(evenly_divides(a, b), divides);
    ASSERT_TRUE(congruent(a, b));
    ASSERT_EQ(compatible(a, b), a == b);
    for (const IntTuple& coarse : {a.is_tuple() ? product_each(a) : a, IntTuple(product(a))}) {
      ASSERT_TRUE(weakly_congruent(coarse, a));
      ASSERT_TRUE(compatible(coarse, a));
      ASSERT_EQ(congruent(coarse, a), depth(a) == depth(coarse));
    }
    ASSERT_FALSE(compatible(IntTuple(product(a) + 1), a));
  });
}

TEST(TupleProperty, ModesKeepTheirLeaves) {
  for_each_seed([](RandomLayouts& random) {
    const Layout a = random.any();
    SCOPED_TRACE(to_string(a));
    ASSERT_EQ(leaves(unwrap(a.shape())), leaves(a.shape()));
    if (!a.shape().is_tuple()) return;
    const Layout flat = flatten(a);
    ASSERT_LE(depth(flat), 1);
    ASSERT_EQ(unflatten(flat, a.shape()), a);
    const int begin = random.pick(0, a.rank() - 1);
    const int end = random.pick(begin + 1, a.rank());
    ASSERT_EQ(flatten(group(a, begin, end)), flat);
    ASSERT_EQ(group(a, begin, end).mode(begin), take(a, begin, end));
    std::vector<int> backwards(static_cast<std::size_t>(a.rank()));
    std::iota(backwards.rbegin(), backwards.rend(), 0);
    ASSERT_EQ(select(select(a, backwards), backwards), a);
    ASSERT_EQ(replace(a, begin, a.mode(begin)), a);
    const Layout x = random.any(2);
    ASSERT_EQ(take(append(a, x), 0, a.rank()), a);
    ASSERT_EQ(append(a, x).mode(a.rank()), x);
    ASSERT_EQ(take(prepend(a, x), 1, a.rank() + 1), a);
    ASSERT_EQ(prepend(a, x).mode(0), x);
    const Layout pairs = zip(a, select(a, backwards));
    for (int i = 0; i < a.rank(); ++i) {
      ASSERT_EQ(pairs.mode(i), make_layout({a.mode(i), a.mode(a.rank() - 1 - i)}));
    }
    ASSERT_EQ(zip(pairs), make_layout({a, select(a, backwards)}));
  });
}

TEST(TupleProperty, DistributedExtentsDivideTheDomain) {
  for_each_seed([](RandomLayouts& random) {
    const Shape shape = flatten(random.shape(4));
    std::int64_t extent = 1;
    for (const IntTuple& leaf : leaves(shape)) {
      extent *= std::gcd(number(leaf), std::int64_t{random.pick(1, 8)});
    }
    const Layout part = domain_distribute(shape, extent);
    SCOPED_TRACE(to_string(shape) + " by " + std::to_string(extent) + ": " + to_string(part));
    ASSERT_EQ(size(part).value(), extent);
    const Layout cut = logical_divide(Layout(shape), part);
    std::vector<bool> met(static_cast<std::size_t>(size(shape).value()));
    ASSERT_EQ(size(cut), size(shape));
    for (std::int64_t i = 0; i < size(cut).value(); ++i) {
      met.at(static_cast<std::size_t>(cut(i).value())) = true;
    }
    ASSERT_EQ(std::count(met.begin(), met.end(), true), size(shape).value());
  });
}

}  // namespace
}  // namespace tilewright
