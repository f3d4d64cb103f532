// SPDX-License-Identifier: Apache-2.0
// How the layout part reports what a caller asked for and cannot have.
#pragma once

#include "tilewright/error.h"

#include <string>
#include <utility>

namespace tilewright {

[[noreturn]] inline void fail(std::string message) {
  throw Error(ErrorKind::user, std::move(message));
}

}  // namespace tilewright
