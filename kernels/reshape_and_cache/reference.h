// SPDX-License-Identifier: Apache-2.0
// The reference of reshape_and_cache.
#pragma once

#include "kernels/reshape_and_cache/reshape_and_cache.h"

namespace tilewright {

/// Sets key_cache and value_cache, and skipped if it is there, exactly.
void reshape_and_cache_reference(CacheLayout layout, HostTensors& tensors);

}  // namespace tilewright
