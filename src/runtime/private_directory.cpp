// SPDX-License-Identifier: Apache-2.0
// Private files by POSIX calls that neither follow links nor leave half a file behind.
#include "runtime/private_directory.h"

#include "runtime/descriptor.h"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <dirent.h>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <thread>
#include <unistd.h>

namespace tilewright::detail {
namespace {

std::string reason(int error) { return std::generic_category().message(error); }

/// Why others could have put something there.
std::string not_private(const struct stat& status) {
  if (status.st_uid != geteuid()) {
    return "belongs to user " + std::to_string(status.st_uid) + ", not to us";
  }
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) return "can be written by others";
  return {};
}

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t wrote = ::write(fd, bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return true;
}

bool read_all(int fd, std::string& bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    ssize_t got = ::read(fd, bytes.data() + done, bytes.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return false;
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  bytes.resize(done);
  return true;
}

std::int64_t nanoseconds(const struct timespec& time) {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

FileLock::~FileLock() {
  if (fd_ >= 0) ::close(fd_);
}

std::string PrivateDirectory::prepare() {
  std::error_code error;
  std::filesystem::path parent = std::filesystem::path(path_).parent_path();
  if (!parent.empty()) std::filesystem::create_directories(parent, error);
  if (mkdir(path_.c_str(), 0700) != 0 && errno != EEXIST) {
    return "cannot make " + path_ + ": " + reason(errno);
  }
  struct stat status {};
  if (stat(path_.c_str(), &status) != 0) return path_ + ": " + reason(errno);
  if (!S_ISDIR(status.st_mode)) return path_ + " is not a directory";
  std::string open_to = not_private(status);
  if (!open_to.empty()) return path_ + " " + open_to;
  if (access(path_.c_str(), R_OK | W_OK | X_OK) != 0) return path_ + ": " + reason(errno);
  return {};
}

PrivateDirectory::Read PrivateDirectory::read(const std::string& name, Purpose purpose) const {
  Descriptor descriptor(::open(file(name).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  auto problem = [](std::string text) { return Read{std::nullopt, std::move(text)}; };
  if (descriptor.get() < 0) {
    if (errno == ENOENT) return {};
    return problem(errno == ELOOP ? "is a link" : "cannot be opened: " + reason(errno));
  }
  struct stat status {};
  if (fstat(descriptor.get(), &status) != 0) return problem(reason(errno));
  if (!S_ISREG(status.st_mode)) return problem("is not a plain file");
  std::string open_to = not_private(status);
  if (!open_to.empty()) return problem(std::move(open_to));
  std::string bytes(static_cast<std::size_t>(status.st_size), '\0');
  if (!read_all(descriptor.get(), bytes)) return problem("cannot be read: " + reason(errno));
  if (purpose == Purpose::use) futimens(descriptor.get(), nullptr);
  return {std::move(bytes), {}};
}

std::string PrivateDirectory::write(const std::string& name, std::string_view bytes) const {
  static std::atomic<unsigned> counter{0};
  std::string temporary = file(std::string(kTemporaryPrefix) + std::to_string(getpid()) + "-" +
                               std::to_string(counter++) + "-" + name);
  Descriptor descriptor(
      ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (descriptor.get() < 0) return "cannot write to " + path_ + ": " + reason(errno);
  if (write_all(descriptor.get(), bytes) && rename(temporary.c_str(), file(name).c_str()) == 0) {
    return {};
  }
  std::string problem = "cannot write to " + path_ + ": " + reason(errno);
  unlink(temporary.c_str());
  return problem;
}

bool PrivateDirectory::remove(const std::string& name) const {
  return unlink(file(name).c_str()) == 0;
}

std::vector<PrivateDirectory::File> PrivateDirectory::files() const {
  std::vector<File> found;
  std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(path_.c_str()), closedir);
  if (!directory) return found;
  while (const dirent* item = readdir(directory.get())) {
    struct stat status {};
    if (fstatat(dirfd(directory.get()), item->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (S_ISDIR(status.st_mode)) continue;
    found.push_back({item->d_name, status.st_size, nanoseconds(status.st_mtim)});
  }
  return found;
}

PrivateDirectory::Locked PrivateDirectory::lock(const std::string& name, double patience_s) const {
  Locked result;
  int fd = ::open(file(name).c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) {
    result.problem = "cannot lock in " + path_ + ": " + reason(errno);
    return result;
  }
  FileLock opened(fd);
  auto give_up = std::chrono::steady_clock::now() + std::chrono::duration<double>(patience_s);
  while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) {
      result.problem = "cannot lock in " + path_ + ": " + reason(errno);
      return result;
    }
    result.waited = true;
    if (std::chrono::steady_clock::now() > give_up) {
      result.problem = "another process has held " + file(name) + " for " +
                       std::to_string(static_cast<int>(patience_s)) + " s";
      return result;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  result.lock = std::move(opened);
  return result;
}

}  // namespace tilewright::detail
