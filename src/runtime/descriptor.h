// SPDX-License-Identifier: Apache-2.0
// A file descriptor that is closed when it goes out of scope.
#pragma once

#include <unistd.h>

namespace tilewright::detail {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { close(); }
  int get() const { return fd_; }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

 private:
  int fd_;
};

}  // namespace tilewright::detail
