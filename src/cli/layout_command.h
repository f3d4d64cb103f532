// SPDX-License-Identifier: Apache-2.0
// `tilewright layout`: evaluates and draws expressions, and runs files of cases.
#pragma once

#include "tilewright/layout_eval.h"

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright::cli {

struct LayoutOptions {
  std::string expression{};  ///< evaluated, printed and, if it is a static layout, drawn
  std::string svg{};         ///< where to write the picture; empty: nowhere
  std::string cases{};       ///< a JSON file of cases to run instead
  int bank_bits = 0;         ///< colour the SVG by bank for elements of this width; 0: by index
  bool functions = false;    ///< list what expressions may call instead
};

/// Returns the exit code: 0, or 1 if a case failed. Throws Error(user) for what cannot be read,
/// evaluated or written.
int run_layout_command(const LayoutOptions& options, std::FILE* out);

/// Reads cases {"id", "op", "inputs", "expected", "accept"?}. Throws Error(user) naming the file
/// and what is wrong in it.
std::vector<LayoutCase> parse_layout_cases(std::string_view json, const std::string& file);

}  // namespace tilewright::cli
