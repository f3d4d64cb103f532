// SPDX-License-Identifier: Apache-2.0
// The inputs of a problem without their contents.
#pragma once

#include "tilewright/operator.h"

#include <vector>

namespace tilewright::detail {

/// As make_inputs(), but arrays have no bytes, unless Operator::fill makes them. For launches that
/// are only noted: a model's tensors may be larger than the memory of the machine that compiles.
std::vector<Array> make_input_shapes(const Operator& op, const Problem& problem);

}  // namespace tilewright::detail
