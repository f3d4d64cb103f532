// SPDX-License-Identifier: Apache-2.0
// Reads the project's own sources, for the tests of the tree.
#pragma once

#include <string>
#include <vector>

namespace tilewright::test {

struct SourceFile {
  std::string path;  ///< relative to the project: "src/ptx/printer.cpp"
  std::vector<std::string> lines;
};

/// Every file of these extensions below the folder, sorted by path; corpora and build trees left
/// out.
std::vector<SourceFile> read_tree(const std::string& folder,
                                  const std::vector<std::string>& extensions);

/// All C++ sources and headers of the project.
std::vector<SourceFile> all_sources();

}  // namespace tilewright::test
