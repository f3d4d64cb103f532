// SPDX-License-Identifier: Apache-2.0
// Several devices whose kernels reach each other's memory, and launches that wait for one another.
#pragma once

#include "tilewright/device.h"
#include "tilewright/kernel.h"

#include <span>
#include <string>
#include <vector>

namespace tilewright {

/// Opens devices of one kind whose kernels may use each other's buffers: GPUs with peer access
/// ("cuda:0", "cuda:1"), or emulated devices, which share an address space ("emu:sm_90a" twice).
/// Each has streams and blocking copies of its own. Throws Error(unsupported) for GPUs that cannot
/// reach each other, Error(user) for devices of different kinds.
std::vector<Device> open_peers(std::span<const std::string> names,
                               SourceLoc at = SourceLoc::here());

struct PeerLaunch {
  const PreparedLaunch& launch;
  const Stream& stream;
};
/// Launches on different devices of open_peers() whose kernels wait for one another: emulated ones
/// run interleaved, GPUs run them at the same time. Pre: no stream is being captured; on GPUs, what
/// is queued in front on these streams does not wait for these kernels.
void launch_together(std::span<const PeerLaunch> launches, SourceLoc at = SourceLoc::here());

}  // namespace tilewright
