// SPDX-License-Identifier: Apache-2.0
// Asking for much memory of the host: refused with a reason, instead of being killed for it.
#pragma once

#include "tilewright/error.h"

#include <cstdint>
#include <string>

namespace tilewright {

/// Bytes that can be had without others losing theirs; INT64_MAX where the system does not say.
std::int64_t available_host_bytes();

/// Throws Error(user) "WHAT takes N bytes but the host has M left; ..." if less is available. Asks
/// only about large amounts, so that it costs nothing for small ones.
void require_host_bytes(std::int64_t bytes, const std::string& what, SourceLoc at);

}  // namespace tilewright
