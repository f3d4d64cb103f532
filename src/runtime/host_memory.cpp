// SPDX-License-Identifier: Apache-2.0
// How much memory the host can still give, as Linux says (proc(5), cgroups version 2).
#include "runtime/host_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>

namespace tilewright {
namespace {

constexpr std::int64_t kUnknown = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kLarge = std::int64_t{1} << 28;  // bytes below which nobody asks

/// The number in a file that holds just that ("max" is none).
std::int64_t number_in(const char* path) {
  std::ifstream in(path);
  std::int64_t number = 0;
  return in >> number ? number : kUnknown;
}

std::int64_t meminfo_available() {
  std::ifstream in("/proc/meminfo");
  std::string word;
  while (in >> word) {
    std::int64_t kibibytes = 0;
    if (word == "MemAvailable:" && in >> kibibytes) return kibibytes * 1024;
  }
  return kUnknown;
}

}  // namespace

std::int64_t available_host_bytes() {
  std::int64_t available = meminfo_available();
  const std::int64_t most = number_in("/sys/fs/cgroup/memory.max");
  const std::int64_t used = number_in("/sys/fs/cgroup/memory.current");
  if (most != kUnknown && used != kUnknown) {
    available = std::min(available, std::max<std::int64_t>(0, most - used));
  }
  return available;
}

void require_host_bytes(std::int64_t bytes, const std::string& what, SourceLoc at) {
  if (bytes < kLarge) return;
  const std::int64_t available = available_host_bytes();
  if (bytes <= available) return;
  throw Error(ErrorKind::user,
              what + " takes " + std::to_string(bytes) + " bytes but the host has " +
                  std::to_string(available) + " left; use smaller sizes",
              at);
}

}  // namespace tilewright
