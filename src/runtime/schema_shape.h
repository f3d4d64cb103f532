// SPDX-License-Identifier: Apache-2.0
// A tensor's shape as a schema writes it, "T,H", and the sizes that views bind to its names.
#pragma once

#include "tilewright/view.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tilewright {

/// A size name, its value, and the tensor that gave it.
struct SizeBinding {
  std::string_view name;
  std::int64_t value = 0;
  std::string_view tensor;
};
using SizeBindings = std::vector<SizeBinding>;

class ShapePattern {
 public:
  explicit ShapePattern(std::string_view text);

  /// Holds the view against the pattern and adds the sizes that it names; what is wrong, in words,
  /// or nothing.
  std::string bind(std::string_view tensor, const View& view, SizeBindings& sizes) const;
  /// The extent of the view that `name` stands for.
  std::optional<std::int64_t> extent_of(std::string_view name, const View& view) const;
  const std::vector<std::string_view>& modes() const { return modes_; }  ///< without the "..."
  bool any_shape() const { return any_shape_; }
  bool has_ellipsis() const { return ellipsis_; }

 private:
  std::string_view text_;
  std::vector<std::string_view> modes_;
  bool any_shape_ = false;
  bool ellipsis_ = false;
};

/// Whether a mode is a number, and which.
std::optional<std::int64_t> fixed_extent(std::string_view mode);

}  // namespace tilewright
