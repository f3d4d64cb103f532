// SPDX-License-Identifier: Apache-2.0
// Complement, inverses and nullspace.
#include "layout/fail.h"
#include "layout/modes.h"

#include <algorithm>

namespace tilewright {
namespace {

// Neighbouring static extents multiplied, and neighbouring dynamic ones.
IntTuple coalesce_shape(const Shape& shape) {
  std::vector<IntTuple> result;
  const IntTuple flat = flatten(shape);
  for (const IntTuple& e : flat.elems()) {
    if (!result.empty() && result.back().is_static() == e.is_static()) {
      result.back() = result.back().value() * e.value();
    } else {
      result.push_back(e);
    }
  }
  return unwrap(IntTuple::tuple(std::move(result)));
}

// The modes by rising stride. Strides of a single mode may be dynamic.
Modes sorted(const char* operation, const Layout& layout, Modes modes) {
  if (modes.size() > 1) {
    for (const Mode& mode : modes) {
      if (!mode.stride.is_static()) {
        fail(std::string(operation) + ": " + to_string(layout) + " has the dynamic stride " +
             to_string(mode.stride) + " among several modes; make its strides static");
      }
    }
  }
  std::stable_sort(modes.begin(), modes.end(), [](const Mode& a, const Mode& b) {
    return a.stride.value() < b.stride.value();
  });
  return modes;
}

}  // namespace

Layout complement(const char* operation, const Layout& layout, const Shape& cotarget, Gaps gaps) {
  refuse_basis(operation, layout);
  const Modes filtered = coalesced(modes_of(filter_zeros(layout)));
  if (filtered.empty()) return Layout(coalesce_shape(cotarget));
  std::vector<IntTuple> shape;
  std::vector<IntTuple> stride;
  Int next = 1;
  for (const Mode& mode : sorted(operation, layout, filtered)) {
    const std::optional<bool> overlaps = less(mode.stride, next);
    if (overlaps.value_or(false)) {
      fail(std::string(operation) + ": " + to_string(layout) +
           " overlaps itself or runs backwards (the mode " + to_string(mode.extent) + ":" +
           to_string(mode.stride) + " starts before index " + to_string(next) +
           "); only an injective layout with positive strides has a complement");
    }
    const bool known = mode.stride.is_static() && next.is_static();
    if (!is_multiple(mode.stride, next) && (gaps == Gaps::refuse || !known)) {
      fail(
          std::string(operation) + ": the stride " + to_string(mode.stride) + " in " +
          to_string(layout) +
          (known ? " is no multiple of " : " is not known to be a multiple of ") + to_string(next) +
          ", where the modes below it end, so no layout fills the gap; " +
          (known ? "pad the modes below it" : "give the dynamic one a divisor, or make it static"));
    }
    shape.emplace_back(mode.stride / next);
    stride.emplace_back(next);
    next = mode.stride * mode.extent;
  }
  const IntTuple rest = coalesce_shape(ceil_div(cotarget, IntTuple(next)));
  shape.push_back(rest);
  stride.push_back(compact_col_major(rest, next));
  return coalesce(Layout(IntTuple::tuple(std::move(shape)), IntTuple::tuple(std::move(stride))));
}

Layout complement(const Layout& layout, const Shape& cotarget) {
  return complement("complement", layout, cotarget, Gaps::skip);
}

Layout complement(const Layout& layout) {
  return complement(layout, IntTuple(cosize(filter(layout))));
}

Layout right_inverse(const Layout& layout) {
  refuse_basis("right_inverse", layout);
  const Modes modes = coalesced(modes_of(layout));
  // Where each mode starts in the domain, and the modes of static stride by rising stride.
  std::vector<Int> start{1};
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < modes.size(); ++i) {
    start.push_back(start[i] * modes[i].extent);
    if (modes[i].stride.is_static()) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&modes](std::size_t a, std::size_t b) {
    return modes[a].stride.value() < modes[b].stride.value();
  });
  Modes result;
  Int next = 1;
  for (std::size_t i : order) {
    if (!(modes[i].stride == next)) continue;
    result.push_back({modes[i].extent, start[i], {}});
    next = modes[i].extent * modes[i].stride;
  }
  return from_modes(coalesced(result));
}

Layout left_inverse(const Layout& layout) {
  refuse_basis("left_inverse", layout);
  const Modes modes = coalesced(modes_of(layout));
  std::vector<Int> start{1};
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < modes.size(); ++i) {
    start.push_back(start[i] * modes[i].extent);
    order.push_back(i);
    if (!modes[i].stride.is_static() || modes[i].stride.value() < 0) {
      fail("left_inverse: " + to_string(layout) + " has the stride " + to_string(modes[i].stride) +
           "; only static strides that are not negative have an inverse");
    }
  }
  std::stable_sort(order.begin(), order.end(), [&modes](std::size_t a, std::size_t b) {
    return modes[a].stride.value() < modes[b].stride.value();
  });
  Modes result;
  Int below = 0;  // where the modes so far end
  Int covered = 1;
  Int stride = 0;
  for (std::size_t i : order) {
    const Mode& mode = modes[i];
    if (mode.stride.is_static(0)) continue;
    if (!is_multiple(mode.stride, covered) || mode.stride.min() < below.max()) {
      fail("left_inverse: the stride " + to_string(mode.stride) + " in " + to_string(layout) +
           " is no multiple of " + to_string(below) +
           ", where the modes below it end; only such a layout has an inverse that is a layout");
    }
    result.push_back({mode.stride / covered, stride, {}});
    covered = mode.stride;
    stride = start[i];
    below = mode.stride * mode.extent;
  }
  if (result.empty()) return {};
  result.push_back({modes[order.back()].extent, stride, {}});
  return from_modes(coalesced(result));
}

Layout nullspace(const Layout& layout) {
  Modes result;
  Int start = 1;
  for (const Mode& mode : modes_of(layout)) {
    if (mode.stride.is_static(0))
      result.push_back({mode.extent, mode.extent.is_static(1) ? Int(0) : start, {}});
    start *= mode.extent;
  }
  return from_modes(result);
}

}  // namespace tilewright
