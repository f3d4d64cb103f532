// SPDX-License-Identifier: Apache-2.0
// How golden files are compared and rewritten.
#include "golden.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>
#include <string>

namespace tilewright::test {
namespace {

bool update_golden = false;

std::string line_at(const std::string& text, std::size_t start) {
  return text.substr(start, text.find('\n', start) - start);
}

/// "line 3: expected «...», got «...»" for the first line that differs.
std::string first_difference(const std::string& expected, const std::string& actual) {
  std::size_t same = 0;
  while (same < std::min(expected.size(), actual.size()) && expected[same] == actual[same])
    ++same;
  auto end = expected.begin() + static_cast<std::ptrdiff_t>(same);
  auto line = std::count(expected.begin(), end, '\n') + 1;
  std::size_t start = same == 0 ? 0 : expected.rfind('\n', same - 1) + 1;  // npos + 1 is 0
  return "line " + std::to_string(line) + ":\n  expected: " + line_at(expected, start) +
         "\n  actual:   " + line_at(actual, start);
}

}  // namespace

void set_update_golden() { update_golden = true; }

void expect_golden(std::string_view name, std::string_view text) {
  std::filesystem::path path = std::filesystem::path(TILEWRIGHT_SOURCE_DIR) / "test/golden" / name;
  if (update_golden) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
    return;
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    ADD_FAILURE() << "no golden file " << path << "; run this program with --update-golden";
    return;
  }
  std::ostringstream expected;
  expected << in.rdbuf();
  std::string actual(text);
  if (expected.str() == actual) return;
#ifdef __clang__
  // C++ leaves the order in which a call's arguments are recorded to the compiler.
  GTEST_SKIP() << path.string() << " holds what g++ records, which differs at "
               << first_difference(expected.str(), actual);
#endif
  ADD_FAILURE() << path.string() << " differs at " << first_difference(expected.str(), actual)
                << "\nif the change is meant, run this program with --update-golden";
}

}  // namespace tilewright::test
