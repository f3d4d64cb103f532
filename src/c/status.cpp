// SPDX-License-Identifier: Apache-2.0
// The last message of each thread, and the versions.
#include "c/status.h"

#include <algorithm>
#include <cstring>

namespace tilewright::c {
namespace {

// An array, because keeping a message must not fail.
thread_local char last_message[2048];

}  // namespace

tw_status fail(tw_status status, const std::string& message) noexcept {
  const std::size_t length = std::min(message.size(), sizeof last_message - 1);
  std::memcpy(last_message, message.data(), length);
  last_message[length] = '\0';
  return status;
}

void require(const void* pointer, const char* what) {
  if (pointer == nullptr) throw Error(ErrorKind::user, std::string(what) + ": the pointer is null");
}

}  // namespace tilewright::c

const char* tw_message(void) { return tilewright::c::last_message; }
uint32_t tw_abi_version(void) { return TW_ABI_VERSION; }
const char* tw_version(void) { return TILEWRIGHT_VERSION; }
