// SPDX-License-Identifier: Apache-2.0
// Running the program as a process: exit code, output, errors, and files in a folder of its own.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

namespace tilewright::test {

struct Outcome {
  int code = -1;
  std::string out;
  std::string err;
};

/// A folder that the program runs in; removed with the object.
class Folder {
 public:
  Folder()
      : path_(std::filesystem::temp_directory_path() /
              ("tilewright_cli_" + std::to_string(::getpid()) + "_" +
               ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::create_directories(path_);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }

  std::string operator/(const std::string& name) const { return path_ / name; }

  /// `environment` is prefixed: "TILEWRIGHT_CACHE=off".
  Outcome run(const std::string& program, const std::string& arguments,
              const std::string& environment = "") const {
    const std::string command = "cd '" + path_.string() + "' && " + environment + " '" + program +
                                "' " + arguments + " >.out 2>.err";
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read(".out"), read(".err")};
  }

  std::string read(const std::string& name) const {
    std::ifstream in(path_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name, std::ios::binary) << text;
  }

 private:
  std::filesystem::path path_;
};

inline Outcome tilewright(const Folder& folder, const std::string& arguments) {
  return folder.run(TILEWRIGHT_PROGRAM, arguments);
}
/// The program whose one operator is `scale`; its kernels are cached in the folder.
inline Outcome with_scale(const Folder& folder, const std::string& arguments) {
  return folder.run(TILEWRIGHT_TEST_PROGRAM, arguments, "TILEWRIGHT_CACHE_DIR=cache");
}
#ifdef TILEWRIGHT_FAKE_CUDA
/// The same program beside a stand-in for the driver; it takes tuning records from the folder.
inline Outcome on_fake_gpu(const Folder& folder, const std::string& arguments) {
  return folder.run(TILEWRIGHT_TEST_PROGRAM, arguments,
                    "TILEWRIGHT_CACHE_DIR=cache TILEWRIGHT_TUNED=. "
                    "TILEWRIGHT_CUDA_DRIVER='" TILEWRIGHT_FAKE_CUDA "'");
}
#endif

}  // namespace tilewright::test
