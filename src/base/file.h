// SPDX-License-Identifier: Apache-2.0
// Reading parts of files, and replacing files in one step.
#pragma once

#include "tilewright/error.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tilewright::io {

/// "PATH: what": every message about a file starts so.
[[noreturn]] void refuse(const std::string& path, const std::string& what);

/// Bytes that can be read at any offset: an open file, or memory.
class Source {
 public:
  /// Opens a file; what is no regular file (a pipe) is read whole, up to 1 GiB. Throws Error(user).
  explicit Source(const std::string& path);
  /// Bytes in memory, which the caller keeps; `path` names them in errors.
  Source(std::string path, std::span<const std::byte> bytes);
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  Source(Source&& other) noexcept;
  Source& operator=(Source&& other) noexcept;
  ~Source();

  const std::string& path() const { return path_; }
  std::uint64_t size() const { return size_; }
  /// Fills `out` from `offset` on. Throws Error(user) where the source ends before.
  void read(std::uint64_t offset, std::span<std::byte> out) const;

 private:
  void read_all();
  std::string path_;
  int file_ = -1;  ///< -1: the bytes are in memory
  std::uint64_t size_ = 0;
  std::span<const std::byte> memory_;
  std::vector<std::byte> owned_;
};

/// Writes the chunks, one after the other, to a temporary file beside `path` and renames it: there
/// is the old file or the new one, never a part. What exists and is no regular file (/dev/stdout)
/// is written directly. Throws Error(user) with the system's reason.
void write_file(const std::string& path, std::span<const std::span<const std::byte>> chunks);

}  // namespace tilewright::io
