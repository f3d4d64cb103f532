// SPDX-License-Identifier: Apache-2.0
// What `tilewright bench` measured, as bandwidth over the first size of the problems.
#pragma once

#include "cli/measure.h"
#include "cli/plot.h"

#include <string>
#include <vector>

namespace tilewright::cli {

/// A problem that was measured.
struct BenchRow {
  std::string op;
  std::string problem;
  Measurement measurement;
};

/// A line for problems that differ in their first size alone, and its ceiling. Throws Error(user)
/// if no problem has a size and bytes.
Plot bandwidth_plot(const std::vector<BenchRow>& rows, const std::string& device);

}  // namespace tilewright::cli
