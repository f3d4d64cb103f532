// SPDX-License-Identifier: Apache-2.0
// The same memory seen as wider or narrower elements; alignment and common vectors.
#include "layout/fail.h"
#include "layout/modes.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace tilewright {
namespace {

// The modes nested as `like`.
Layout nested_like(const Modes& modes, const Layout& like) {
  std::vector<IntTuple> shapes;
  std::vector<IntTuple> strides;
  for (const Mode& mode : modes) {
    shapes.emplace_back(mode.extent);
    strides.emplace_back(mode.stride);
  }
  return {unflatten(IntTuple::tuple(std::move(shapes)), like.shape()),
          unflatten(IntTuple::tuple(std::move(strides)), like.shape())};
}

[[noreturn]] void refuse_upcast(const Layout& whole, std::int64_t n, const std::string& reason) {
  fail("upcast: " + to_string(whole) + " by " + std::to_string(n) + ": " + reason);
}

Mode upcast_leaf(const Layout& whole, const Mode& mode, std::int64_t n) {
  const Int& extent = mode.extent;
  const Int& stride = mode.stride;
  if (stride.is_static(0)) return mode;
  if (stride.divisible_by(n)) return {extent, stride / n, {}};
  if (extent.is_static(1)) return {1, 0, {}};
  if (!stride.is_static() || n % stride.value() != 0) {
    refuse_upcast(whole, n,
                  "the stride " + to_string(stride) +
                      (stride.is_static() ? " neither divides nor is divided by "
                                          : " is not known to be a multiple of ") +
                      std::to_string(n) +
                      (stride.is_static() ? "; use a stride that does"
                                          : "; give the dynamic stride that divisor"));
  }
  const std::int64_t factor = std::abs(n / stride.value());
  const bool fits = extent.divisible_by(factor) ||
                    (extent.is_static() && factor % std::max<std::int64_t>(extent.value(), 1) == 0);
  if (!fits) {
    refuse_upcast(
        whole, n,
        "the extent " + to_string(extent) + " of stride " + to_string(stride) +
            (extent.is_static() ? " is no multiple of " : " is not known to be a multiple of ") +
            std::to_string(factor) +
            ", so an element would be cut; use an extent or divisor that is");
  }
  return {ceil_div(extent, factor), signum(stride), {}};
}

void check_factor(const char* operation, std::int64_t n) {
  if (n >= 1) return;
  fail(std::string(operation) + ": the factor " + std::to_string(n) + " must be at least 1");
}

}  // namespace

Layout upcast(const Layout& layout, std::int64_t n) {
  check_factor("upcast", n);
  refuse_basis("upcast", layout);
  Modes modes = modes_of(layout);
  for (Mode& mode : modes) {
    mode = upcast_leaf(layout, mode, n);
  }
  return nested_like(modes, layout);
}

Layout downcast(const Layout& layout, std::int64_t n) {
  check_factor("downcast", n);
  refuse_basis("downcast", layout);
  if (n == 1) return layout;
  // The parts of an element go to one mode of stride 1, the others step over whole elements.
  Modes modes = modes_of(layout);
  Mode* contiguous = nullptr;
  for (Mode& mode : modes) {
    if (!mode.stride.is_static(1) && !mode.stride.is_static(-1)) continue;
    if (contiguous == nullptr || contiguous->extent.is_static(1)) contiguous = &mode;
  }
  if (contiguous == nullptr) {
    fail("downcast: " + to_string(layout) + " by " + std::to_string(n) +
         ": no mode has stride 1, so the parts of an element have no mode to go to; append a mode "
         "of stride 1");
  }
  for (Mode& mode : modes) {
    (&mode == contiguous ? mode.extent : mode.stride) *= n;
  }
  return nested_like(modes, layout);
}

Layout recast_layout(int new_bits, int old_bits, const Layout& layout) {
  if (new_bits < 1 || old_bits < 1) {
    fail("recast_layout: element widths " + std::to_string(new_bits) + " and " +
         std::to_string(old_bits) + " must be at least 1 bit");
  }
  const int common = std::gcd(new_bits, old_bits);
  if (new_bits == old_bits) return layout;
  if (new_bits == common) return downcast(layout, old_bits / common);
  if (old_bits == common) return upcast(layout, new_bits / common);
  return downcast(upcast(layout, new_bits / common), old_bits / common);
}

namespace {

// The part of `common` that is the identity: the first mode, if its stride is 1.
Int identity_extent(const Layout& common) {
  const Layout first = common.mode(0);
  return first.stride().value().is_static(1) && first.shape().is_static() ? first.shape().value()
                                                                          : Int(1);
}

// How many elements from index 0 on are i -> i under composition(a, inverse). Where all of the
// inverse does not compose, its first mode still may.
Int common_extent(const Layout& a, const Layout& inverse) {
  try {
    return identity_extent(coalesce(composition(a, inverse)));
  } catch (const Error&) {
    if (inverse.rank() == 1) return 1;
    return common_extent(a, take(inverse, 0, inverse.rank() - 1));
  }
}

}  // namespace

Int max_common_vector(const Layout& a, const Layout& b) {
  refuse_basis("max_common_vector", a);
  return common_extent(a, right_inverse(b));
}

Layout max_common_layout(const Layout& a, const Layout& b) {
  refuse_basis("max_common_layout", a);
  const Layout inverse = right_inverse(b);
  const Int extent = common_extent(a, inverse);
  return extent.is_static(1) ? Layout() : composition(inverse, Layout(Shape(extent)));
}

Int max_alignment(const Layout& layout) {
  refuse_basis("max_alignment", layout);
  Modes modes = coalesced(modes_of(layout));
  std::int64_t run = 1;  // elements that follow one another from index 0 on
  bool grown = true;
  while (grown) {
    grown = false;
    for (Mode& mode : modes) {
      if (!mode.stride.is_static(run)) continue;
      grown = mode.extent.is_static();
      run *= std::max<std::int64_t>(mode.extent.divisor(), 1);
      mode.stride = 0;
      break;
    }
  }
  for (const Mode& mode : modes) {
    run = std::gcd(run, mode.stride.divisor());
  }
  return run;
}

Layout domain_distribute(const Shape& shape, const Int& extent) {
  std::vector<IntTuple> extents;
  Int rest = extent;
  const IntTuple flat = flatten(shape);
  for (const IntTuple& e : flat.elems()) {
    const Int common = std::gcd(e.value().value(), rest.value());
    extents.emplace_back(common);
    rest = rest / common;
  }
  const IntTuple strides = compact_col_major(flat);
  return coalesce(
      Layout(flat.is_tuple() ? IntTuple::tuple(std::move(extents)) : extents[0], strides));
}

}  // namespace tilewright
