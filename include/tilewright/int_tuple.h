// SPDX-License-Identifier: Apache-2.0
// Nested tuples of integers: shapes, strides, coordinates and basis strides, with their arithmetic.
#pragma once

#include "tilewright/int.h"

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tilewright {

/// `_` in coordinates and tilers: this mode stays whole.
struct Underscore {
  friend bool operator==(Underscore, Underscore) = default;
};
inline constexpr Underscore _{};  // NOLINT(readability-identifier-naming): CuTe's name

/// Where a basis stride points to: E<0,1> is the path {0, 1}; depth 0 is a plain integer.
struct BasisPath {
  static constexpr int kMaxDepth = 6;
  std::uint8_t depth = 0;
  std::array<std::uint8_t, kMaxDepth> at{};
  friend bool operator==(const BasisPath&, const BasisPath&) = default;
};

class IntTuple;
namespace detail {
struct TupleNode;
void retain(const TupleNode* node);
void release(const TupleNode* node);
}  // namespace detail

/// A nested tuple whose leaves are integers, scaled basis elements ("4@1") or `_`. Braces make
/// tuples: `Shape{4, {2, 8}}` is (4,(2,8)) and `Shape{4}` the 1-tuple (4); `Shape(4)` is the
/// leaf 4.
class IntTuple {
 public:
  enum class Kind : std::uint8_t { integer, underscore, tuple };

  IntTuple() : kind_(Kind::tuple) {}
  // NOLINTBEGIN(google-explicit-constructor): host code writes shapes as nested braces
  IntTuple(Int value) : value_(std::move(value)) {}
  template <std::integral T>
  IntTuple(T value) : value_(value) {}
  IntTuple(Underscore) : kind_(Kind::underscore) {}
  IntTuple(std::initializer_list<IntTuple> elems);
  // NOLINTEND(google-explicit-constructor)
  IntTuple(Int scale, BasisPath path) : basis_(path), value_(std::move(scale)) {}
  /// The tuple of these elements, however many. A 1-tuple whose element is itself an IntTuple is
  /// written so, `IntTuple::tuple({stride})`: of `Stride{stride}` g++ 12 makes (stride), and
  /// clang 14 a copy of stride (CWG 2137).
  static IntTuple tuple(std::vector<IntTuple> elems);

  bool is_tuple() const { return kind_ == Kind::tuple; }
  bool is_underscore() const { return kind_ == Kind::underscore; }
  /// A plain integer: neither a tuple, nor `_`, nor a basis element.
  bool is_int() const { return kind_ == Kind::integer && basis_.depth == 0; }
  bool is_basis() const { return basis_.depth != 0; }
  bool is_static() const;  ///< no leaf is dynamic

  /// The integer of a leaf, or the scale of a basis element. Throws Error(user) for others.
  const Int& value(SourceLoc at = SourceLoc::here()) const {
    if (kind_ != Kind::integer) throw_no_value(at);
    return value_;
  }
  const BasisPath& basis() const { return basis_; }

  /// Number of elements; 1 for a leaf.
  int rank() const { return is_tuple() ? static_cast<int>(elems().size()) : 1; }
  /// The i-th element; a leaf is its own 0-th. Throws Error(user) out of range.
  const IntTuple& operator[](int i) const;
  std::span<const IntTuple> elems() const&;
  void elems() const&& = delete;  ///< the elements die with their tuple

  friend bool operator==(const IntTuple& a, const IntTuple& b);

 private:
  [[noreturn]] void throw_no_value(SourceLoc at) const;

  Kind kind_ = Kind::integer;
  BasisPath basis_{};
  Int value_;
  detail::Shared<detail::TupleNode> node_;  // copies share their elements
};

namespace detail {
struct TupleNode {
  std::vector<IntTuple> elems;
  mutable std::uint32_t references = 1;  ///< counted atomically
};
}  // namespace detail

inline std::span<const IntTuple> IntTuple::elems() const& {
  if (!is_tuple()) return {this, 1};
  return node_.get() == nullptr ? std::span<const IntTuple>() : node_.get()->elems;
}

using Shape = IntTuple;
using Stride = IntTuple;
using Coord = IntTuple;

/// `scale` times the basis element E<path...>: `basis({1})` is "1@1".
IntTuple basis(std::initializer_list<int> path, const Int& scale = 1);

int rank(const IntTuple& t);
int depth(const IntTuple& t);              ///< 0 for a leaf
Int product(const IntTuple& t);            ///< of all leaves
Int size(const IntTuple& t);               ///< product, the number of coordinates of a shape
Int sum(const IntTuple& t);                ///< of all leaves
IntTuple product_each(const IntTuple& t);  ///< the product of each mode
Int inner_product(const IntTuple& a, const IntTuple& b);

/// (3,4) by 6 is (1,2): the divisor is used up mode by mode. Throws Error(user) where neither
/// number divides the other.
IntTuple shape_div(const IntTuple& a, const IntTuple& b);
IntTuple ceil_div(const IntTuple& a, const IntTuple& b);
IntTuple round_up(const IntTuple& a, const IntTuple& b);
IntTuple elem_scale(const IntTuple& a, const IntTuple& b);

bool congruent(const IntTuple& a, const IntTuple& b);         ///< the same nesting
bool weakly_congruent(const IntTuple& a, const IntTuple& b);  ///< the nesting of a, or finer in b
/// A coordinate of `a` is a coordinate of `b`: sizes provably agree at each leaf of `a`.
bool compatible(const IntTuple& a, const IntTuple& b);
/// Tiles of shape `b` provably cover `a` without a rest.
bool evenly_divides(const IntTuple& a, const IntTuple& b);

IntTuple flatten(const IntTuple& t);  ///< depth at most 1
IntTuple unflatten(const IntTuple& flat, const IntTuple& profile);
IntTuple group(const IntTuple& t, int begin, int end);  ///< modes [begin, end) become one tuple
IntTuple take(const IntTuple& t, int begin, int end);
IntTuple select(const IntTuple& t, std::span<const int> modes);
IntTuple append(const IntTuple& t, const IntTuple& x);
IntTuple prepend(const IntTuple& t, const IntTuple& x);
IntTuple append_to_rank(const IntTuple& t, int rank, const IntTuple& x);
IntTuple prepend_to_rank(const IntTuple& t, int rank, const IntTuple& x);
IntTuple replace(const IntTuple& t, int mode, const IntTuple& x);
IntTuple repeat_like(const IntTuple& profile, const IntTuple& leaf);
IntTuple unwrap(const IntTuple& t);  ///< ((4)) is 4
/// ((a,b),(c,d)) is ((a,c),(b,d)).
IntTuple zip(const IntTuple& t);

/// What a coordinate with `_` keeps of a tuple (`slice`), and what it does not (`dice`).
IntTuple slice(const Coord& coord, const IntTuple& t);
IntTuple dice(const Coord& coord, const IntTuple& t);
bool has_underscore(const IntTuple& t);

/// The index of a coordinate (nested or partly linear; `_` counts as 0) under shape and stride.
/// Throws Error(user) if a stride is a basis element: use `evaluate`.
Int crd2idx(const Coord& coord, const Shape& shape, const Stride& stride);
/// The same for the compact column-major stride.
Int crd2idx(const Coord& coord, const Shape& shape);
/// As crd2idx, for basis strides too: their result is a tuple of integers.
IntTuple evaluate(const Coord& coord, const Shape& shape, const Stride& stride);
IntTuple idx2crd(const IntTuple& index, const Shape& shape);
IntTuple idx2crd(const IntTuple& index, const Shape& shape, const Stride& stride);
IntTuple crd2crd(const Coord& coord, const Shape& source, const Shape& target);

IntTuple compact_col_major(const Shape& shape, const Int& first = 1);
IntTuple compact_row_major(const Shape& shape, const Int& first = 1);
/// Strides so that the mode with the lowest `order` is contiguous, and so on.
IntTuple compact_order(const Shape& shape, const IntTuple& order);
/// ((0@0,1@0)...)-like: the basis element of each leaf.
IntTuple make_basis_like(const Shape& shape);

/// CuTe's notation: "(4,(2,8))", "(1@0,_)".
std::string to_string(const IntTuple& t);

}  // namespace tilewright
