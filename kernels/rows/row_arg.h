// SPDX-License-Identifier: Apache-2.0
// What a kernel on rows knows of a tensor.
#pragma once

#include "tilewright/trace.h"
#include "tilewright/view.h"

namespace tilewright::rows {

/// The facts of a tensor of rows: their number stays a parameter, and their distance where they do
/// not lie one after the other.
TensorArg rows_arg(const View& view);

/// The same for a tensor of as many rows as another one that says how many: no address depends on
/// it, so it is no parameter, and a launch passes uncounted(view). Views of more than 2^30 rows, or
/// of two modes of rows, stay as they are.
TensorArg uncounted_rows_arg(const View& view);
View uncounted(const View& view);

}  // namespace tilewright::rows
