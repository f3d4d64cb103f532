// SPDX-License-Identifier: Apache-2.0
// Small kernels with the kinds of findings that every schedule must give.
#pragma once

#include "emu/bench.h"

#include <cctype>
#include <gtest/gtest.h>
#include <ostream>
#include <string>

namespace tilewright::emu::test {

struct Row {
  std::string name;
  Kernel kernel;
  std::string kinds;  ///< empty: clean
  std::string checks = "all";
};
inline std::ostream& operator<<(std::ostream& out, const Row& row) { return out << row.name; }

/// All deliveries and divergences, each with a seed of its own.
inline void expect_kinds(const Row& row) {
  for (std::uint64_t seed = 0; seed < 9; ++seed) {
    Options o;
    o.seed = seed;
    o.checks = parse_checks(row.checks);
    o.delivery = static_cast<Delivery>(seed % 3);
    o.divergence = static_cast<Divergence>(seed / 3 % 3);
    const Outcome out = run(row.kernel, o);
    const bool good = row.kinds.empty() ? out.report.findings.empty() && out.report.completed
                                        : out.kinds().starts_with(row.kinds);
    EXPECT_TRUE(good) << row.name << ", seed " << seed << ", wanted '" << row.kinds << "':\n"
                      << out.text();
    if (testing::Test::HasFailure()) return;
  }
}

inline std::string test_name(const testing::TestParamInfo<Row>& row) {
  std::string out;
  for (const char c : row.param.name) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      out += c;
    } else {
      out += '_';
    }
  }
  return out;
}

}  // namespace tilewright::emu::test
