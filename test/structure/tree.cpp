// SPDX-License-Identifier: Apache-2.0
// How the project's own sources are found and read.
#include "structure/tree.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace tilewright::test {

namespace fs = std::filesystem;

std::vector<SourceFile> read_tree(const std::string& folder,
                                  const std::vector<std::string>& extensions) {
  std::vector<SourceFile> files;
  fs::path root = TILEWRIGHT_SOURCE_DIR;
  if (!fs::is_directory(root / folder)) return files;
  for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
    std::string extension = entry.path().extension();
    if (!entry.is_regular_file() || std::ranges::find(extensions, extension) == extensions.end()) {
      continue;
    }
    SourceFile file{fs::relative(entry.path(), root).string(), {}};
    if (file.path.find("/corpus/") != std::string::npos) continue;
    std::ifstream in(entry.path());
    for (std::string line; std::getline(in, line);)
      file.lines.push_back(line);
    files.push_back(std::move(file));
  }
  std::ranges::sort(files, {}, &SourceFile::path);
  return files;
}

std::vector<SourceFile> all_sources() {
  std::vector<SourceFile> all;
  for (const char* folder : {"bench", "examples", "include", "kernels", "python", "src", "test"}) {
    for (SourceFile& file : read_tree(folder, {".h", ".cpp"}))
      all.push_back(std::move(file));
  }
  return all;
}

}  // namespace tilewright::test
