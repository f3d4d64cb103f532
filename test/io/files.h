// SPDX-License-Identifier: Apache-2.0
// What the tests of file formats share: data files, scratch files, and error texts.
#pragma once

#include "tilewright/error.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <string>
#include <unistd.h>
#include <vector>

namespace tilewright::test {

inline std::string data_file(const std::string& name) {
  return std::string(TILEWRIGHT_SOURCE_DIR) + "/test/io/data/" + name;
}

/// A folder of the test's own that is removed with the object.
class Scratch {
 public:
  Scratch()
      : path_(std::filesystem::temp_directory_path() /
              ("tilewright_io_" + std::to_string(::getpid()) + "_" +
               ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::create_directories(path_);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return path_ / name; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void write_text(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

/// The message of the Error that `body` throws; "no error" if it throws none.
template <typename Body>
std::string message_of(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.message();
  }
  return "no error";
}

/// The same without the folder of the file that it names.
template <typename Body>
std::string short_message_of(const std::string& folder, Body&& body) {
  std::string text = message_of(body);
  const std::size_t at = text.find(folder + "/");
  return at == std::string::npos ? text : text.erase(at, folder.size() + 1);
}

}  // namespace tilewright::test
