// SPDX-License-Identifier: Apache-2.0
// Flat modes, coalesce and filter.
#include "layout/fail.h"
#include "layout/modes.h"

namespace tilewright {
namespace {

void collect(const Shape& shape, const Stride& stride, Modes& out) {
  if (!shape.is_tuple()) {
    out.push_back({shape.value(), stride.value(), stride.basis()});
    return;
  }
  for (int i = 0; i < shape.rank(); ++i) {
    collect(shape[i], stride[i], out);
  }
}

// Merging a static with a dynamic extent would lose what is known of the static one.
bool merges(const Mode& lower, const Mode& upper) {
  return lower.extent.is_static() == upper.extent.is_static() && lower.basis == upper.basis &&
         lower.extent * lower.stride == upper.stride;
}

// Appends to a list in which no two neighbours merge.
void push(Modes& modes, Mode mode) {
  if (mode.extent.is_static(1)) return;
  while (!modes.empty() && merges(modes.back(), mode)) {
    mode = {modes.back().extent * mode.extent, modes.back().stride, modes.back().basis};
    modes.pop_back();
  }
  modes.push_back(std::move(mode));
}

template <class F>
Layout at_leaves(const char* operation, const Layout& layout, const IntTuple& profile, F&& f) {
  if (!profile.is_tuple()) return f(layout, profile);
  if (profile.rank() > layout.rank()) {
    fail(std::string(operation) + ": the profile " + to_string(profile) + " has more modes than " +
         to_string(layout));
  }
  std::vector<Layout> modes;
  for (int i = 0; i < layout.rank(); ++i) {
    modes.push_back(i < profile.rank() ? at_leaves(operation, layout.mode(i), profile[i], f)
                                       : layout.mode(i));
  }
  return make_layout(modes);
}

IntTuple zeros_to_ones(const Shape& shape, const IntTuple& zeros) {
  if (!zeros.is_tuple()) {
    const bool zero = !zeros.is_underscore() && zeros.value().is_static(0);
    return zero ? repeat_like(shape, 1) : shape;
  }
  if (shape.rank() != zeros.rank()) {
    fail("filter_zeros: " + to_string(zeros) + " does not fit the shape " + to_string(shape));
  }
  std::vector<IntTuple> result;
  for (int i = 0; i < shape.rank(); ++i) {
    result.push_back(zeros_to_ones(shape[i], zeros[i]));
  }
  return IntTuple::tuple(std::move(result));
}

}  // namespace

Modes modes_of(const Layout& layout) {
  Modes result;
  collect(layout.shape(), layout.stride(), result);
  return result;
}

Layout from_modes(const Modes& modes) {
  if (modes.empty()) return {};
  if (modes.size() == 1) {
    return {modes[0].extent, IntTuple(modes[0].stride, modes[0].basis)};
  }
  std::vector<IntTuple> shape;
  std::vector<IntTuple> stride;
  shape.reserve(modes.size());
  stride.reserve(modes.size());
  for (const Mode& mode : modes) {
    shape.emplace_back(mode.extent);
    stride.emplace_back(mode.stride, mode.basis);
  }
  return {IntTuple::tuple(std::move(shape)), IntTuple::tuple(std::move(stride))};
}

Modes coalesced(const Modes& modes) {
  Modes result;
  result.reserve(modes.size());
  for (const Mode& mode : modes) {
    push(result, mode);
  }
  return result;
}

Modes coalesced_open(const Modes& modes) {
  if (modes.empty()) return {{1, 0, {}}};
  Modes result;
  result.reserve(modes.size());
  for (std::size_t i = 0; i + 1 < modes.size(); ++i) {
    push(result, modes[i]);
  }
  // The last mode goes on for ever: with extent 1 it still has to be there.
  const Mode& last = modes.back();
  push(result, {last.extent.is_static(1) ? Int(2) : last.extent, last.stride, last.basis});
  return result;
}

void refuse_basis(const char* operation, const Layout& layout) {
  for (const Mode& mode : modes_of(layout)) {
    if (mode.basis.depth != 0) {
      fail(std::string(operation) + ": " + to_string(layout) +
           " has basis strides; use a layout with integer strides");
    }
  }
}

Layout coalesce(const Layout& layout) { return from_modes(coalesced(modes_of(layout))); }

Layout coalesce(const Layout& layout, const IntTuple& profile) {
  return at_leaves("coalesce", layout, profile,
                   [](const Layout& mode, const IntTuple&) { return coalesce(mode); });
}

Layout filter_zeros(const Layout& layout) {
  return {zeros_to_ones(layout.shape(), layout.stride()), layout.stride()};
}

Layout filter_zeros(const Layout& layout, const IntTuple& profile) {
  return {zeros_to_ones(layout.shape(), profile), layout.stride()};
}

Layout filter(const Layout& layout) { return coalesce(filter_zeros(layout)); }

Layout filter(const Layout& layout, const IntTuple& profile) {
  return at_leaves("filter", layout, profile,
                   [](const Layout& mode, const IntTuple&) { return filter(mode); });
}

}  // namespace tilewright
