// SPDX-License-Identifier: Apache-2.0
// One access of a thread to a row of a matrix.
#pragma once

#include "tilewright/value.h"

namespace tilewright::rows {

struct RowShare {
  Value row, column;  ///< of the access's first element; s64 beyond 2^30
  Value inside;       ///< predicate
};

}  // namespace tilewright::rows
