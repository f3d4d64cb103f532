// SPDX-License-Identifier: Apache-2.0
// docs/bug-classes.md names tests: each is one of the tree.
#include "structure/tree.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <regex>
#include <set>
#include <string>

namespace tilewright::test {
namespace {

/// "Suite.Name" of each TEST, TEST_F and TEST_P of the operators and of what they share.
std::set<std::string> tests_of_the_tree() {
  const std::regex begin(R"(^TEST(_F|_P)?\((\w+), *(\w+)\))");
  std::set<std::string> tests;
  for (const char* folder : {"kernels", "test"}) {
    for (const SourceFile& file : read_tree(folder, {".cpp"})) {
      for (const std::string& line : file.lines) {
        std::smatch found;
        if (std::regex_search(line, found, begin))
          tests.insert(found[2].str() + "." + found[3].str());
      }
    }
  }
  return tests;
}

TEST(BugClasses, AreEachFoundByTestsThatExist) {
  const auto pages = read_tree("docs", {".md"});
  const auto page = std::ranges::find(pages, "docs/bug-classes.md", &SourceFile::path);
  ASSERT_NE(page, pages.end());
  const std::set<std::string> tests = tests_of_the_tree();
  const std::regex report(R"([\w-]+#[0-9]+)"), test(R"(`([A-Z]\w+\.[A-Z]\w+)`)");
  int rows = 0;
  for (const std::string& line : page->lines) {
    if (!line.starts_with("| ") || line.starts_with("| what")) continue;
    ++rows;
    EXPECT_TRUE(std::regex_search(line, report)) << line;
    EXPECT_TRUE(std::regex_search(line, test)) << line;
    for (std::sregex_iterator at(line.begin(), line.end(), test), end; at != end; ++at)
      EXPECT_TRUE(tests.contains((*at)[1])) << (*at)[1] << " does not exist";
  }
  EXPECT_GT(rows, 20);
}

}  // namespace
}  // namespace tilewright::test
