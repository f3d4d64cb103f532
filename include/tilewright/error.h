// SPDX-License-Identifier: Apache-2.0
// The one exception type of the library, the source location it carries, and the two assertions.
#pragma once

#include <exception>
#include <string>

namespace tilewright {

/// A line of the caller's C++ source; taken by defaulted last parameters.
struct SourceLoc {
  const char* file = "";
  int line = 0;

  static constexpr SourceLoc here(const char* file = __builtin_FILE(),
                                  int line = __builtin_LINE()) {
    return {file, line};
  }
  friend bool operator==(const SourceLoc&, const SourceLoc&) = default;
};

/// Who can mend it: `user` a caller, `unsupported` nobody on this machine or target, `internal` us.
enum class ErrorKind { user, unsupported, internal };

/// `what()` is `file:line: error: message`, or `error: message` without a location.
class Error : public std::exception {
 public:
  Error(ErrorKind kind, std::string message, SourceLoc where = {});

  const char* what() const noexcept override { return what_.c_str(); }
  ErrorKind kind() const { return kind_; }
  const std::string& message() const { return message_; }
  SourceLoc where() const { return where_; }

 private:
  ErrorKind kind_;
  std::string message_;
  SourceLoc where_;
  std::string what_;
};

/// The last component of a path: what messages print for a file.
std::string base_name(const char* path);

namespace detail {
[[noreturn]] void assertion_failed(const char* condition, const char* why, SourceLoc where);
}  // namespace detail

}  // namespace tilewright

/// A mistake of the library's own, checked in every build; no input may reach it.
#define TW_ASSERT(cond, why)  \
  (static_cast<bool>(cond)    \
       ? static_cast<void>(0) \
       : ::tilewright::detail::assertion_failed(#cond, why, ::tilewright::SourceLoc::here()))

/// As TW_ASSERT, for measured hot loops: checked only where NDEBUG is not defined.
#ifdef NDEBUG
#define TW_DEBUG_ASSERT(cond, why) static_cast<void>(0)
#else
#define TW_DEBUG_ASSERT(cond, why) TW_ASSERT(cond, why)
#endif
