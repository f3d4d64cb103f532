// SPDX-License-Identifier: Apache-2.0
// Earlier launches that one in progress is not ordered behind: other streams, programmatic launch.
#pragma once

#include "emu/grid.h"

namespace tilewright::emu::detail {

/// Finds the launches that each grid is not ordered behind.
void find_unordered(Run& run);
/// Keeps the grids that ended, for launches that may not be ordered behind them.
void remember(Run& run);
/// The unordered launch of a block, or null: it is ordered, or of this run.
const Grid* unordered_launch(const Run& run, const Grid& grid, std::uint32_t block);

}  // namespace tilewright::emu::detail
