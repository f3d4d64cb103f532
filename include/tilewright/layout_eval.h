// SPDX-License-Identifier: Apache-2.0
// Evaluates expressions of the layout algebra given as text, and runs cases with known answers.
#pragma once

#include "tilewright/swizzle.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright {

/// What an expression is worth.
struct LayoutAnswer {
  std::string text;  ///< in CuTe's notation; "layout @ offset" for a part, "tile, layout" for TV
  std::optional<ComposedLayout> layout;  ///< if it is one: what pictures draw
  std::optional<LayoutTV> thread_value;  ///< if it is what make_layout_tv gives
};

/// Evaluates "composition((6,2):(8,2), (4,3):(3,1))": every function of the algebra by its CuTe
/// name, nested as you like, and "(4,8):(1,4)(2,3)", a layout at a coordinate. Throws Error(user).
LayoutAnswer evaluate_layout_expression(std::string_view text);

/// One function that expressions may call.
struct LayoutFunction {
  std::string_view name;
  std::string_view parameters;  ///< "layout, tiler"
  std::string_view meaning;
};
/// All of them, by name.
std::vector<LayoutFunction> layout_functions();

/// A call with a known answer.
struct LayoutCase {
  std::string id;
  std::string op;
  std::vector<std::string> inputs;
  std::string expected;             ///< in CuTe's notation, or "error"
  std::vector<std::string> accept;  ///< other right answers
};

struct LayoutCaseReport {
  int passed = 0;
  int failed = 0;
  std::vector<std::string> differences;  ///< one line a failed case
};
/// Strides of extent 1 are free, and left_inverse is compared as a function.
LayoutCaseReport run_layout_cases(std::span<const LayoutCase> cases);

}  // namespace tilewright
