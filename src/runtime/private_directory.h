// SPDX-License-Identifier: Apache-2.0
// A directory that only its owner can write: files read with suspicion, written whole, and locked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tilewright::detail {

/// An open lock file; closing it, or the end of the process, releases the lock.
class FileLock {
 public:
  FileLock() = default;
  explicit FileLock(int fd) : fd_(fd) {}
  FileLock(FileLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileLock& operator=(FileLock&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileLock();
  bool held() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

/// Functions report what went wrong as text, empty for nothing; none throws for a file's sake.
class PrivateDirectory {
 public:
  explicit PrivateDirectory(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  /// Makes it where it is missing, mode 0700. The problem: not a directory, another's, open to all.
  std::string prepare();

  struct Read {
    std::optional<std::string> bytes;  ///< nothing: no such file, or `problem` says why not
    std::string problem;
  };
  enum class Purpose { use, inspect };
  /// Refuses links, what is not a plain file, and what others own or can write. A file that is used
  /// becomes the youngest.
  Read read(const std::string& name, Purpose purpose) const;
  /// All or nothing, under a temporary name first.
  std::string write(const std::string& name, std::string_view bytes) const;
  bool remove(const std::string& name) const;

  struct File {
    std::string name;
    std::int64_t size_bytes = 0;
    std::int64_t modified_ns = 0;  ///< since 1970
  };
  std::vector<File> files() const;

  struct Locked {
    FileLock lock;
    bool waited = false;
    std::string problem;
  };
  /// Waits until no one else holds `name`, for `patience_s` at most.
  Locked lock(const std::string& name, double patience_s) const;

 private:
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  std::string path_;
};

constexpr std::string_view kTemporaryPrefix = "tmp-";

}  // namespace tilewright::detail
