// SPDX-License-Identifier: Apache-2.0
// Block and cluster barriers: what the exit of threads means to them.
#pragma once

#include "emu/grid.h"

namespace tilewright::emu::detail {

/// Barriers of the whole block or cluster wait for live threads only.
void threads_exited(Block& block);
/// Reports asynchronous operations that the exiting lanes have in flight.
void check_exit(Exec& x, std::uint32_t mask);
/// Reports bulk operations on the block's shared memory that no thread waited for.
void check_in_flight(Block& block);
/// Counters of a finished grid, by instruction.
void fill_counters(Grid& grid);

}  // namespace tilewright::emu::detail
