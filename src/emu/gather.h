// SPDX-License-Identifier: Apache-2.0
// Warp-wide instructions: lanes wait at one until all that it names have come.
#pragma once

#include "emu/grid.h"

namespace tilewright::emu::detail {

enum class Gather : std::uint8_t {
  ready,  ///< x.mask are lanes whose named lanes are all here
  wait,   ///< the split was parked: return Flow::stop
};

/// For `.sync` instructions: `members` is the lane mask each lane names.
Gather gather(Exec& x, const Slot& members);
/// For `.aligned` instructions: every lane of the warp takes part.
Gather gather_aligned(Exec& x);
/// Called with nothing left to run: if lanes wait for others that cannot come, reports it, lets
/// them go on without, and returns true.
bool release_stuck(Grid& grid);
/// Wakes the lanes that wait at warp-wide instructions: the set of live lanes changed.
void wake_gathering(Warp& warp);

}  // namespace tilewright::emu::detail
