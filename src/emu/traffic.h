// SPDX-License-Identifier: Apache-2.0
// Counts bytes, 32-byte sectors and shared-memory wavefronts of accesses.
#pragma once

#include "emu/access.h"

namespace tilewright::emu::detail {

/// Does nothing unless counters are on.
void count_access(Exec& x, Space space, const Addresses& a, std::int64_t lane_bytes, Access access);

}  // namespace tilewright::emu::detail
