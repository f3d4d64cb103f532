// SPDX-License-Identifier: Apache-2.0
// What barrier.cluster does: arrivals and waits of the threads of a cluster.
#pragma once

#include "emu/grid.h"

namespace tilewright::emu::detail {

/// The cluster's barrier waits for live threads only.
void cluster_threads_exited(Block& block);

}  // namespace tilewright::emu::detail
