// SPDX-License-Identifier: Apache-2.0
// From exceptions to the status codes and the message of the C interface.
#pragma once

#include "tilewright.h"
#include "tilewright/error.h"

#include <new>
#include <string>

namespace tilewright::c {

/// Keeps the text for tw_message() on this thread.
tw_status fail(tw_status status, const std::string& message) noexcept;

/// Runs the body; an exception becomes a status.
template <typename Body>
tw_status guarded(const Body& body) noexcept {
  try {
    body();
    return TW_OK;
  } catch (const Error& error) {
    switch (error.kind()) {
      case ErrorKind::user:
        return fail(TW_USER, error.message());
      case ErrorKind::unsupported:
        return fail(TW_UNSUPPORTED, error.message());
      case ErrorKind::internal:
        return fail(TW_INTERNAL, error.message());
    }
    return TW_INTERNAL;
  } catch (const std::bad_alloc&) {
    return fail(TW_NO_MEMORY, "the host's memory is used up");
  } catch (const std::exception& error) {
    return fail(TW_INTERNAL, error.what());
  }
}

/// Throws Error(user) "WHAT: the pointer is null".
void require(const void* pointer, const char* what);

}  // namespace tilewright::c
