// SPDX-License-Identifier: Apache-2.0
// Loads that must all be on their way before the first result is used.
#pragma once

#include "tilewright/fragment.h"

#include <span>

namespace tilewright {

/// The loads of `others` are issued before anything waits for those of `first`, so that their
/// latencies pass at the same time. Left alone, ptxas moves loads down to where they are used,
/// below the wait for what is used before. The first register of every 16 bytes of `first` depends
/// on all of `others`: where the others are read independently of it, pass them as fragments of
/// their own (part()). Costs one LOP3 for every 16 bytes of both; `others` take registers from here
/// on. All values stay as they are.
void loaded_together(std::span<const Fragment> first, std::span<const Fragment> others,
                     SourceLoc at = SourceLoc::here());

}  // namespace tilewright
