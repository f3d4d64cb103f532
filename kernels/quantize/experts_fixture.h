// SPDX-License-Identifier: Apache-2.0
// Rows of experts, [E, T, N], of which those behind an expert's number stay as they are.
#pragma once

#include "kernels/quantize/quant_output_fixture.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace tilewright::test {

class ExpertsTest : public QuantOutputTest {
 protected:
  static constexpr std::byte kUntouched{0xa5};  // what OperatorTest fills outputs with

  static Array tokens(const std::vector<double>& counts) {
    return make_array("tokens_per_expert", s32, {static_cast<std::int64_t>(counts.size())}, counts);
  }

  /// NaN in the rows that do not count: nothing may come of them.
  static Array rows(Type type, std::int64_t t, std::int64_t n, const std::vector<double>& counts) {
    const auto experts = static_cast<std::int64_t>(counts.size());
    Array x = random("x", type, {experts, t, n}, 3);
    std::vector<double> values = to_doubles(x);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto row = static_cast<std::int64_t>(i) / n;
      if (static_cast<double>(row % t) >= counts[static_cast<std::size_t>(row / t)])
        values[i] = std::numeric_limits<double>::quiet_NaN();
    }
    return make_array("x", type, x.shape, values);
  }

  /// Runs, compares with the reference, and looks at rows [counts, T) of an output [E, T, ...].
  std::vector<Array> run_masked(const Operator& op, std::vector<Array> inputs,
                                const std::vector<double>& counts, const Options& options = {},
                                Placement placement = {}) {
    inputs.push_back(tokens(counts));
    std::vector<Array> outputs = run(op, inputs, options, placement);
    for (const Array& out : outputs) {
      const bool of_rows = out.shape.size() >= 2 && out.shape[1] == inputs.front().shape[1];
      if (of_rows) expect_untouched(out, counts);
    }
    return outputs;
  }

  static void expect_untouched(const Array& out, const std::vector<double>& counts) {
    const std::size_t of_expert = out.bytes.size() / counts.size();
    const std::size_t of_row =
        of_expert / std::max<std::size_t>(1, static_cast<std::size_t>(out.shape[1]));
    for (std::size_t e = 0; e < counts.size(); ++e) {
      const auto begin = out.bytes.begin() + static_cast<std::ptrdiff_t>(e * of_expert);
      const auto first =
          static_cast<std::ptrdiff_t>(counts[e]) * static_cast<std::ptrdiff_t>(of_row);
      EXPECT_TRUE(std::all_of(begin + first, begin + static_cast<std::ptrdiff_t>(of_expert),
                              [](std::byte b) { return b == kUntouched; }))
          << out.name << " of expert " << e;
    }
  }
};

}  // namespace tilewright::test
