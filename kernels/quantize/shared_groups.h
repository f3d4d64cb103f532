// SPDX-License-Identifier: Apache-2.0
// Groups of the same lanes, each of which another lane reduces. Traced.
#pragma once

#include "tilewright/value.h"

#include <vector>

namespace tilewright {

/// The largest magnitudes of several groups of the same `width` lanes, from what each lane found in
/// them: those of groups j, width + j and so on in lane j. All lanes of the warp take part. Less
/// than a warp_reduce() of each, and what is computed from them is so for one group a lane.
std::vector<Value> largest_by_lanes(std::vector<Value> largest, int width);

}  // namespace tilewright
