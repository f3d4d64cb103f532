// SPDX-License-Identifier: Apache-2.0
// How an error prints.
#include "tilewright/error.h"

#include <utility>

namespace tilewright {

std::string base_name(const char* path) {
  std::string full = path;
  std::size_t slash = full.find_last_of('/');
  return slash == std::string::npos ? full : full.substr(slash + 1);
}

Error::Error(ErrorKind kind, std::string message, SourceLoc where)
    : kind_(kind), message_(std::move(message)), where_(where) {
  if (where.line > 0) what_ = base_name(where.file) + ":" + std::to_string(where.line) + ": ";
  what_ += "error: " + message_;
}

namespace detail {

void assertion_failed(const char* condition, const char* why, SourceLoc where) {
  throw Error(ErrorKind::internal,
              std::string("assertion failed: ") + condition + " (" + why +
                  "); this is a mistake in tilewright, please report it",
              where);
}

}  // namespace detail
}  // namespace tilewright
