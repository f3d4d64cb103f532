// SPDX-License-Identifier: Apache-2.0
// The references of gather_rows and embedding.
#pragma once

#include "tilewright/operator.h"

namespace tilewright {

/// Sets dst: the bits of src's rows at ids, zeros for indices outside.
void gather_rows_reference(HostTensors& tensors);
/// Sets out in f64.
void embedding_reference(double scale, std::int64_t first_id, HostTensors& tensors);

}  // namespace tilewright
