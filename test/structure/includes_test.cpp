// SPDX-License-Identifier: Apache-2.0
// A part includes only the parts it may need; a public header belongs to the part that implements
// it.
#include "structure/tree.h"

#include <algorithm>
#include <filesystem>
#include <gtest/gtest.h>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace tilewright::test {
namespace {

using Parts = std::map<std::string, std::set<std::string>>;

/// What each part may include besides itself: the table of docs/architecture.md, closed.
const Parts& allowed_parts() {
  static const Parts parts = {
      {"base", {}},
      {"layout", {"base"}},
      {"ptx", {"base"}},
      {"lang", {"base", "layout", "ptx"}},
      {"emu", {"base", "ptx"}},
      {"runtime", {"base", "layout", "ptx", "lang", "emu"}},
      {"tune", {"base", "layout", "ptx", "lang", "emu", "runtime"}},
      {"io", {"base", "layout", "ptx", "lang", "emu", "runtime"}},
      {"kernels", {"base", "layout", "ptx", "lang", "emu", "runtime", "tune"}},
      {"c", {"base", "layout", "ptx", "lang", "emu", "runtime", "tune", "kernels"}},
      {"cli", {"base", "layout", "ptx", "lang", "emu", "runtime", "tune", "io", "kernels"}},
      {"python", {"base", "layout", "ptx", "lang", "emu", "runtime", "tune", "io", "kernels", "c"}},
  };
  return parts;
}

/// The header named by a line `#include "..."`.
std::optional<std::string> included(const std::string& line) {
  std::size_t hash = line.find_first_not_of(" \t");
  if (hash == std::string::npos || line.compare(hash, 8, "#include") != 0) return {};
  std::size_t open = line.find('"');
  std::size_t close = line.rfind('"');
  if (open == std::string::npos || close <= open) return {};
  return line.substr(open + 1, close - open - 1);
}

/// The second folder of a path: "src/ptx/printer.cpp" gives "ptx".
std::string second_folder(const std::filesystem::path& path) {
  return std::next(path.begin())->string();
}

/// Public header ("layout") to part, as include/tilewright/tilewright.h groups them: under "//
/// PART".
std::map<std::string, std::string> parts_of_headers() {
  std::map<std::string, std::string> parts = {{"tilewright", "cli"}};
  std::string part;
  for (const SourceFile& file : read_tree("include/tilewright", {".h"})) {
    if (!file.path.ends_with("/tilewright.h")) continue;
    for (const std::string& line : file.lines) {
      if (line.starts_with("// ") && allowed_parts().contains(line.substr(3)))
        part = line.substr(3);
      if (auto name = included(line)) parts[std::filesystem::path(*name).stem()] = part;
    }
  }
  return parts;
}

/// The part of an include path as written in a source, or "" if it is none of the project's.
std::string part_of_include(const std::string& name,
                            const std::map<std::string, std::string>& headers) {
  std::filesystem::path path = name;
  if (name.starts_with("tilewright/")) {
    auto found = headers.find(path.stem());
    return found == headers.end() ? "" : found->second;
  }
  std::string first = path.begin()->string();
  return allowed_parts().contains(first) && std::next(path.begin()) != path.end() ? first : "";
}

std::string part_of_file(const SourceFile& file,
                         const std::map<std::string, std::string>& headers) {
  if (file.path.starts_with("include/")) {
    return part_of_include(file.path.substr(std::string("include/").size()), headers);
  }
  return file.path.starts_with("kernels/") ? "kernels" : second_folder(file.path);
}

TEST(Includes, TheUmbrellaHeaderNamesEveryPublicHeaderUnderItsPart) {
  auto headers = parts_of_headers();
  for (const SourceFile& file : read_tree("include/tilewright", {".h"})) {
    std::string stem = std::filesystem::path(file.path).stem();
    EXPECT_TRUE(headers.contains(stem) && !headers[stem].empty())
        << "include/tilewright/tilewright.h does not include " << file.path
        << "; add it there under its part";
  }
}

TEST(Includes, APublicHeaderIsImplementedInItsPart) {
  auto headers = parts_of_headers();
  for (const SourceFile& file : read_tree("src", {".cpp"})) {
    std::string stem = std::filesystem::path(file.path).stem();
    std::string own = "tilewright/" + stem + ".h";
    if (std::ranges::none_of(file.lines, [&](const auto& line) { return included(line) == own; })) {
      continue;  // a file of the same name that implements something else
    }
    EXPECT_EQ(headers[stem], second_folder(file.path))
        << file.path << " implements " << own
        << ", which include/tilewright/tilewright.h has under another part";
  }
}

TEST(Includes, EachPartIncludesOnlyPartsThatItMayNeed) {
  auto headers = parts_of_headers();
  std::vector<SourceFile> files;
  for (const char* folder : {"include/tilewright", "src", "kernels"}) {
    for (SourceFile& file : read_tree(folder, {".h", ".cpp"})) {
      bool tool = file.path.starts_with("kernels/") &&
                  (file.path.ends_with("/test.cpp") || file.path.ends_with("/bench.cpp"));
      if (!tool) files.push_back(std::move(file));
    }
  }
  for (const SourceFile& file : files) {
    std::string part = part_of_file(file, headers);
    if (!allowed_parts().contains(part)) {
      ADD_FAILURE() << file.path << ": no part '" << part << "' in docs/architecture.md";
      continue;
    }
    for (const std::string& line : file.lines) {
      auto name = included(line);
      std::string other = name ? part_of_include(*name, headers) : "";
      if (other.empty() || other == part) continue;
      EXPECT_TRUE(allowed_parts().at(part).contains(other))
          << file.path << ": part " << part << " includes " << *name << " of part " << other;
    }
  }
}

TEST(Includes, HeadersForCNeedNothingOfTheLibrary) {
  int found = 0;
  for (const SourceFile& file : read_tree("include", {".h"})) {
    if (file.path.starts_with("include/tilewright/")) continue;
    ++found;
    for (const std::string& line : file.lines) {
      EXPECT_FALSE(included(line).has_value()) << file.path << ": " << line;
    }
  }
  EXPECT_EQ(found, 2);
}

TEST(Includes, HeavyStandardHeadersStayOut) {
  const std::set<std::string> heavy = {"#include <iostream>", "#include <regex>",
                                       "#include <ranges>"};
  for (const SourceFile& file : read_tree("include", {".h"})) {
    for (const std::string& line : file.lines) {
      EXPECT_FALSE(heavy.contains(line)) << file.path << ": " << line;
    }
  }
}

}  // namespace
}  // namespace tilewright::test
