// SPDX-License-Identifier: Apache-2.0
// Holding an operator's outputs against its float64 reference and a case file's expectations.
#pragma once

#include "cli/inputs.h"
#include "cli/json.h"
#include "tilewright/operator.h"

#include <string>
#include <vector>

namespace tilewright::cli {

struct CheckResult {
  std::string output;
  std::string against;  ///< "the float64 reference", "expect.y"
  std::string skipped;  ///< why it was not compared; empty: it was
  Tolerance tolerance;
  Comparison comparison;
};

/// One result for each output and right answer. Pre: `arguments` are those of the launch.
std::vector<CheckResult> check_outputs(const Inputs& inputs, const Arguments& arguments,
                                       const std::vector<Array>& outputs);
bool all_right(const std::vector<CheckResult>& results);
std::string text_of(const CheckResult& result);
Json json_of(const CheckResult& result);

}  // namespace tilewright::cli
