// SPDX-License-Identifier: Apache-2.0
// Stands in for libFuzzer where it is absent: runs a fuzz target on every file of a corpus, and on
// mutations of each.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr int kMutationsPerFile = 200;  // a few seconds over the whole corpus

Bytes read(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return Bytes(std::istreambuf_iterator<char>(in), {});
}

/// One to four edits: a byte changed, a run removed, or a run repeated.
Bytes mutate(Bytes bytes, std::mt19937& random) {
  auto below = [&](std::size_t n) { return n == 0 ? 0 : random() % n; };
  for (std::size_t edits = 1 + below(4); edits > 0; --edits) {
    auto at = static_cast<std::ptrdiff_t>(below(bytes.size()));
    auto rest = bytes.size() - static_cast<std::size_t>(at);
    auto run = static_cast<std::ptrdiff_t>(below(std::min<std::size_t>(rest, 16) + 1));
    switch (below(3)) {
      case 0:
        if (rest > 0) bytes[static_cast<std::size_t>(at)] = static_cast<std::uint8_t>(below(256));
        break;
      case 1:
        bytes.erase(bytes.begin() + at, bytes.begin() + at + run);
        break;
      default: {
        Bytes copy(bytes.begin() + at, bytes.begin() + at + run);
        bytes.insert(bytes.begin() + at, copy.begin(), copy.end());
      }
    }
  }
  return bytes;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 || !std::filesystem::is_directory(argv[1])) {
    std::fprintf(stderr, "usage: %s CORPUS_FOLDER\n", argv[0]);
    return 2;
  }
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[1])) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  if (files.empty()) {
    std::fprintf(stderr, "error: the corpus %s is empty\n", argv[1]);
    return 2;
  }
  std::sort(files.begin(), files.end());
  std::mt19937 random(1);  // the same mutations at each run
  for (const auto& file : files) {
    std::printf("%s\n", file.c_str());
    std::fflush(stdout);  // names the culprit when the target crashes
    Bytes bytes = read(file);
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
    for (int i = 0; i < kMutationsPerFile; ++i) {
      Bytes changed = mutate(bytes, random);
      LLVMFuzzerTestOneInput(changed.data(), changed.size());
    }
  }
  std::printf("%zu files, %d mutations of each\n", files.size(), kMutationsPerFile);
  return 0;
}
