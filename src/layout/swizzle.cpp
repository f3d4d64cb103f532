// SPDX-License-Identifier: Apache-2.0
// Swizzles: applying, merging, moving through layouts, recasting.
#include "tilewright/swizzle.h"

#include "layout/fail.h"
#include "layout/modes.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <numeric>

namespace tilewright {
namespace {

std::int64_t run_of_bits(int bits, int first) { return ((std::int64_t{1} << bits) - 1) << first; }

int log2_exact(const char* operation, std::int64_t n) {
  if (n < 1 || !std::has_single_bit(static_cast<std::uint64_t>(n))) {
    fail(std::string(operation) + ": a swizzle cannot be recast by " + std::to_string(n) +
         "; use element widths that differ by a power of two");
  }
  return std::countr_zero(static_cast<std::uint64_t>(n));
}

int first_bit(std::int64_t mask) {
  return mask == 0 ? 0 : std::countr_zero(static_cast<std::uint64_t>(mask));
}

Swizzle upcast(const Swizzle& s, std::int64_t n) {
  const int base = s.base() - log2_exact("recast_layout", n);
  return base >= 0 ? Swizzle(s.bits(), base, s.shift())
                   : Swizzle(std::max(s.bits() + base, 0), 0, s.shift());
}

Swizzle downcast(const Swizzle& s, std::int64_t n) {
  return {s.bits(), s.base() + log2_exact("recast_layout", n), s.shift()};
}

}  // namespace

Swizzle::Swizzle(int bits, int base, int shift) : bits_(bits), base_(base), shift_(shift) {
  if (bits < 0 || base < 0 || std::abs(shift) < bits || base + std::abs(shift) + bits > 62) {
    fail("swizzle: " + to_string(*this) +
         " is none; bits and base must be at least 0, |shift| at least bits, and base + |shift| + "
         "bits at most 62");
  }
}

std::int64_t Swizzle::source_mask() const {
  return run_of_bits(bits_, base_ + std::max(shift_, 0));
}
std::int64_t Swizzle::target_mask() const {
  return run_of_bits(bits_, base_ - std::min(shift_, 0));
}

Int Swizzle::operator()(const Int& index) const {
  if (is_identity()) return index;
  if (!index.is_static() && index.min() < 0) {
    fail("swizzle: " + to_string(*this) + " of a dynamic index " + to_string(index) +
         " that may be negative; give it a lower bound of 0");
  }
  const Int source = index & source_mask();
  const Int moved =
      shift_ >= 0 ? source / (std::int64_t{1} << shift_) : source * (std::int64_t{1} << -shift_);
  return index ^ moved;
}

Swizzle make_swizzle(std::int64_t source, std::int64_t target) {
  const int bits = std::popcount(static_cast<std::uint64_t>(source));
  const int from = first_bit(source);
  const int to = first_bit(target);
  if (source == 0 && target == 0) return {};
  if (source < 0 || target < 0 || std::abs(from - to) < bits || source != run_of_bits(bits, from) ||
      target != run_of_bits(bits, to)) {
    fail("make_swizzle: the source bits " + std::to_string(source) + " and target bits " +
         std::to_string(target) +
         " are not two runs of as many bits apart from each other; no swizzle has them");
  }
  return {bits, std::min(from, to), from - to};
}

Int size(const ComposedLayout& layout) { return size(layout.layout); }

Int cosize(const ComposedLayout& layout) {
  if (layout.is_plain()) return cosize(layout.layout);
  constexpr std::int64_t kMaxElements = std::int64_t{1} << 22;  // each is evaluated
  const Int elements = size(layout);
  if (!layout.layout.is_static() || !layout.offset.is_static() || elements.value() > kMaxElements) {
    fail("cosize: " + to_string(layout) + " is dynamic or has more than " +
         std::to_string(kMaxElements) + " elements; take the cosize of its layout");
  }
  std::int64_t last = -1;
  for (std::int64_t i = 0; i < elements.value(); ++i) {
    last = std::max(last, layout(i).value());
  }
  return last + 1;
}

ComposedLayout composition(const Swizzle& swizzle, const Layout& layout) {
  if (swizzle.is_identity()) return layout;
  return {swizzle, 0, layout};
}

Swizzle composition(const Swizzle& a, const Swizzle& b) {
  if (a.is_identity()) return b;
  if (b.is_identity()) return a;
  if (a.shift() != b.shift()) {
    fail("composition: " + to_string(a) + " o " + to_string(b) +
         ": only swizzles of the same shift merge into one");
  }
  // Bits that one changes must not be read by the other.
  if ((a.target_mask() & b.source_mask()) != 0 || (a.source_mask() & b.target_mask()) != 0) {
    fail("composition: " + to_string(a) + " o " + to_string(b) +
         ": one reads bits that the other changes, so no single swizzle does both");
  }
  return make_swizzle(a.source_mask() ^ b.source_mask(), a.target_mask() ^ b.target_mask());
}

ComposedLayout composition(const Swizzle& swizzle, const ComposedLayout& layout) {
  if (layout.is_plain()) return composition(swizzle, layout.layout);
  if (swizzle.is_identity()) return layout;
  if (layout.swizzle.is_identity()) return {swizzle, layout.offset, layout.layout};
  return {composition(swizzle, layout.swizzle), layout.offset, layout.layout};
}

ComposedLayout composition(const ComposedLayout& lhs, const Tiler& rhs) {
  return lhs.with(composition(lhs.layout, rhs));
}

// With power-of-two extents and strides a layout moves bits. If it moves the swizzle's bits in
// order to two runs, the swizzle of those after the layout is the same function.
ComposedLayout composition(const Layout& lhs, const Swizzle& rhs) {
  if (rhs.is_identity()) return lhs;
  refuse_basis("composition", lhs);
  const auto refuse = [&](const std::string& reason) {
    fail("composition: " + to_string(lhs) + " o " + to_string(rhs) + ": " + reason);
  };
  std::int64_t image = 0;
  for (const Mode& mode : coalesced(modes_of(lhs))) {
    const std::int64_t extent = mode.extent.value();
    const std::int64_t stride = mode.stride.value();
    const bool bits = extent > 0 && stride > 0 &&
                      std::has_single_bit(static_cast<std::uint64_t>(extent)) &&
                      std::has_single_bit(static_cast<std::uint64_t>(stride));
    if (!bits || (image & ((extent - 1) * stride)) != 0) {
      refuse("the layout is no permutation of index bits; use power-of-two extents and strides");
    }
    image |= (extent - 1) * stride;
  }
  if (rhs.source_mask() >= size(lhs).value() || rhs.target_mask() >= size(lhs).value()) {
    refuse("the swizzle reads or changes bits beyond the layout's size");
  }
  const int source = rhs.base() + std::max(rhs.shift(), 0);
  const int target = rhs.base() - std::min(rhs.shift(), 0);
  const std::int64_t first_source = lhs(std::int64_t{1} << source).value();
  const std::int64_t first_target = lhs(std::int64_t{1} << target).value();
  for (int i = 0; i < rhs.bits(); ++i) {
    if (lhs(std::int64_t{1} << (source + i)).value() != first_source << i ||
        lhs(std::int64_t{1} << (target + i)).value() != first_target << i) {
      refuse("the layout tears the swizzle's bits apart");
    }
  }
  const Swizzle moved = make_swizzle(run_of_bits(rhs.bits(), first_bit(first_source)),
                                     run_of_bits(rhs.bits(), first_bit(first_target)));
  return {moved, 0, lhs};
}

Swizzle recast_layout(int new_bits, int old_bits, const Swizzle& swizzle) {
  if (new_bits < 1 || old_bits < 1) {
    fail("recast_layout: element widths must be at least 1 bit");
  }
  if (swizzle.is_identity()) return swizzle;
  const int common = std::gcd(new_bits, old_bits);
  return downcast(upcast(swizzle, new_bits / common), old_bits / common);
}

ComposedLayout recast_layout(int new_bits, int old_bits, const ComposedLayout& layout) {
  Layout inner = recast_layout(new_bits, old_bits, layout.layout);
  const int common = std::gcd(new_bits, old_bits);
  if (!layout.offset.divisible_by(new_bits / common)) {
    fail("recast_layout: the offset " + to_string(layout.offset) + " of " + to_string(layout) +
         " is not known to be a multiple of " + std::to_string(new_bits / common) + " elements");
  }
  return {recast_layout(new_bits, old_bits, layout.swizzle),
          layout.offset / (new_bits / common) * (old_bits / common), std::move(inner)};
}

}  // namespace tilewright
