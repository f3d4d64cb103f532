// SPDX-License-Identifier: Apache-2.0
// Functions of libraries that are opened at run time.
#pragma once

#include <dlfcn.h>

namespace tilewright::detail {

/// Sets `slot` to what the library exports as `name`; false if it does not.
template <typename F>
bool bind(void* library, F*& slot, const char* name) {
  slot = reinterpret_cast<F*>(dlsym(library, name));  // POSIX allows the cast
  return slot != nullptr;
}

}  // namespace tilewright::detail
