// SPDX-License-Identifier: Apache-2.0
// The reference of rope_table.
#pragma once

#include "kernels/rope_table/rope_table.h"

namespace tilewright {

/// Sets cos_sin in f64.
void rope_table_reference(std::int64_t positions, std::int64_t width,
                          const RopeTableOptions& options, HostTensors& tensors);

}  // namespace tilewright
