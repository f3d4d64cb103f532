// SPDX-License-Identifier: Apache-2.0
// Matching views against the shapes of a schema.
#include "runtime/schema_shape.h"

#include <algorithm>
#include <charconv>

namespace tilewright {

std::optional<std::int64_t> fixed_extent(std::string_view mode) {
  std::int64_t value = 0;
  const auto [end, code] = std::from_chars(mode.data(), mode.data() + mode.size(), value);
  if (code != std::errc() || end != mode.data() + mode.size()) return std::nullopt;
  return value;
}

ShapePattern::ShapePattern(std::string_view text) : text_(text), any_shape_(text == "*") {
  if (any_shape_) return;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view mode = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    if (mode == "...") {
      TW_ASSERT(modes_.empty(), "'...' comes first in a schema's shape");
      ellipsis_ = true;
    } else {
      modes_.push_back(mode);
    }
  }
}

std::string ShapePattern::bind(std::string_view tensor, const View& view,
                               SizeBindings& sizes) const {
  if (any_shape_) return {};
  const std::size_t rank = static_cast<std::size_t>(view.rank);
  const auto wrong = [&] {
    return "'" + std::string(tensor) + "' is " + to_string(view) + "; its shape must be [" +
           std::string(text_) + "]";
  };
  if (ellipsis_ ? rank < modes_.size() : rank != modes_.size()) return wrong();
  const std::size_t skipped = rank - modes_.size();
  for (std::size_t i = 0; i < modes_.size(); ++i) {
    const std::string_view mode = modes_[i];
    const std::int64_t extent = view.shape[skipped + i];
    if (mode == "_") continue;
    if (const std::optional<std::int64_t> fixed = fixed_extent(mode)) {
      if (extent == *fixed) continue;
      return wrong();
    }
    const auto known = std::find_if(sizes.begin(), sizes.end(),
                                    [mode](const SizeBinding& b) { return b.name == mode; });
    if (known == sizes.end()) {
      sizes.push_back({mode, extent, tensor});
    } else if (known->value != extent) {
      return wrong() + " with " + std::string(mode) + " = " + std::to_string(known->value) +
             " as in '" + std::string(known->tensor) + "'";
    }
  }
  return {};
}

std::optional<std::int64_t> ShapePattern::extent_of(std::string_view name, const View& view) const {
  const std::size_t rank = static_cast<std::size_t>(view.rank);
  if (any_shape_ || rank < modes_.size()) return std::nullopt;
  for (std::size_t i = 0; i < modes_.size(); ++i) {
    if (modes_[i] == name) return view.shape[rank - modes_.size() + i];
  }
  return std::nullopt;
}

}  // namespace tilewright
