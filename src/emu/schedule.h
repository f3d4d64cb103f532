// SPDX-License-Identifier: Apache-2.0
// The scheduler's steps: starting blocks, running warps, and what to do when all wait.
#pragma once

#include "emu/grid.h"

namespace tilewright::emu::detail {

/// Starts blocks up to the capacity of each grid. Returns whether any started.
bool start_blocks(Run& run);
/// As start_blocks, beyond the window of blocks that usually run at a time.
bool start_more_blocks(Run& run);
/// Frees blocks that ended since the last call.
void drop_dead(Run& run);
/// Makes a split of a warp the one that runs.
void bind_split(Exec& x, Warp& warp, std::size_t index);
/// Reports what every waiting thread waits for, and stops the grids.
void report_deadlock(Run& run);
/// Fills a new frame: hidden registers set, all others undefined, for the lanes of `mask`.
void enter_function(Warp& warp, std::uint32_t frame, std::uint32_t mask);

}  // namespace tilewright::emu::detail
