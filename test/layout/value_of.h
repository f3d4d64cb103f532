// SPDX-License-Identifier: Apache-2.0
// A layout expression's value, or the text of its refusal.
#pragma once

#include "tilewright/layout_eval.h"

#include <string>
#include <string_view>

namespace tilewright::test {

inline std::string value_of(std::string_view expression) {
  try {
    return evaluate_layout_expression(expression).text;
  } catch (const Error& e) {
    return e.what();
  }
}

}  // namespace tilewright::test
