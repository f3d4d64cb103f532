// SPDX-License-Identifier: Apache-2.0
// Nested tuples: construction, measures, comparison of profiles and division of shapes.
#include "tilewright/int_tuple.h"

#include "layout/fail.h"

#include <algorithm>

namespace tilewright {

namespace detail {

void retain(const TupleNode* node) { __atomic_fetch_add(&node->references, 1, __ATOMIC_RELAXED); }

void release(const TupleNode* node) {
  if (__atomic_sub_fetch(&node->references, 1, __ATOMIC_ACQ_REL) == 0) delete node;
}

}  // namespace detail

IntTuple::IntTuple(std::initializer_list<IntTuple> elems)
    : kind_(Kind::tuple), node_(new detail::TupleNode{elems}) {}

IntTuple IntTuple::tuple(std::vector<IntTuple> elems) {
  IntTuple result;
  result.node_ = detail::Shared<detail::TupleNode>(new detail::TupleNode{std::move(elems)});
  return result;
}

bool IntTuple::is_static() const {
  if (kind_ == Kind::integer) return value_.is_static();
  const std::span<const IntTuple> modes = is_tuple() ? elems() : std::span<const IntTuple>();
  return std::all_of(modes.begin(), modes.end(), [](const IntTuple& e) { return e.is_static(); });
}

const IntTuple& IntTuple::operator[](int i) const {
  if (i < 0 || i >= rank()) {
    fail("mode " + std::to_string(i) + " of " + to_string(*this) + " does not exist; it has rank " +
         std::to_string(rank()));
  }
  return elems()[static_cast<std::size_t>(i)];
}

bool operator==(const IntTuple& a, const IntTuple& b) {
  if (a.kind_ != b.kind_) return false;
  if (!a.is_tuple()) return a.basis_ == b.basis_ && a.value_ == b.value_;
  if (a.node_.get() == b.node_.get()) return true;
  const std::span<const IntTuple> x = a.elems();
  const std::span<const IntTuple> y = b.elems();
  return std::equal(x.begin(), x.end(), y.begin(), y.end());
}

void IntTuple::throw_no_value(SourceLoc at) const {
  throw Error(ErrorKind::user, to_string(*this) + " is used as an integer; give an integer here",
              at);
}

IntTuple basis(std::initializer_list<int> path, const Int& scale) {
  BasisPath result;
  if (path.size() > static_cast<std::size_t>(BasisPath::kMaxDepth)) {
    fail("basis: a path of " + std::to_string(path.size()) + " modes is too deep; at most " +
         std::to_string(BasisPath::kMaxDepth) + " are supported");
  }
  for (int mode : path) {
    if (mode < 0 || mode > 255) {
      fail("basis: mode " + std::to_string(mode) + " is out of range; use 0 to 255");
    }
    result.at[result.depth++] = static_cast<std::uint8_t>(mode);
  }
  return {scale, result};
}

int rank(const IntTuple& t) { return t.rank(); }

int depth(const IntTuple& t) {
  if (!t.is_tuple()) return 0;
  int deepest = 0;
  for (const IntTuple& e : t.elems()) {
    deepest = std::max(deepest, depth(e));
  }
  return deepest + 1;
}

Int product(const IntTuple& t) {
  if (!t.is_tuple()) return t.value();
  Int result = 1;
  for (const IntTuple& e : t.elems()) {
    result *= product(e);
  }
  return result;
}

Int size(const IntTuple& t) { return product(t); }

Int sum(const IntTuple& t) {
  if (!t.is_tuple()) return t.value();
  Int result = 0;
  for (const IntTuple& e : t.elems()) {
    result += sum(e);
  }
  return result;
}

IntTuple product_each(const IntTuple& t) {
  std::vector<IntTuple> result;
  for (const IntTuple& e : t.elems()) {
    result.emplace_back(product(e));
  }
  return IntTuple::tuple(std::move(result));
}

Int inner_product(const IntTuple& a, const IntTuple& b) {
  if (!a.is_tuple() && !b.is_tuple()) return a.value() * b.value();
  if (a.is_tuple() != b.is_tuple() || a.rank() != b.rank()) {
    fail("inner_product: " + to_string(a) + " and " + to_string(b) +
         " have different profiles; give tuples of the same nesting");
  }
  Int result = 0;
  for (int i = 0; i < a.rank(); ++i) {
    result += inner_product(a[i], b[i]);
  }
  return result;
}

namespace {

Int shape_div(const Int& a, const Int& b) {
  const bool divides = a.divisible_by(b.divisor()) && b.is_static() && !b.is_static(0);
  if (divides || a == b || b.is_static(0)) return a / b;  // by 0: refused
  if (a.is_static() && a.divisor() != 0 && b.divisible_by(a.value())) {
    return signum(a) * signum(b);
  }
  fail("shape_div: neither of " + to_string(a) + " and " + to_string(b) +
       (a.is_static() && b.is_static() ? " divides the other"
                                       : " is known to divide the other; give a divisor or make "
                                         "it static"));
}

}  // namespace

IntTuple shape_div(const IntTuple& a, const IntTuple& b) {
  if (!a.is_tuple()) return shape_div(a.value(), b.is_tuple() ? product(b) : b.value());
  std::vector<IntTuple> result;
  if (b.is_tuple()) {
    if (a.rank() != b.rank()) {
      fail("shape_div: " + to_string(a) + " and " + to_string(b) + " have different ranks");
    }
    for (int i = 0; i < a.rank(); ++i) {
      result.push_back(shape_div(a[i], b[i]));
    }
    return IntTuple::tuple(std::move(result));
  }
  Int rest = b.value();
  for (const IntTuple& e : a.elems()) {
    result.push_back(shape_div(e, rest));
    rest = shape_div(rest, product(e));
  }
  return IntTuple::tuple(std::move(result));
}

IntTuple ceil_div(const IntTuple& a, const IntTuple& b) {
  if (!a.is_tuple()) return ceil_div(a.value(), b.is_tuple() ? product(b) : b.value());
  std::vector<IntTuple> result;
  if (b.is_tuple()) {
    if (a.rank() < b.rank()) {
      fail("ceil_div: " + to_string(b) + " has more modes than " + to_string(a));
    }
    for (int i = 0; i < a.rank(); ++i) {
      result.push_back(i < b.rank() ? ceil_div(a[i], b[i]) : a[i]);
    }
    return IntTuple::tuple(std::move(result));
  }
  Int rest = b.value();
  for (const IntTuple& e : a.elems()) {
    result.push_back(ceil_div(e, IntTuple(rest)));
    rest = ceil_div(rest, product(e));
  }
  return IntTuple::tuple(std::move(result));
}

IntTuple round_up(const IntTuple& a, const IntTuple& b) {
  if (!a.is_tuple()) return ceil_div(a.value(), product(b)) * product(b);
  if (!b.is_tuple() || a.rank() < b.rank()) {
    fail("round_up: " + to_string(a) + " by " + to_string(b) +
         "; give one number a mode, at most as many as there are modes");
  }
  std::vector<IntTuple> result;
  for (int i = 0; i < a.rank(); ++i) {
    result.push_back(i < b.rank() ? round_up(a[i], b[i]) : a[i]);
  }
  return IntTuple::tuple(std::move(result));
}

IntTuple elem_scale(const IntTuple& a, const IntTuple& b) {
  if (!a.is_tuple()) return {a.value() * product(b), a.basis()};
  if (a.rank() != b.rank()) {
    fail("elem_scale: " + to_string(a) + " and " + to_string(b) + " have different ranks");
  }
  std::vector<IntTuple> result;
  for (int i = 0; i < a.rank(); ++i) {
    result.push_back(elem_scale(a[i], b[i]));
  }
  return IntTuple::tuple(std::move(result));
}

namespace {

template <class Leaf>
bool all_modes(const IntTuple& a, const IntTuple& b, Leaf&& leaf) {
  if (!a.is_tuple()) return leaf(a, b);
  if (!b.is_tuple() || a.rank() != b.rank()) return false;
  for (int i = 0; i < a.rank(); ++i) {
    if (!all_modes(a[i], b[i], leaf)) return false;
  }
  return true;
}

}  // namespace

bool congruent(const IntTuple& a, const IntTuple& b) {
  return all_modes(a, b, [](const IntTuple&, const IntTuple& y) { return !y.is_tuple(); });
}

bool weakly_congruent(const IntTuple& a, const IntTuple& b) {
  return all_modes(a, b, [](const IntTuple&, const IntTuple&) { return true; });
}

bool compatible(const IntTuple& a, const IntTuple& b) {
  return all_modes(a, b, [](const IntTuple& x, const IntTuple& y) { return x.value() == size(y); });
}

bool evenly_divides(const IntTuple& a, const IntTuple& b) {
  if (b.is_tuple()) {
    if (b.rank() > a.rank()) return false;
    for (int i = 0; i < b.rank(); ++i) {
      if (!evenly_divides(a[i], b[i])) return false;
    }
    return true;
  }
  return size(a) == b.value() * size(ceil_div(a, b));
}

}  // namespace tilewright
