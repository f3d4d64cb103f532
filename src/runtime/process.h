// SPDX-License-Identifier: Apache-2.0
// Running a program, finding one, and files that vanish when done.
#pragma once

#include "tilewright/error.h"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright::detail {

struct ProgramResult {
  int exit_code = -1;
  int signal = 0;      ///< what ended the program, if a signal did
  std::string output;  ///< stdout and stderr, as they came
};
/// Runs to the end, without a shell. Throws Error(user) if the program cannot be started.
ProgramResult run_program(const std::string& path, const std::vector<std::string>& arguments);

/// Files that may be run, in the order of search: $override_variable alone if it is set; else PATH,
/// the CUDA toolkit, and NVIDIA's Python packages.
std::vector<std::string> find_programs(const char* name, const char* override_variable);
/// Paths that match `pattern` under the places where Python packages are installed, sorted.
std::vector<std::string> find_in_python_packages(const char* pattern);
/// The value of an environment variable; empty if it is not set.
std::string environment(const char* name);

/// A directory of our own under $TMPDIR or /tmp, removed with its files.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory();
  std::string file(std::string_view name) const { return path_ + "/" + std::string(name); }

 private:
  std::string path_;
};

/// Throw Error(user) with the path and the system's reason.
void write_file(const std::string& path, std::span<const std::byte> bytes);
std::vector<std::byte> read_file(const std::string& path);

}  // namespace tilewright::detail
