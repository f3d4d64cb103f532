// SPDX-License-Identifier: Apache-2.0
// The functions that layout expressions call, as table rows.
#pragma once

#include "tilewright/layout_eval.h"

#include <cstddef>
#include <span>
#include <string_view>
#include <variant>

namespace tilewright {

/// What an expression can be worth.
using LayoutValue =
    std::variant<IntTuple, bool, Layout, Tiler, Swizzle, ComposedLayout, OffsetLayout, LayoutTV>;
std::string to_string(const LayoutValue& value);
/// The value of an expression.
LayoutValue evaluate_text(std::string_view text);

/// The arguments of one call, with conversions that name function and argument when they fail.
class Args {
 public:
  Args(std::string_view function, std::span<const LayoutValue> values)
      : function_(function), values_(values) {}

  std::size_t size() const { return values_.size(); }
  IntTuple tuple(std::size_t i) const;
  Int integer(std::size_t i) const;
  int number(std::size_t i) const;  ///< a static integer of 32 bits
  Layout layout(std::size_t i) const;
  Tiler tiler(std::size_t i) const;
  Swizzle swizzle(std::size_t i) const;
  ComposedLayout composed(std::size_t i) const;
  bool holds_swizzle(std::size_t i) const;   ///< a bare one
  bool holds_composed(std::size_t i) const;  ///< behind a swizzle
  bool holds_layout(std::size_t i) const;    ///< plain or composed
  bool holds_tuple(std::size_t i) const;

 private:
  [[noreturn]] void refuse(std::size_t i, const char* wanted) const;
  std::string_view function_;
  std::span<const LayoutValue> values_;
};

struct FunctionRow {
  std::string_view name;
  std::string_view parameters;
  std::size_t min_args;
  std::size_t max_args;
  LayoutValue (*call)(const Args& args);
  std::string_view meaning;
};
std::span<const FunctionRow> tuple_functions();
std::span<const FunctionRow> layout_rows();
std::span<const FunctionRow> tile_functions();

/// A composed layout that is plain becomes a Layout.
LayoutValue plain(ComposedLayout layout);
/// Throws Error(user) with the functions of a similar name if there is none.
LayoutValue call_function(std::string_view name, std::span<const LayoutValue> values);

}  // namespace tilewright
