// SPDX-License-Identifier: Apache-2.0
// File access with errors that name the file and the system's reason.
#include "base/file.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace tilewright::io {
namespace {

/// What is read whole, such as a pipe; /dev/zero has no end.
constexpr std::size_t kMostStreamedBytes = std::size_t{1} << 30;

std::string reason(int code) { return std::generic_category().message(code); }

/// Reads up to out.size() bytes; fewer only at the end of the file.
std::size_t read_some(const std::string& path, int file, std::uint64_t offset,
                      std::span<std::byte> out) {
  std::size_t done = 0;
  while (done < out.size()) {
    const ssize_t count =
        ::pread(file, out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) refuse(path, "cannot read: " + reason(errno));
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  return done;
}

/// A file descriptor that is closed with the object.
class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  int get() const { return value_; }
  int close() { return ::close(std::exchange(value_, -1)); }

 private:
  int value_;
};

void write_chunks(const std::string& path, int file,
                  std::span<const std::span<const std::byte>> chunks) {
  for (std::span<const std::byte> rest : chunks) {
    while (!rest.empty()) {
      const ssize_t count = ::write(file, rest.data(), rest.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) refuse(path, "cannot write: " + reason(errno));
      rest = rest.subspan(static_cast<std::size_t>(count));
    }
  }
}

/// Removes a file at the end unless it was kept.
struct TemporaryFile {
  std::string path;
  bool keep = false;
  ~TemporaryFile() {
    if (!keep) ::unlink(path.c_str());
  }
};

}  // namespace

void refuse(const std::string& path, const std::string& what) {
  throw Error(ErrorKind::user, path + ": " + what);
}

Source::Source(std::string path, std::span<const std::byte> bytes)
    : path_(std::move(path)), size_(bytes.size()), memory_(bytes) {}

Source::Source(const std::string& path)
    : path_(path), file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (file_ < 0) refuse(path, "cannot open: " + reason(errno));
  struct stat info {};
  if (::fstat(file_, &info) != 0 || S_ISDIR(info.st_mode)) {
    const std::string why = S_ISDIR(info.st_mode) ? reason(EISDIR) : reason(errno);
    ::close(std::exchange(file_, -1));
    refuse(path, "cannot read: " + why);
  }
  if (S_ISREG(info.st_mode)) {
    size_ = static_cast<std::uint64_t>(info.st_size);
  } else {
    read_all();
  }
}

void Source::read_all() {
  const Descriptor file(std::exchange(file_, -1));
  std::byte chunk[65536];
  while (true) {
    const ssize_t count = ::read(file.get(), chunk, sizeof chunk);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) refuse(path_, "cannot read: " + reason(errno));
    if (count == 0) break;
    owned_.insert(owned_.end(), chunk, chunk + count);
    if (owned_.size() > kMostStreamedBytes) {
      refuse(path_, "has more than " + std::to_string(kMostStreamedBytes) +
                        " bytes and is no regular file; store them in one");
    }
  }
  memory_ = owned_;
  size_ = owned_.size();
}

Source::Source(Source&& other) noexcept
    : path_(std::move(other.path_)),
      file_(std::exchange(other.file_, -1)),
      size_(other.size_),
      memory_(other.memory_),
      owned_(std::move(other.owned_)) {}

Source& Source::operator=(Source&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(file_, other.file_);
  std::swap(size_, other.size_);
  std::swap(memory_, other.memory_);
  std::swap(owned_, other.owned_);
  return *this;
}

Source::~Source() {
  if (file_ >= 0) ::close(file_);
}

void Source::read(std::uint64_t offset, std::span<std::byte> out) const {
  const bool inside = offset <= size_ && out.size() <= size_ - offset;
  if (inside && file_ < 0) {
    if (!out.empty()) std::memcpy(out.data(), memory_.data() + offset, out.size());
    return;
  }
  if (inside && read_some(path_, file_, offset, out) == out.size()) return;
  refuse(path_, "bytes " + std::to_string(offset) + ".." + std::to_string(offset + out.size()) +
                    " are beyond the end of the file, which has " + std::to_string(size_) +
                    "; it is truncated");
}

void write_file(const std::string& path, std::span<const std::span<const std::byte>> chunks) {
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (file.get() < 0) refuse(path, "cannot write: " + reason(errno));
    write_chunks(path, file.get(), chunks);
    return;
  }
  static std::atomic<unsigned> serial{0};
  TemporaryFile temporary{path + ".tmp." + std::to_string(::getpid()) + "." +
                          std::to_string(serial++)};
  Descriptor file(::open(temporary.path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (file.get() < 0) {
    const int code = errno;
    temporary.keep = true;  // not ours
    refuse(path, "cannot write: " + reason(code));
  }
  write_chunks(path, file.get(), chunks);
  if (file.close() != 0) refuse(path, "cannot write: " + reason(errno));
  if (::rename(temporary.path.c_str(), path.c_str()) != 0) {
    refuse(path, "cannot write: " + reason(errno));
  }
  temporary.keep = true;
}

}  // namespace tilewright::io
