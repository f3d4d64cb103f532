// SPDX-License-Identifier: Apache-2.0
// References that know what a launch wrote: a rounding to few bits beside a tie goes either way.
#pragma once

#include "tilewright/operator.h"

#include <span>
#include <string_view>

namespace tilewright {

/// Operator::reference with what a launch wrote at hand. Where the errors that the contract allows
/// decide how an output is rounded, and others follow from it, a reference may take either: it
/// looks up written().
void reference_of_written(const Operator& op, const Arguments& arguments,
                          std::span<const Array> outputs, HostTensors& tensors);

/// What a launch wrote to `output`; null: nothing is known of it.
const Array* written(const HostTensors& tensors, std::string_view output);

}  // namespace tilewright
