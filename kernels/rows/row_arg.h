// SPDX-License-Identifier: Apache-2.0
// What a kernel on rows knows of a tensor.
#pragma once

#include "tilewright/trace.h"
#include "tilewright/view.h"

namespace tilewright::rows {

/// The facts of a tensor of rows: their number stays a parameter, and their distance where they do
/// not lie one after the other.
TensorArg rows_arg(const View& view);

}  // namespace tilewright::rows
