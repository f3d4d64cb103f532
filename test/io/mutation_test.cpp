// SPDX-License-Identifier: Apache-2.0
// Ten thousand damaged files: each is read or refused with an Error, and nothing else happens.
#include "io/files.h"
#include "tilewright/case_file.h"
#include "tilewright/npy.h"
#include "tilewright/npz.h"
#include "tilewright/safetensors.h"

#include <gtest/gtest.h>
#include <random>

namespace tilewright::test {
namespace {

constexpr unsigned kSeed = 20240611;

/// One to five edits: bytes changed, removed, inserted or repeated, or a digit replaced.
std::string mutate(std::string text, std::mt19937& random) {
  const auto below = [&random](std::size_t n) { return n == 0 ? 0 : random() % n; };
  for (std::size_t edits = 1 + below(5); edits > 0; --edits) {
    const std::size_t at = below(std::min<std::size_t>(text.size(), 400));
    const std::size_t length = 1 + below(8);
    switch (below(5)) {
      case 0:
        text.replace(at, 1, 1, static_cast<char>(below(256)));
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(at, length, "[]{}\"0129,-"[below(11)]);
        break;
      case 3:
        text.insert(at, text.substr(below(text.size()), 4 * length));
        break;
      default:
        for (std::size_t i = at; i < text.size(); ++i) {
          if (text[i] < '0' || text[i] > '9') continue;
          text[i] = static_cast<char>('0' + below(10));
          break;
        }
    }
  }
  return text;
}

/// How many of the mutated files were refused; any exception but Error ends the test.
template <typename Read>
int refused(const char* file, int count, Read read) {
  std::mt19937 random(kSeed);
  const std::string original = read_text(data_file(file));
  int errors = 0;
  for (int i = 0; i < count; ++i) {
    const std::string text = mutate(original, random);
    try {
      read(text);
    } catch (const Error& error) {
      EXPECT_NE(error.kind(), ErrorKind::internal) << error.message();
      ++errors;
    }
  }
  return errors;
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

TEST(Mutation, NpyFilesAreReadOrRefused) {
  const auto read = [](const std::string& text) { parse_npy(bytes_of(text), "x.npy"); };
  for (const char* file : {"f4.npy", "fortran.npy"}) {
    const int errors = refused(file, 2500, read);
    EXPECT_GT(errors, 500) << "seed " << kSeed;
    EXPECT_LT(errors, 2500) << "seed " << kSeed;
  }
}

TEST(Mutation, SafetensorsHeadersAreReadOrRefused) {
  const auto read = [](const std::string& text) {
    parse_safetensors_header(bytes_of(text), text.size(), "x.safetensors");
  };
  const int errors = refused("mixed.safetensors", 4000, read);
  EXPECT_GT(errors, 1000) << "seed " << kSeed;
  EXPECT_LT(errors, 4000) << "seed " << kSeed;
}

TEST(Mutation, ArchivesAreReadOrRefused) {
  const Scratch scratch;
  const std::string path = scratch / "x.npz";
  const auto read = [&path](const std::string& text) {
    write_text(path, text);
    read_npz(path);
  };
  EXPECT_GT(refused("deflated.npz", 1000, read), 500) << "seed " << kSeed;
}

}  // namespace
}  // namespace tilewright::test
