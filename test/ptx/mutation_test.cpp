// SPDX-License-Identifier: Apache-2.0
// Ten thousand damaged PTX files: each is read or refused with an Error, and nothing else happens.
#include "tilewright/error.h"
#include "tilewright/module.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <random>
#include <sstream>

namespace tilewright::ptx {
namespace {

namespace fs = std::filesystem;
constexpr unsigned kSeed = 20240917;
constexpr std::size_t kMaxBytes = 12'000;  // larger files have nothing that the smaller ones lack

std::vector<std::string> originals() {
  std::vector<std::string> out;
  for (const auto& entry :
       fs::recursive_directory_iterator(fs::path(TILEWRIGHT_SOURCE_DIR) / "test")) {
    if (entry.path().extension() != ".ptx") continue;
    std::ifstream in(entry.path(), std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    if (text.str().size() <= kMaxBytes) out.push_back(text.str());
  }
  std::sort(out.begin(), out.end());
  return out;
}

/// One to four edits: bytes changed, runs removed or repeated, statements moved, words exchanged.
std::string mutate(std::string text, std::mt19937& random) {
  const auto below = [&random](std::size_t n) { return n == 0 ? 0 : random() % n; };
  constexpr std::array<std::string_view, 24> kWords = {"{",
                                                       "}",
                                                       "[",
                                                       "]",
                                                       "(",
                                                       ")",
                                                       ";",
                                                       ",",
                                                       ":",
                                                       "@%p1 ",
                                                       "!",
                                                       "-",
                                                       "<1000000000>",
                                                       "0x7fffffffffffffff",
                                                       ".reg .b32 %q<4>;",
                                                       ".b8 x[99999999999];",
                                                       "0f3F800000",
                                                       ".loc 1 2 3\n",
                                                       "{{{{{{{{",
                                                       "((((((((",
                                                       "/*",
                                                       "\"",
                                                       ".v4",
                                                       "_"};
  for (std::size_t edits = 1 + below(4); edits > 0; --edits) {
    const std::size_t at = below(text.size());
    switch (below(5)) {
      case 0:
        text[at] = static_cast<char>(below(256));
        break;
      case 1:
        text.erase(at, 1 + below(40));
        break;
      case 2:
        text.insert(at, kWords[below(kWords.size())]);
        break;
      case 3:
        text.insert(at, text.substr(below(text.size()), 1 + below(200)));
        break;
      default: {
        const std::size_t line = text.find('\n', at);
        if (line != std::string::npos) text.erase(at, line - at);
      }
    }
    if (text.empty()) text = ";";
  }
  return text;
}

TEST(Mutation, DamagedTextIsReadOrRefusedWithAnError) {
  const std::vector<std::string> files = originals();
  ASSERT_FALSE(files.empty());
  std::mt19937 random(kSeed);
  int refused = 0;
  for (int i = 0; i < 10000; ++i) {
    const std::string text = mutate(files[random() % files.size()], random);
    try {
      Module module = parse(text, "damaged.ptx");
      print(module);
      required_version(module);
    } catch (const Error& error) {
      ASSERT_NE(error.kind(), ErrorKind::internal) << error.message() << "\n" << text;
      ++refused;
    }
  }
  EXPECT_GT(refused, 2000);
  EXPECT_LT(refused, 9900);  // or nothing of what comes after parsing was tried
}

}  // namespace
}  // namespace tilewright::ptx
