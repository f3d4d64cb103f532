// SPDX-License-Identifier: Apache-2.0
// Rules that every file keeps: licence tag, opening sentence, length, name.
#include "structure/tree.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <gtest/gtest.h>
#include <string_view>

namespace tilewright::test {
namespace {

constexpr int kMaxLines = 800;  // docs/style.md; tables between clang-format off and on are exempt
constexpr int kMaxGoldenLines = 80;  // one construct a file

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// Lines outside tables of data.
int counted_lines(const SourceFile& file) {
  int count = 0;
  bool table = false;
  for (const std::string& line : file.lines) {
    if (contains(line, "// clang-format off")) table = true;
    if (contains(line, "// clang-format on")) table = false;
    count += table ? 0 : 1;
  }
  return count;
}

std::string line(const SourceFile& file, std::size_t index) {
  return index < file.lines.size() ? file.lines[index] : "";
}

TEST(Files, CheckReadsTheTree) {
  EXPECT_GE(all_sources().size(), 10u) << "the sources were not found at " << TILEWRIGHT_SOURCE_DIR;
}

TEST(Files, SourcesOpenWithTheLicenceTagAndOneSentence) {
  for (const SourceFile& file : all_sources()) {
    EXPECT_EQ(line(file, 0), "// SPDX-License-Identifier: Apache-2.0") << file.path << ":1";
    std::string sentence = line(file, 1);
    EXPECT_TRUE(sentence.starts_with("// ") && std::ranges::count(sentence, ' ') >= 3)
        << file.path
        << ":2: needs a comment of one sentence on what the file holds, not: " << sentence;
  }
}

TEST(Files, ScriptsAndBuildFilesCarryTheLicenceTag) {
  const std::string tag = "# SPDX-License-Identifier: Apache-2.0";
  for (const char* folder : {"cmake", "test", "scripts", "python", ".ci"}) {
    for (const SourceFile& file : read_tree(folder, {".cmake", ".sh", ".py", ""})) {
      std::size_t first = line(file, 0).starts_with("#!") ? 1 : 0;
      EXPECT_EQ(line(file, first), tag) << file.path << ":" << first + 1;
    }
  }
}

TEST(Files, NoSourceIsLongerThanTheLimit) {
  for (const SourceFile& file : all_sources()) {
    EXPECT_LE(counted_lines(file), kMaxLines)
        << file.path
        << " is too long; split it by concept (tables may sit between clang-format off/on)";
  }
}

TEST(Files, NoGoldenFileIsLongerThanTheLimit) {
  for (const SourceFile& file : read_tree("test/golden", {".ptx", ".txt"})) {
    EXPECT_LE(file.lines.size(), kMaxGoldenLines) << file.path << "; show one construct a file";
  }
}

TEST(Files, NamesSayWhatIsInside) {
  constexpr std::array<std::string_view, 6> kEmptyWords = {"utils", "util",    "common",
                                                           "misc",  "helpers", "v2"};
  for (const SourceFile& file : all_sources()) {
    std::string stem = std::filesystem::path(file.path).stem();
    EXPECT_TRUE(std::ranges::all_of(
        stem, [](char c) { return c == '_' || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }))
        << file.path << ": names are snake_case";
    EXPECT_EQ(std::ranges::find(kEmptyWords, stem), kEmptyWords.end())
        << file.path << ": name it after what it holds";
  }
}

TEST(Files, HeadersHavePragmaOnce) {
  for (const SourceFile& file : all_sources()) {
    if (!file.path.ends_with(".h")) continue;
    EXPECT_NE(std::ranges::find(file.lines, "#pragma once"), file.lines.end()) << file.path;
  }
}

}  // namespace
}  // namespace tilewright::test
