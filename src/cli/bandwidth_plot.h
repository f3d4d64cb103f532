// SPDX-License-Identifier: Apache-2.0
// What `tilewright bench` measured, as bandwidth over the first size of the problems.
#pragma once

#include "cli/measure.h"
#include "cli/plot.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tilewright::cli {

/// A problem that was measured.
struct BenchRow {
  std::string op;
  std::string problem;
  Measurement measurement;
};

/// The fastest other way to do a problem, from a file that bench/peers writes.
struct PeerRow {
  std::string name;  ///< "rms_norm T=1,H=4096,x=bf16,w=bf16"
  double us = 0;
  std::int64_t bytes = 0;
};
/// Those of a file in Google Benchmark's format whose rows have `peer_us` and `bytes`. Throws
/// Error(user) if it has none or cannot be read.
std::vector<PeerRow> read_peers(const std::string& path);

/// A line for problems that differ in their first size alone, its ceiling, and the best peers of
/// these problems, of any first size, where there are some. Throws Error(user) if no problem has a
/// size and bytes.
Plot bandwidth_plot(const std::vector<BenchRow>& rows, const std::vector<PeerRow>& peers,
                    const std::string& device);

}  // namespace tilewright::cli
