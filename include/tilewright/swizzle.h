// SPDX-License-Identifier: Apache-2.0
// Swizzles, and layouts behind a swizzle and an offset.
#pragma once

#include "tilewright/layout.h"

#include <cstdint>
#include <string>

namespace tilewright {

/// XORs `bits` bits of an index that start at base + max(shift, 0) onto those that start |shift|
/// lower (shift < 0: higher): CuTe's Swizzle<bits, base, shift>. Its own inverse.
class Swizzle {
 public:
  Swizzle() = default;  ///< the identity
  /// Throws Error(user) unless bits, base >= 0, |shift| >= bits and all fits 62 bits.
  Swizzle(int bits, int base, int shift);

  int bits() const { return bits_; }
  int base() const { return base_; }
  int shift() const { return shift_; }
  std::int64_t source_mask() const;  ///< the bits that are read (YYY)
  std::int64_t target_mask() const;  ///< the bits that change (ZZZ)
  bool is_identity() const { return bits_ == 0; }
  /// Pre: a dynamic index is known not to be negative.
  Int operator()(const Int& index) const;
  friend bool operator==(const Swizzle&, const Swizzle&) = default;

 private:
  int bits_ = 0;
  int base_ = 4;
  int shift_ = 3;
};

/// The swizzle that reads the bits `source` and changes the bits `target`. Throws Error(user)
/// unless both are runs of as many bits.
Swizzle make_swizzle(std::int64_t source, std::int64_t target);

/// The function swizzle(offset + layout(coord)).
struct ComposedLayout {
  Swizzle swizzle;
  Int offset;
  Layout layout;

  ComposedLayout() = default;
  ComposedLayout(Swizzle s, Int o, Layout l)
      : swizzle(s), offset(std::move(o)), layout(std::move(l)) {}
  // NOLINTNEXTLINE(google-explicit-constructor): every layout is one, behind the identity
  ComposedLayout(Layout l) : layout(std::move(l)) {}

  const Shape& shape() const { return layout.shape(); }
  int rank() const { return layout.rank(); }
  /// No swizzle and no offset: just `layout`.
  bool is_plain() const { return swizzle.is_identity() && offset.is_static(0); }
  ComposedLayout mode(int i) const { return {swizzle, offset, layout.mode(i)}; }
  ComposedLayout with(Layout inner) const { return {swizzle, offset, std::move(inner)}; }

  Int operator()(const Coord& coord) const { return swizzle(offset + layout(coord)); }
  Int operator()(const Coord& c0, const Coord& c1) const { return (*this)(Coord{c0, c1}); }
  Int operator()(const Coord& c0, const Coord& c1, const Coord& c2) const {
    return (*this)(Coord{c0, c1, c2});
  }
  friend bool operator==(const ComposedLayout&, const ComposedLayout&) = default;
};

Int size(const ComposedLayout& layout);
/// One more than the largest index. Throws Error(user) if that is dynamic or over 2^22 elements.
Int cosize(const ComposedLayout& layout);

ComposedLayout composition(const Swizzle& swizzle, const Layout& layout);
/// Two swizzles of the same shift merged.
Swizzle composition(const Swizzle& a, const Swizzle& b);
ComposedLayout composition(const Swizzle& swizzle, const ComposedLayout& layout);
ComposedLayout composition(const ComposedLayout& lhs, const Tiler& rhs);
/// A layout after a swizzle, as a swizzle after the layout. Throws Error(user) where the layout
/// does not move the swizzle's bits to a swizzle.
ComposedLayout composition(const Layout& lhs, const Swizzle& rhs);

ComposedLayout logical_divide(const ComposedLayout& layout, const Tiler& tiler);
ComposedLayout zipped_divide(const ComposedLayout& layout, const Tiler& tiler);
ComposedLayout tiled_divide(const ComposedLayout& layout, const Tiler& tiler);
ComposedLayout flat_divide(const ComposedLayout& layout, const Tiler& tiler);
ComposedLayout logical_product(const ComposedLayout& block, const Tiler& tiler);
ComposedLayout zipped_product(const ComposedLayout& block, const Tiler& tiler);
ComposedLayout tiled_product(const ComposedLayout& block, const Tiler& tiler);
ComposedLayout flat_product(const ComposedLayout& block, const Tiler& tiler);
ComposedLayout blocked_product(const ComposedLayout& block, const Layout& tiler);
ComposedLayout raked_product(const ComposedLayout& block, const Layout& tiler);
ComposedLayout group(const ComposedLayout& layout, int begin, int end);
ComposedLayout take(const ComposedLayout& layout, int begin, int end);
ComposedLayout coalesce(const ComposedLayout& layout);
ComposedLayout coalesce(const ComposedLayout& layout, const IntTuple& profile);
ComposedLayout filter(const ComposedLayout& layout);
ComposedLayout flatten(const ComposedLayout& layout);
ComposedLayout tile_to_shape(const ComposedLayout& block, const Shape& target);
ComposedLayout tile_to_shape(const ComposedLayout& block, const Shape& target,
                             const IntTuple& order);
/// The offset of what a coordinate fixes stays inside the swizzle.
ComposedLayout slice(const Coord& coord, const ComposedLayout& layout);
ComposedLayout domain_offset(const Coord& coord, const ComposedLayout& layout);
ComposedLayout local_tile(const ComposedLayout& layout, const Tiler& tiler, const Coord& coord);
ComposedLayout local_partition(const ComposedLayout& layout, const Layout& threads,
                               const Int& index);
/// The inverse of layout is again behind a swizzle where the offset is 0 (see composition(Layout,
/// Swizzle)).
ComposedLayout right_inverse(const ComposedLayout& layout);
ComposedLayout left_inverse(const ComposedLayout& layout);

Swizzle recast_layout(int new_bits, int old_bits, const Swizzle& swizzle);
ComposedLayout recast_layout(int new_bits, int old_bits, const ComposedLayout& layout);
Int max_common_vector(const ComposedLayout& a, const ComposedLayout& b);
Layout max_common_layout(const ComposedLayout& a, const Layout& b);
Int max_alignment(const ComposedLayout& layout);

/// "Sw<3,4,3>", "Sw<3,4,3> o 0 o (8,64):(64,1)".
std::string to_string(const Swizzle& swizzle);
std::string to_string(const ComposedLayout& layout);

}  // namespace tilewright
